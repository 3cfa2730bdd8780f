#include "sordino/report/ledger_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <string_view>
#include <vector>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kLedgerLeft = 76;
constexpr double kLedgerRight = 644;
constexpr double kLedgerTop = 92;
constexpr double kLedgerBottom = 330;
constexpr double kLegendTop = 386;
constexpr double kLegendLine = 19;

// Runs beyond the last colour share it.
constexpr std::size_t kColours = 6;
constexpr std::array<std::string_view, kColours> kLightColours = {"#0b62b8", "#b25a00", "#1a7f4b",
                                                                  "#8e3fa8", "#00798a", "#6b7580"};
constexpr std::array<std::string_view, kColours> kDarkColours = {"#64b0ff", "#ffab57", "#63d297",
                                                                 "#d59bea", "#5fd0e0", "#a7b1ba"};
// Wider than the picture is in pixels nothing more can be seen.
constexpr std::size_t kMaxSteps = 500;
constexpr std::size_t kLongestName = 44;

std::string Style() {
  std::string light =
      ".warning{font-weight:700;fill:#b3261e}.budget{stroke:#b3261e;stroke-width:1.5}"
      "text.budget{fill:#b3261e;stroke:none}.area{opacity:.16;stroke:none}"
      ".epsilon.line{stroke:#38424c;stroke-width:1.5;stroke-dasharray:2 4}";
  std::string dark =
      ".warning{fill:#ff8a80}.budget{stroke:#ff8a80}text.budget{fill:#ff8a80}.area{opacity:.26}"
      ".epsilon.line{stroke:#c3ccd4}";
  for (std::size_t i = 0; i < kColours; ++i) {
    constexpr const char* kRules = ".line.run{0}{{stroke:{1}}}.area.run{0},.key.run{0}{{fill:{1}}}";
    light += fmt::format(fmt::runtime(kRules), i, kLightColours[i]);
    dark += fmt::format(fmt::runtime(kRules), i, kDarkColours[i]);
  }
  return SvgStyle(light, dark);
}

// The number of a run's colour by its name.
using Colours = std::map<std::string, std::size_t, std::less<>>;

std::vector<std::string> NamesInOrder(std::span<const LedgerPoint> points, Colours& colours) {
  std::vector<std::string> names;
  for (const LedgerPoint& point : points) {
    if (!colours.emplace(point.run, std::min(names.size(), kColours - 1)).second) continue;
    names.push_back(point.run);
  }
  return names;
}

struct LedgerAxes {
  double steps;   // charges from left to right
  double budget;  // epsilon of the whole budget, or of the top where there is none
  bool has_budget;
  bool has_epsilon;  // of at least one charge
  double top;        // parts of the budget at the upper end

  double X(double step) const { return kLedgerLeft + (kLedgerRight - kLedgerLeft) * step / steps; }
  double Y(double part) const { return kLedgerBottom - (kLedgerBottom - kLedgerTop) * part / top; }
  double EpsilonY(double epsilon) const { return Y(epsilon / budget); }
};

double Drawn(double used) { return std::isfinite(used) ? std::max(used, 0.0) : 0; }

bool HasEpsilon(const LedgerPoint& point) { return point.epsilon && std::isfinite(*point.epsilon); }

LedgerAxes MakeAxes(std::span<const LedgerPoint> points, double budget) {
  double used = 1;
  double epsilon = 0;
  bool has_epsilon = false;
  for (const LedgerPoint& point : points) {
    used = std::max(used, Drawn(point.used));
    if (!HasEpsilon(point)) continue;
    has_epsilon = true;
    epsilon = std::max(epsilon, *point.epsilon);
  }
  const bool has_budget = budget > 0 && std::isfinite(budget);
  if (!has_budget) budget = epsilon > 0 ? epsilon : 1;
  // A little room above the line of the budget, for its words.
  return {.steps = static_cast<double>(points.size()),
          .budget = budget,
          .has_budget = has_budget,
          .has_epsilon = has_epsilon,
          .top = 1.08 * std::max(used, epsilon / budget)};
}

std::string Day(std::int64_t milliseconds) {
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string UsedAxis(const LedgerAxes& axes) {
  std::string svg;
  if (!axes.has_budget) return svg;
  const double tick = TickDistance(axes.top / 1.08, 5);
  for (int i = 0; i * tick <= axes.top; ++i) {
    const double y = axes.Y(i * tick);
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}%</text>\n",
        i == 0 ? "axis" : "grid", kLedgerLeft, kLedgerRight, y, y, kLedgerLeft - 9, y + 4.5,
        std::round(i * tick * 1e6) / 1e4);
  }
  return svg + fmt::format(
                   "<text x=\"18\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 18 "
                   "{0:.1f})\">used of the budget</text>\n",
                   (kLedgerTop + kLedgerBottom) / 2);
}

std::string EpsilonAxis(const LedgerAxes& axes) {
  std::string svg;
  if (!axes.has_epsilon) return svg;
  const double most = axes.budget * axes.top;
  const double tick = TickDistance(most / 1.08, 5);
  for (int i = 0; i * tick <= most; ++i) {
    const double y = axes.EpsilonY(i * tick);
    if (!axes.has_budget) {
      svg += fmt::format(
          "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
          i == 0 ? "axis" : "grid", kLedgerLeft, kLedgerRight, y, y);
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{:.4g}</text>\n", kLedgerRight + 9, y + 4.5,
                       i * tick);
  }
  return svg + fmt::format(
                   "<text x=\"704\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(90 704 "
                   "{0:.1f})\">composed epsilon (dotted)</text>\n",
                   (kLedgerTop + kLedgerBottom) / 2);
}

