#include "sordino/report/coefficient_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kBarsLeft = 220;
constexpr double kBarsRight = 690;
constexpr double kBarsTop = 84;
constexpr double kBarsBottom = 392;
constexpr std::size_t kMaxName = 30;

constexpr const char* kBarsLight =
    ".warning{font-weight:700;fill:#b3261e}.bar{fill:#0b62b8}.noise{stroke:#b25a00;stroke-width:2}";
constexpr const char* kBarsDark =
    ".warning{fill:#ff8a80}.bar{fill:#64b0ff}.noise{stroke:#ffab57;stroke-width:2}";

// Those of the largest values, in the order in which they were given.
std::vector<CoefficientBar> Shown(const std::vector<CoefficientBar>& bars) {
  if (bars.size() <= kMaxCoefficientBars) return bars;
  std::vector<double> sizes;
  sizes.reserve(bars.size());
  for (const CoefficientBar& bar : bars) sizes.push_back(std::abs(bar.value));
  const auto last = sizes.begin() + static_cast<std::ptrdiff_t>(kMaxCoefficientBars) - 1;
  std::nth_element(sizes.begin(), last, sizes.end(), std::greater<>());
  std::vector<CoefficientBar> shown;
  for (const CoefficientBar& bar : bars) {
    if (std::abs(bar.value) >= *last && shown.size() < kMaxCoefficientBars) shown.push_back(bar);
  }
  return shown;
}

class BarAxis {
 public:
  explicit BarAxis(const std::vector<CoefficientBar>& bars) {
    for (const CoefficientBar& bar : bars) {
      const double reach = 2 * bar.deviation.value_or(0);
      low_ = std::min(low_, bar.value - reach);
      high_ = std::max(high_, bar.value + reach);
    }
    if (!(high_ > low_)) high_ = low_ + 1;
  }

  double X(double value) const {
    return kBarsLeft + (value - low_) / (high_ - low_) * (kBarsRight - kBarsLeft);
  }

  std::string Ticks() const {
    std::string svg;
    const double distance = TickDistance(high_ - low_, 5);
    for (double at = std::ceil(low_ / distance) * distance; at <= high_; at += distance) {
      const double shown = std::abs(at) < distance / 2 ? 0 : at;
      svg += fmt::format(
          "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{3:.1f}\"/>\n"
          "<text x=\"{1:.1f}\" y=\"{4:.1f}\" text-anchor=\"middle\">{5:g}</text>\n",
          shown == 0 ? "axis" : "grid", X(shown), kBarsTop, kBarsBottom, kBarsBottom + 18, shown);
    }
    return svg;
  }

 private:
  double low_ = 0;
  double high_ = 0;
};

std::string BarSvg(const CoefficientBar& bar, const BarAxis& axis, double y, double height) {
  const double from = std::min(axis.X(0), axis.X(bar.value));
  const double to = std::max(axis.X(0), axis.X(bar.value));
  std::string svg = fmt::format(
      "<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\"{}>{}</text>\n"
      "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n",
      kBarsLeft - 8, y + height / 2 + 4, SvgFit(bar.name, kMaxName, kBarsLeft - 16),
      SvgEscaped(bar.name), from, y + 0.15 * height, to - from, 0.7 * height);
  if (bar.deviation) {
    svg += fmt::format(
        "<line class=\"noise\" x1=\"{0:.2f}\" x2=\"{1:.2f}\" y1=\"{2:.2f}\" y2=\"{2:.2f}\"/>\n",
        axis.X(bar.value - 2 * *bar.deviation), axis.X(bar.value + 2 * *bar.deviation),
        y + height / 2);
  }
  return svg;
}

}  // namespace

std::string CoefficientSvg(const CoefficientPicture& picture) {
  const std::vector<CoefficientBar> bars = Shown(picture.bars);
  std::string svg = SvgOpening({.label = "fitted coefficients with the noise on them",
                                .warning = picture.warning,
                                .title = picture.title,
                                .caption = picture.caption},
                               SvgStyle(kBarsLight, kBarsDark), 20);
  const BarAxis axis(bars);
  svg += axis.Ticks();
  const double height =
      std::min(24.0, (kBarsBottom - kBarsTop) / std::max(1.0, static_cast<double>(bars.size())));
  double y = kBarsTop;
  for (const CoefficientBar& bar : bars) {
    svg += BarSvg(bar, axis, y, height);
    y += height;
  }
  const bool has_noise = std::any_of(bars.begin(), bars.end(),
                                     [](const CoefficientBar& bar) { return bar.deviation; });
  std::string note = has_noise ? "lines: two standard deviations of the noise to either side" : "";
  if (bars.size() < picture.bars.size()) {
    note += fmt::format("{}the {} largest of {} coefficients", note.empty() ? "" : "; ",
                        bars.size(), picture.bars.size());
  }
  return svg + fmt::format("<text class=\"small\" x=\"20\" y=\"432\">{}</text>\n</svg>\n", note);
}

}  // namespace sordino
