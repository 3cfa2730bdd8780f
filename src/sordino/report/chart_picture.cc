#include "sordino/report/chart_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kChartLeft = 76;
constexpr double kChartRight = 520;
constexpr double kRightAxisWidth = 68;  // taken from the chart
constexpr double kChartTop = 72;
constexpr double kChartBottom = 376;
constexpr double kLegendLeft = 540;
constexpr std::size_t kLegendLength = 24;  // characters that fit beside the chart
// Widths of a character, in the sizes of ticks and of the legend.
constexpr double kSmallCharacter = 6;
constexpr double kLegendCharacter = 7;
constexpr std::size_t kLegendRows = 18;
constexpr double kDotRadius = 3;
constexpr double kWideDecades = 2;  // a logarithmic axis that spans as much has whole decades only

// Told apart by lightness too; further curves use them again with dashes.
constexpr std::array<const char*, 8> kCurveColours = {"#0b62b8", "#b25a00", "#1b7f4b", "#a3238e",
                                                      "#6b5b00", "#00798c", "#c0392b", "#5a5f66"};
constexpr std::array<const char*, 8> kDarkCurveColours = {
    "#64b0ff", "#ffab57", "#5fd39a", "#f08be0", "#d9c750", "#5cd0e2", "#ff8a80", "#b5bcc4"};

std::string ColourRules(const std::array<const char*, 8>& colours) {
  std::string rules;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    rules += fmt::format(".c{0}.line,.c{0}.bar{{stroke:{1}}}.c{0}.dot,text.c{0}{{fill:{1}}}", i,
                         colours[i]);
  }
  return rules;
}

// From values to [0, 1], with its ticks.
class ChartScale {
 public:
  ChartScale(const ChartAxis& axis, double least, double most) : logarithmic_(axis.logarithmic) {
    if (!axis.names.empty()) {
      low_ = -0.5;
      high_ = static_cast<double>(axis.names.size()) - 0.5;
      for (std::size_t i = 0; i < axis.names.size(); ++i) {
        ticks_.push_back({static_cast<double>(i), axis.names[i]});
      }
    } else if (logarithmic_) {
      SetLogarithmic(least, most);
    } else {
      SetLinear(least, most);
    }
  }

  struct Tick {
    double value;
    std::string label;
  };
  const std::vector<Tick>& ticks() const { return ticks_; }

  bool Shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  double Share(double value) const {
    const double at = logarithmic_ ? std::log10(std::max(value, 1e-300)) : value;
    return std::clamp((at - low_) / (high_ - low_), 0.0, 1.0);
  }

 private:
  void SetLinear(double least, double most) {
    const double span = most > least ? most - least : std::max(1e-9, std::abs(most) * 0.1);
    const double distance = TickDistance(span, 5);
    low_ = distance * std::floor(least / distance + 1e-9);
    high_ = distance * std::ceil(most / distance - 1e-9);
    if (high_ <= low_) high_ = low_ + distance;
    const auto count = static_cast<int>(std::lround((high_ - low_) / distance));
    for (int i = 0; i <= count; ++i) {
      // Rounded, so that a tick at zero is not 1e-17.
      const double value = distance * std::round(low_ / distance + i);
      ticks_.push_back({value, fmt::format("{:.6g}", value)});
    }
  }

  void SetLogarithmic(double least, double most) {
    low_ = std::floor(std::log10(least) + 1e-9);
    high_ = std::ceil(std::log10(most) - 1e-9);
    if (high_ <= low_) high_ = low_ + 1;
    const bool wide = high_ - low_ > kWideDecades;
    const double step = wide ? std::ceil((high_ - low_) / 7) : 1;
    for (double power = low_; power <= high_ + 1e-9; power += step) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10, power);
        if ((wide && factor > 1) || std::log10(value) > high_ + 1e-9) continue;
        ticks_.push_back({value, fmt::format("{:g}", value)});
      }
    }
  }

  bool logarithmic_;
  double low_ = 0;
  double high_ = 1;
  std::vector<Tick> ticks_;
};

// Where the chart ends and a right axis begins.
double ChartEnd(const ChartPicture& picture) {
  return picture.right ? kChartRight - kRightAxisWidth : kChartRight;
}

