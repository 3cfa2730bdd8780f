#include "sordino/report/run_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kRunLeft = 76;
constexpr double kRunRight = 644;
constexpr double kRunTop = 88;
constexpr double kRunBottom = 376;

// Rules of this picture: accuracy and epsilon each have a colour.
constexpr const char* kRunLight =
    ".warning{font-weight:700;fill:#b3261e}.accuracy.line{stroke:#0b62b8}"
    ".epsilon.line{stroke:#b25a00;stroke-dasharray:6 4}.accuracy.dot,text.accuracy{fill:#0b62b8}"
    ".epsilon.dot,text.epsilon{fill:#b25a00}.mark{paint-order:stroke;stroke:#ffffff;"
    "stroke-width:5;stroke-linejoin:round}";
constexpr const char* kRunDark =
    ".warning{fill:#ff8a80}.accuracy.line{stroke:#64b0ff}.epsilon.line{stroke:#ffab57}"
    ".accuracy.dot,text.accuracy{fill:#64b0ff}.epsilon.dot,text.epsilon{fill:#ffab57}"
    ".mark{stroke:#14191e}";

// Round ticks from a low end to a high end that both are ticks: 1, 2 or 5 times a power of ten.
struct Scale {
  double low = 0;
  double high = 1;
  double tick = 0.2;

  Scale(double least, double most, double ends_at = HUGE_VAL) {
    const double span = most > least ? most - least : std::max(1e-9, std::abs(most) * 0.1);
    tick = TickDistance(span, 5);
    low = tick * std::floor(least / tick * (1 + 1e-12));
    high = std::min(tick * std::ceil(most / tick * (1 - 1e-12)), ends_at);
    if (high <= low) high = low + tick;
  }
  int Ticks() const { return static_cast<int>(std::floor((high - low) / tick * (1 + 1e-9))); }
  double Share(double value) const { return (value - low) / (high - low); }
};

double X(const Scale& steps, double step) {
  return kRunLeft + (kRunRight - kRunLeft) * steps.Share(step);
}
double Y(const Scale& scale, double value) {
  return kRunBottom - (kRunBottom - kRunTop) * scale.Share(value);
}

std::string StepLabel(double steps) {
  return steps >= 1e6 ? fmt::format("{:g} M", steps / 1e6) : fmt::format("{:g}", steps);
}

struct Mark {
  double step;
  double value;
};

// A line through the marks, a dot on the last one and its label, and a dot alone for one mark.
std::string Curve(const std::vector<Mark>& marks, const Scale& steps, const Scale& scale,
                  const char* kind, const std::string& label, double label_shift) {
  if (marks.empty()) return "";
  std::string line;
  for (const Mark& mark : marks) {
    line += fmt::format("{:.2f},{:.2f} ", X(steps, mark.step), Y(scale, mark.value));
  }
  line.pop_back();
  const double x = X(steps, marks.back().step);
  const double y = Y(scale, marks.back().value);
  const double label_y = std::clamp(y + label_shift, kRunTop + 12, kRunBottom - 6);
  return fmt::format(
      "<polyline class=\"{0} line\" points=\"{1}\"/>\n"
      "<circle class=\"{0} dot\" cx=\"{2:.2f}\" cy=\"{3:.2f}\" r=\"4\"/>\n"
      "<text class=\"{0} mark\" x=\"{4:.2f}\" y=\"{5:.2f}\" text-anchor=\"end\">{6}</text>\n",
      kind, line, x, y, x - 8, label_y, label);
}

std::string StepAxis(const Scale& steps) {
  std::string svg;
  for (int i = 0; i <= steps.Ticks(); ++i) {
    const double step = steps.low + i * steps.tick;
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        X(steps, step), kRunBottom, kRunBottom + 5, kRunBottom + 21, StepLabel(step));
  }
  return svg + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">steps</text>\n",
                           (kRunLeft + kRunRight) / 2, kRunBottom + 46);
}

