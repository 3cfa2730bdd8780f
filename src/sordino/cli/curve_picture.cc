#include "sordino/cli/curve_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/cli/interval_text.h"
#include "sordino/report/svg.h"

namespace sordino {
namespace {

struct Point {
  double log_steps;
  double lower;
  double upper;
};

std::vector<Point> FinitePoints(std::span<const CurvePoint> curve) {
  std::vector<Point> points;
  for (const CurvePoint& point : curve) {
    if (!std::isfinite(point.epsilon.upper)) continue;
    points.push_back(
        {std::log10(static_cast<double>(point.steps)), point.epsilon.lower, point.epsilon.upper});
  }
  return points;
}

// Round step counts for the horizontal axis: powers of ten, or 1, 2, 5 where those are few.
std::vector<double> StepTicks(double log_first, double log_last) {
  std::vector<double> ticks;
  const bool few = log_last - log_first < 1.5;
  const int every = std::max(1, static_cast<int>(std::ceil((log_last - log_first) / 8)));
  for (int decade = static_cast<int>(std::floor(log_first)); decade <= log_last + 1e-9;
       decade += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !few) break;
      const double tick = decade + std::log10(factor);
      if (tick >= log_first - 1e-9 && tick <= log_last + 1e-9) ticks.push_back(tick);
    }
  }
  return ticks;
}

double Interpolate(const std::vector<Point>& points, double log_steps, double Point::*value) {
  const auto right = std::find_if(points.begin(), points.end(), [log_steps](const Point& point) {
    return point.log_steps >= log_steps;
  });
  if (right == points.end()) return points.back().*value;
  if (right == points.begin()) return points.front().*value;
  const Point& a = *(right - 1);
  const Point& b = *right;
  const double share = (log_steps - a.log_steps) / (b.log_steps - a.log_steps);
  return a.*value + share * (b.*value - a.*value);
}

double TopOf(const std::vector<Point>& points) {
  double top = 0;
  for (const Point& point : points) top = std::max(top, point.upper);
  return top > 0 ? top : 1;
}

constexpr double kLeft = 76;
constexpr double kRight = 690;
constexpr double kTop = 64;
constexpr double kBottom = 376;

constexpr const char* kLight =
    ".band{fill:#0b62b8;fill-opacity:.18}.line{stroke:#0b62b8}.dot{fill:#0b62b8}";
constexpr const char* kDark = ".band{fill:#64b0ff}.line{stroke:#64b0ff}.dot{fill:#64b0ff}";

class Frame {
 public:
  explicit Frame(const std::vector<Point>& points)
      : first_(points.front().log_steps), last_(points.back().log_steps), top_(TopOf(points)) {
    // One step, and nothing to spread: a decade on each side.
    if (last_ - first_ < 1e-9) {
      first_ -= 0.5;
      last_ += 0.5;
    }
    tick_ = TickDistance(top_, 5);
    top_ = tick_ * std::ceil(top_ / tick_ * (1 - 1e-9));
  }

  double X(double log_steps) const {
    return kLeft + (kRight - kLeft) * (log_steps - first_) / (last_ - first_);
  }
  double Y(double epsilon) const { return kBottom - (kBottom - kTop) * epsilon / top_; }

  std::string Axes() const {
    std::string svg;
    for (int i = 0; i * tick_ <= top_ * (1 + 1e-9); ++i) {
      const double y = Y(i * tick_);
      svg += fmt::format(
          "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n",
          i == 0 ? "axis" : "grid", kLeft, kRight, y, y, kLeft - 9, y + 4.5, i * tick_);
    }
    for (const double tick : StepTicks(first_, last_)) {
      const double x = X(tick);
      const double power = std::round(tick);
      const std::string label =
          tick > 4.5 && std::abs(tick - power) < 1e-9
              ? fmt::format("10<tspan dy=\"-5\" font-size=\"10\">{:.0f}</tspan>", power)
              : fmt::format("{:.0f}", std::pow(10, tick));
      svg += fmt::format(
          "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
          x, x, kBottom, kBottom + 5, x, kBottom + 21, label);
    }
    return svg;
  }

 private:
  double first_;
  double last_;
  double top_;
  double tick_;
};

}  // namespace