std::string ChargeAxis(const LedgerAxes& axes, std::span<const LedgerPoint> points) {
  std::string svg;
  // The number of a charge stands below its step, so only whole distances make sense.
  const double tick = std::max(1.0, TickDistance(axes.steps, 8));
  for (double step = tick; step <= axes.steps; step += tick) {
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
        axes.X(step), kLedgerBottom, kLedgerBottom + 5, kLedgerBottom + 20, step);
  }
  const std::string first = Day(points.front().time);
  const std::string last = Day(points.back().time);
  return svg +
         fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">charges, {}</text>\n",
                     (kLedgerLeft + kLedgerRight) / 2, kLedgerBottom + 40,
                     first == last ? first : fmt::format("{} to {}", first, last));
}

// The staircase: what was used before a charge at its left end, what is used after it from there.
// Neighbouring charges of one run are one line.
std::string Staircase(const LedgerAxes& axes, std::span<const LedgerPoint> points,
                      const Colours& colours) {
  if (!axes.has_budget) return "";
  const std::size_t stride = (points.size() + kMaxSteps - 1) / kMaxSteps;
  std::string areas;
  std::string lines;
  double before = 0;
  for (std::size_t begin = 0; begin < points.size();) {
    const std::size_t colour = colours.at(points[begin].run);
    std::string line =
        fmt::format("{:.2f},{:.2f}", axes.X(static_cast<double>(begin)), axes.Y(before));
    std::size_t i = begin;
    for (; i < points.size() && points[i].run == points[begin].run; ++i) {
      before = Drawn(points[i].used);
      const bool last = i + 1 == points.size() || points[i + 1].run != points[begin].run;
      if (i % stride != 0 && !last) continue;
      const auto step = static_cast<double>(i);
      line += fmt::format(" {0:.2f},{2:.2f} {1:.2f},{2:.2f}", axes.X(step), axes.X(step + 1),
                          axes.Y(before));
    }
    areas += fmt::format(
        "<polygon class=\"area run{0}\" points=\"{1:.2f},{3:.2f} {2} {4:.2f},"
        "{3:.2f}\"/>\n",
        colour, axes.X(static_cast<double>(begin)), line, kLedgerBottom,
        axes.X(static_cast<double>(i)));
    lines += fmt::format("<polyline class=\"line run{}\" points=\"{}\"/>\n", colour, line);
    begin = i;
  }
  return areas + lines;
}

std::string EpsilonLine(const LedgerAxes& axes, std::span<const LedgerPoint> points) {
  if (!axes.has_epsilon) return "";
  std::string line = fmt::format("{:.2f},{:.2f}", axes.X(0), axes.EpsilonY(0));
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!HasEpsilon(points[i])) continue;
    line += fmt::format(" {:.2f},{:.2f}", axes.X(static_cast<double>(i + 1)),
                        axes.EpsilonY(*points[i].epsilon));
  }
  return fmt::format("<polyline class=\"epsilon line\" points=\"{}\"/>\n", line);
}

std::string BudgetLine(const LedgerAxes& axes) {
  if (!axes.has_budget) return "";
  const double y = axes.Y(1);
  return fmt::format(
      "<line class=\"budget\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n"
      "<text class=\"budget\" x=\"{3:.1f}\" y=\"{4:.1f}\">the whole budget</text>\n",
      kLedgerLeft, kLedgerRight, y, kLedgerLeft + 6, y - 5);
}

std::string Legend(const std::vector<std::string>& names) {
  std::string svg;
  for (std::size_t i = 0; i < std::min(names.size(), kColours); ++i) {
    const double x = i % 2 == 0 ? kLedgerLeft : (kLedgerLeft + kLedgerRight) / 2;
    const std::size_t row = i / 2;
    const double y = kLegendTop + kLegendLine * static_cast<double>(row);
    const bool shared = i + 1 == kColours && names.size() > kColours;
    svg += fmt::format(
        "<rect class=\"key run{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" "
        "rx=\"2\"/>\n<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n",
        i, x, y, x + 17, y + 9.5,
        shared ? "" : SvgFit(names[i], kLongestName, (kLedgerRight - kLedgerLeft) / 2 - 24),
        shared ? fmt::format("{} more", names.size() - kColours + 1) : SvgEscaped(names[i]));
  }
  return svg;
}

}  // namespace

std::string LedgerSvg(std::span<const LedgerPoint> points, const LedgerPictureText& text) {
  std::string svg = SvgOpening({.label = "used part of a privacy budget, charge by charge",
                                .warning = text.warning,
                                .title = text.title,
                                .caption = text.caption},
                               Style(), kLedgerLeft);
  if (points.empty()) {
    return svg + fmt::format(
                     "<text x=\"{:.0f}\" y=\"{:.0f}\">Nothing was charged yet.</text>\n"
                     "</svg>\n",
                     kLedgerLeft, kLedgerTop + 60);
  }
  Colours colours;
  const std::vector<std::string> names = NamesInOrder(points, colours);
  const LedgerAxes axes = MakeAxes(points, text.epsilon);
  svg += UsedAxis(axes) + EpsilonAxis(axes) + ChargeAxis(axes, points);
  svg += Staircase(axes, points, colours) + EpsilonLine(axes, points) + BudgetLine(axes);
  return svg + (axes.has_budget ? Legend(names) : "") + "</svg>\n";
}

}  // namespace sordino
