#include "sordino/report/tradeoff_picture.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

// The axes are a square: a curve is symmetric about its diagonal.
constexpr double kTradeoffLeft = 76;
constexpr double kTradeoffTop = 68;
constexpr double kSide = 312;
constexpr double kLegend = kTradeoffLeft + kSide + 28;

constexpr const char* kTradeoffLight =
    ".curve.line{stroke:#0b62b8}.claim.line{stroke:#b25a00;stroke-dasharray:6 4}"
    ".even.line{stroke:#8a949e;stroke-width:1.5;stroke-dasharray:2 4}"
    "text.curve{fill:#0b62b8}text.claim{fill:#b25a00}";
constexpr const char* kTradeoffDark =
    ".curve.line{stroke:#64b0ff}.claim.line{stroke:#ffab57}.even.line{stroke:#66717b}"
    "text.curve{fill:#64b0ff}text.claim{fill:#ffab57}";

double X(double type_one) { return kTradeoffLeft + kSide * type_one; }
double Y(double type_two) { return kTradeoffTop + kSide * (1 - type_two); }

std::string Line(const char* kind, std::span<const TradeoffPoint> points) {
  std::string line;
  for (const TradeoffPoint& point : points) {
    line += fmt::format("{}{:.2f},{:.2f}", line.empty() ? "" : " ", X(point.type_one),
                        Y(point.type_two));
  }
  return fmt::format("<polyline class=\"{} line\" points=\"{}\"/>\n", kind, line);
}

std::string Axes() {
  std::string svg;
  for (int i = 0; i <= 5; ++i) {
    const double share = 0.2 * i;
    svg += fmt::format(
        "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/>\n"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\" text-anchor=\"end\">{6:.1f}</text>\n"
        "<line class=\"{0}\" x1=\"{7:.1f}\" x2=\"{7:.1f}\" y1=\"{8:.1f}\" y2=\"{9:.1f}\"/>\n"
        "<text x=\"{7:.1f}\" y=\"{10:.1f}\" text-anchor=\"middle\">{6:.1f}</text>\n",
        i == 0 ? "axis" : "grid", X(0), X(1), Y(share), X(0) - 9, Y(share) + 4.5, share, X(share),
        Y(1), Y(0), Y(0) + 21);
  }
  return svg + fmt::format(
                   "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\">false positive rate"
                   "</text>\n<text x=\"20\" y=\"{2:.1f}\" text-anchor=\"middle\" "
                   "transform=\"rotate(-90 20 {2:.1f})\">false negative rate</text>\n",
                   X(0.5), Y(0) + 46, Y(0.5));
}

// Four digits that are not below the value: what is shown of an upper bound still holds.
std::string UpperDigits(double value) {
  if (value <= 0) return "0";
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return fmt::format("{:.4g}", unit * std::ceil(value / unit * (1 - 1e-12)));
}

// The corners of max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)).
std::vector<TradeoffPoint> Corners(const PrivacyLine& claim) {
  const double share = 1 - claim.delta;
  const double middle = share / (1 + std::exp(claim.epsilon));
  return {{0, share}, {middle, middle}, {share, 0}, {1, 0}};
}

// The attacker that errs least: the point of the curve where both errors are together smallest.
TradeoffPoint LeastError(std::span<const TradeoffPoint> curve) {
  TradeoffPoint least = curve.front();
  for (const TradeoffPoint& point : curve) {
    if (point.type_one + point.type_two < least.type_one + least.type_two) least = point;
  }
  return least;
}

std::string Legend(std::span<const TradeoffPoint> curve, const std::optional<PrivacyLine>& claim) {
  std::string svg;
  double y = kTradeoffTop + 14;
  const auto say = [&](const char* kind, const std::string& text) {
    svg += fmt::format("<text class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kind, kLegend, y,
                       text);
    y += 20;
  };
  say("curve", "what the mechanism allows");
  if (claim) {
    say("claim", fmt::format("what is claimed: epsilon {},", UpperDigits(claim->epsilon)));
    say("claim", fmt::format("delta {}", UpperDigits(claim->delta)));
  }
  say("small", "dotted: nothing can be told");
  y += 12;
  const TradeoffPoint least = LeastError(curve);
  const double right = 1 - (least.type_one + least.type_two) / 2;
  say("", "Whether one record was in the data,");
  say("", "at even odds, a guess is right at most");
  say("", fmt::format("{:.2f} % of the time.", std::ceil(right * 1e4 * (1 - 1e-12)) / 1e2));
  return svg;
}

}  // namespace

std::string TradeoffSvg(std::span<const TradeoffPoint> curve, std::optional<PrivacyLine> claim,
                        const std::string& caption) {
  const std::vector<TradeoffPoint> even = {{0, 1}, {1, 0}};
  if (claim && !std::isfinite(claim->epsilon)) claim.reset();
  std::string svg =
      SvgOpening({.label = "false negative rate of the best test against its false positive rate",
                  .warning = "",
                  .title = "How well one record can be told",
                  .caption = caption},
                 SvgStyle(kTradeoffLight, kTradeoffDark), kTradeoffLeft);
  svg += Axes() + Line("even", even);
  if (claim) svg += Line("claim", Corners(*claim));
  if (!curve.empty()) svg += Line("curve", curve) + Legend(curve, claim);
  return svg + "</svg>\n";
}

}  // namespace sordino