std::string CurveText(std::span<const CurvePoint> curve) {
  constexpr int kColumns = 60;
  constexpr int kRows = 12;
  const std::vector<Point> points = FinitePoints(curve);
  if (points.empty()) return "There is no finite epsilon to draw.\n";
  const double top = TopOf(points);
  const double first = points.front().log_steps;
  const double span = points.back().log_steps - first;
  std::vector<std::string> rows(kRows, std::string(kColumns, ' '));
  const auto row_of = [&](double epsilon) {
    const int row = static_cast<int>(std::lround((kRows - 1) * (1 - epsilon / top)));
    return static_cast<std::size_t>(std::clamp(row, 0, kRows - 1));
  };
  for (std::size_t x = 0; x < kColumns; ++x) {
    const double at = first + span * static_cast<double>(x) / (kColumns - 1);
    const std::size_t upper = row_of(Interpolate(points, at, &Point::upper));
    const std::size_t lower = row_of(Interpolate(points, at, &Point::lower));
    for (std::size_t y = upper; y <= lower; ++y) rows[y][x] = y == upper ? '*' : '.';
  }
  std::string text = "epsilon\n";
  for (std::size_t y = 0; y < kRows; ++y) {
    const double label = top * (1 - static_cast<double>(y) / (kRows - 1));
    rows[y].erase(rows[y].find_last_not_of(' ') + 1);
    const std::string axis = y % 4 == 0 || y + 1 == kRows ? fmt::format("{:>9.3g} +", label)
                                                          : std::string(10, ' ') + "|";
    text += rows[y].empty() ? axis + '\n' : axis + rows[y] + '\n';
  }
  const std::string left = fmt::format("{}", curve.front().steps);
  const std::string right = fmt::format("{} steps (log)", curve.back().steps);
  text += std::string(10, ' ') + '+' + std::string(kColumns, '-') + '\n';
  text += fmt::format("{}{}{:>{}}\n", std::string(11, ' '), left, right, kColumns - left.size());
  return text;
}

std::string CurveSvg(std::span<const CurvePoint> curve, const std::string& caption, double delta) {
  const std::vector<Point> points = FinitePoints(curve);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
      "aria-label=\"epsilon against the number of steps\">\n{2}"
      "<rect class=\"back\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n"
      "<text class=\"title\" x=\"{3:.0f}\" y=\"28\">Epsilon spent at delta {4:g}</text>\n"
      "<text class=\"small\" x=\"{3:.0f}\" y=\"46\">{5}</text>\n",
      kSvgWidth, kSvgHeight, SvgStyle(kLight, kDark), kLeft, delta, SvgEscaped(caption));
  if (points.empty()) {
    return svg + fmt::format(
                     "<text x=\"{:.0f}\" y=\"{:.0f}\">There is no finite epsilon to draw.</text>\n"
                     "</svg>\n",
                     kLeft, kTop + 60);
  }
  const Frame frame(points);
  svg += frame.Axes();
  std::string line;
  std::string band;
  for (const Point& point : points) {
    line += fmt::format("{:.2f},{:.2f} ", frame.X(point.log_steps), frame.Y(point.upper));
  }
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    band += fmt::format("{:.2f},{:.2f} ", frame.X(point->log_steps), frame.Y(point->lower));
  }
  const Point& last = points.back();
  svg += fmt::format(
      "<polygon class=\"band\" points=\"{0}{1}\"/>\n<polyline class=\"line\" points=\"{0}\"/>\n"
      "<circle class=\"dot\" cx=\"{2:.2f}\" cy=\"{3:.2f}\" r=\"4\"/>\n"
      "<text x=\"{2:.2f}\" y=\"{4:.2f}\" text-anchor=\"end\">{5}</text>\n"
      "<text x=\"{6:.1f}\" y=\"{7:.1f}\" text-anchor=\"middle\">steps</text>\n"
      "<text x=\"20\" y=\"{8:.1f}\" text-anchor=\"middle\" "
      "transform=\"rotate(-90 20 {8:.1f})\">epsilon</text>\n</svg>\n",
      line, band, frame.X(last.log_steps), frame.Y(last.upper), frame.Y(last.upper) - 10,
      UpperText(last.upper), (kLeft + kRight) / 2, kBottom + 46, (kTop + kBottom) / 2);
  return svg;
}

}  // namespace sordino