// The scales of a picture.
struct ChartScales {
  ChartScale x;
  ChartScale y;
  ChartScale right;
  double end;

  const ChartScale& Of(const ChartCurve& curve) const { return curve.on_right ? right : y; }
};

double ChartX(const ChartScales& scales, double value) {
  return kChartLeft + (scales.end - kChartLeft) * scales.x.Share(value);
}
double ChartY(const ChartScale& scale, double value) {
  return kChartBottom - (kChartBottom - kChartTop) * scale.Share(value);
}

// Ticks beside the chart: on its left with lines across it, or on its right.
std::string VerticalTicks(const ChartScale& scale, double end, bool on_right) {
  std::string svg;
  for (const ChartScale::Tick& tick : scale.ticks()) {
    const double at = ChartY(scale, tick.value);
    const std::string label = SvgEscaped(tick.label);
    svg += on_right ? fmt::format(
                          "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" "
                          "y2=\"{2:.1f}\"/>\n<text x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
                          end, end + 5, at, end + 9, at + 4.5, label)
                    : fmt::format(
                          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" "
                          "y2=\"{2:.1f}\"/>\n<text x=\"{3:.1f}\" y=\"{4:.1f}\" "
                          "text-anchor=\"end\">{5}</text>\n",
                          kChartLeft, end, at, kChartLeft - 8, at + 4.5, label);
  }
  return svg;
}

std::string HorizontalTicks(const ChartPicture& picture, const ChartScales& scales) {
  const bool named = !picture.x.names.empty();
  const std::size_t longest =
      named ? std::size_t{56} / std::max<std::size_t>(1, scales.x.ticks().size()) : 12;
  std::string svg;
  for (const ChartScale::Tick& tick : scales.x.ticks()) {
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n"
        "<text class=\"{5}\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\"{6}>{4}</text>\n",
        ChartX(scales, tick.value), kChartBottom, kChartBottom + 5, kChartBottom + 21,
        SvgEscaped(tick.label), named ? "small" : "",
        SvgFit(tick.label, longest, kSmallCharacter * static_cast<double>(longest)));
  }
  return svg;
}

// Upright, beside its axis.
std::string AxisLabel(double x, const std::string& label) {
  return fmt::format(
      "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\" "
      "transform=\"rotate(-90 {0:.1f} {1:.1f})\">{2}</text>\n",
      x, (kChartTop + kChartBottom) / 2, SvgEscaped(label));
}

std::string AxesSvg(const ChartPicture& picture, const ChartScales& scales) {
  std::string svg = VerticalTicks(scales.y, scales.end, false) + AxisLabel(16, picture.y.label);
  if (picture.right) {
    svg += VerticalTicks(scales.right, scales.end, true) +
           AxisLabel(kChartRight - 2, picture.right->label) +
           fmt::format(
               "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
               "y2=\"{2:.1f}\"/>\n",
               scales.end, kChartTop, kChartBottom);
  }
  return svg + HorizontalTicks(picture, scales) +
         fmt::format(
             "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n"
             "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"middle\">{5}</text>\n",
             kChartLeft, scales.end, kChartBottom, (kChartLeft + scales.end) / 2, kChartBottom + 46,
             SvgEscaped(picture.x.label));
}

std::string CurveSvg(const ChartPicture& picture, std::size_t index, const ChartScales& scales) {
  const ChartCurve& curve = picture.curves[index];
  const ChartScale& y = scales.Of(curve);
  const std::size_t colour = index % kCurveColours.size();
  // Dashed where colours are used again, and where the axis is the other one.
  const bool dashed = index >= kCurveColours.size() || curve.on_right;
  std::string line;
  std::string marks;
  for (const ChartPoint& point : curve.points) {
    if (!scales.x.Shows(point.x) || !y.Shows(point.y)) continue;
    const double at = ChartX(scales, point.x);
    line += fmt::format("{:.2f},{:.2f} ", at, ChartY(y, point.y));
    if (point.deviation > 0) {
      marks += fmt::format(
          "<line class=\"c{0} bar\" x1=\"{1:.2f}\" x2=\"{1:.2f}\" y1=\"{2:.2f}\" "
          "y2=\"{3:.2f}\"/>\n",
          colour, at, ChartY(y, point.y - point.deviation), ChartY(y, point.y + point.deviation));
    }
    marks += fmt::format("<circle class=\"c{} dot\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\"/>\n",
                         colour, at, ChartY(y, point.y), kDotRadius);
  }
  if (line.empty()) return "";
  line.pop_back();
  const std::string joined =
      picture.joined ? fmt::format("<polyline class=\"c{} line\" points=\"{}\"{}/>\n", colour, line,
                                   dashed ? " stroke-dasharray=\"6 4\"" : "")
                     : "";
  return joined + marks;
}