std::string AccuracyAxis(const Scale& scale) {
  std::string svg;
  for (int i = 0; i <= scale.Ticks(); ++i) {
    const double value = scale.low + i * scale.tick;
    const double y = Y(scale, value);
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n"
        "<text class=\"accuracy\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}%</text>\n",
        i == 0 ? "axis" : "grid", kRunLeft, kRunRight, y, y, kRunLeft - 9, y + 4.5,
        std::round(value * 1e6) / 1e4);
  }
  const double middle = (kRunTop + kRunBottom) / 2;
  return svg + fmt::format(
                   "<text class=\"accuracy\" x=\"18\" y=\"{0:.1f}\" text-anchor=\"middle\" "
                   "transform=\"rotate(-90 18 {0:.1f})\">test accuracy</text>\n",
                   middle);
}

std::string EpsilonAxis(const Scale& scale, bool draw_grid) {
  std::string svg;
  for (int i = 0; i <= scale.Ticks(); ++i) {
    const double value = scale.low + i * scale.tick;
    const double y = Y(scale, value);
    if (draw_grid) {
      svg += fmt::format(
          "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
          i == 0 ? "axis" : "grid", kRunLeft, kRunRight, y, y);
    }
    svg += fmt::format("<text class=\"epsilon\" x=\"{:.1f}\" y=\"{:.1f}\">{:.4g}</text>\n",
                       kRunRight + 9, y + 4.5, value);
  }
  const double middle = (kRunTop + kRunBottom) / 2;
  return svg + fmt::format(
                   "<text class=\"epsilon\" x=\"704\" y=\"{0:.1f}\" text-anchor=\"middle\" "
                   "transform=\"rotate(90 704 {0:.1f})\">epsilon spent</text>\n",
                   middle);
}

}  // namespace

std::string RunSvg(std::span<const RunPoint> points, const RunPictureText& text) {
  std::string svg = SvgOpening({.label = "test accuracy and epsilon against the number of steps",
                                .warning = text.warning,
                                .title = text.title,
                                .caption = text.caption},
                               SvgStyle(kRunLight, kRunDark), kRunLeft);

  std::vector<Mark> accuracies;
  std::vector<Mark> epsilons;
  double last_step = 0;
  for (const RunPoint& point : points) {
    const auto step = static_cast<double>(point.step);
    last_step = std::max(last_step, step);
    if (point.accuracy) accuracies.push_back({step, *point.accuracy});
    if (point.epsilon && std::isfinite(*point.epsilon)) epsilons.push_back({step, *point.epsilon});
  }
  if (accuracies.empty() && epsilons.empty()) {
    return svg + fmt::format(
                     "<text x=\"{:.0f}\" y=\"{:.0f}\">There is nothing to draw yet.</text>\n"
                     "</svg>\n",
                     kRunLeft, kRunTop + 60);
  }
  const Scale steps(0, std::max(1.0, last_step), std::max(1.0, last_step));
  svg += StepAxis(steps);
  if (!accuracies.empty()) {
    const auto [least, most] =
        std::minmax_element(accuracies.begin(), accuracies.end(),
                            [](const Mark& a, const Mark& b) { return a.value < b.value; });
    const Scale scale(least->value, most->value, 1);
    svg += AccuracyAxis(scale);
    svg += Curve(accuracies, steps, scale, "accuracy",
                 fmt::format("{:.2f}%", 100 * accuracies.back().value), 20);
  }
  if (!epsilons.empty()) {
    double most = 0;
    for (const Mark& mark : epsilons) most = std::max(most, mark.value);
    const Scale scale(0, most > 0 ? most : 1);
    svg += EpsilonAxis(scale, accuracies.empty());
    std::vector<Mark> from_zero = {{0, 0}};
    from_zero.insert(from_zero.end(), epsilons.begin(), epsilons.end());
    // What is shown of an upper bound is not below it.
    svg += Curve(
        from_zero, steps, scale, "epsilon",
        fmt::format("epsilon {:.6g}", std::ceil(epsilons.back().value * 1e4 * (1 - 1e-15)) / 1e4),
        -10);
  }
  return svg + "</svg>\n";
}

}  // namespace sordino