std::string LegendName(const ChartCurve& curve) {
  constexpr std::string_view kOnRight = " (right)";
  return curve.on_right ? fmt::format("{}{}", curve.name, kOnRight) : curve.name;
}

std::string LegendSvg(const ChartPicture& picture) {
  std::string svg;
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    const double at = kChartTop + 8 + 17 * static_cast<double>(std::min(i, kLegendRows));
    if (i == kLegendRows) {
      return svg +
             fmt::format("<text class=\"small\" x=\"{:.0f}\" y=\"{:.1f}\">and {} more</text>\n",
                         kLegendLeft, at, picture.curves.size() - i);
    }
    const std::string name = LegendName(picture.curves[i]);
    svg += fmt::format(
        "<circle class=\"c{0} dot\" cx=\"{1:.0f}\" cy=\"{2:.1f}\" r=\"4\"/>\n"
        "<text class=\"c{0}\" x=\"{3:.0f}\" y=\"{4:.1f}\"{6}>{5}</text>\n",
        i % kCurveColours.size(), kLegendLeft, at, kLegendLeft + 10, at + 4.5, SvgEscaped(name),
        SvgFit(name, kLegendLength, kLegendCharacter * static_cast<double>(kLegendLength)));
  }
  return svg;
}

struct ChartRange {
  double least = HUGE_VAL;
  double most = -HUGE_VAL;

  void Take(double value, bool logarithmic) {
    if (!std::isfinite(value) || (logarithmic && !(value > 0))) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return !(least <= most); }
  // From 0.1 to 1 where there is nothing.
  ChartScale ScaleOf(const ChartAxis& axis) const {
    return empty() ? ChartScale(axis, 0.1, 1) : ChartScale(axis, least, most);
  }
};

}  // namespace

std::string ChartSvg(const ChartPicture& picture) {
  std::string svg = SvgOpening({.label = "curves of an experiment",
                                .warning = "",
                                .title = picture.title,
                                .caption = picture.caption},
                               SvgStyle(ColourRules(kCurveColours) + ".bar{stroke-width:1.5}",
                                        ColourRules(kDarkCurveColours)),
                               kChartLeft);
  ChartRange xs;
  ChartRange ys;
  ChartRange rights;
  for (const ChartCurve& curve : picture.curves) {
    ChartRange& range = curve.on_right ? rights : ys;
    const bool logarithmic = (curve.on_right ? picture.right.value() : picture.y).logarithmic;
    for (const ChartPoint& point : curve.points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      xs.Take(point.x, picture.x.logarithmic);
      range.Take(point.y, logarithmic);
      range.Take(point.y - point.deviation, logarithmic);
      range.Take(point.y + point.deviation, logarithmic);
    }
  }
  if (xs.empty() || (ys.empty() && rights.empty())) {
    return svg + fmt::format(
                     "<text x=\"{:.0f}\" y=\"{:.0f}\">There is nothing to draw yet.</text>\n"
                     "</svg>\n",
                     kChartLeft, kChartTop + 60);
  }
  const ChartScales scales = {.x = xs.ScaleOf(picture.x),
                              .y = ys.ScaleOf(picture.y),
                              .right = rights.ScaleOf(picture.right.value_or(ChartAxis())),
                              .end = ChartEnd(picture)};
  svg += AxesSvg(picture, scales);
  for (std::size_t i = 0; i < picture.curves.size(); ++i) svg += CurveSvg(picture, i, scales);
  return svg + LegendSvg(picture) + "</svg>\n";
}

}  // namespace sordino
