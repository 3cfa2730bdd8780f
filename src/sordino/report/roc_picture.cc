#include "sordino/report/roc_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kRocLeft = 76;
constexpr double kRocTop = 68;
constexpr double kRocSide = 312;
constexpr double kRocLegend = kRocLeft + kRocSide + 28;
constexpr int kDecades = 4;         // of both axes, down from 1
constexpr int kLimitPoints = 96;    // of the border of what is claimed
constexpr double kMinShift = 0.25;  // points closer than this, in units of the picture, are joined

constexpr const char* kRocLight =
    ".limit{fill:#0b62b8;fill-opacity:.12;stroke:#0b62b8;stroke-opacity:.5}"
    ".even.line{stroke:#8a949e;stroke-width:1.5;stroke-dasharray:2 4}"
    ".c0.line{stroke:#b25a00}.c1.line{stroke:#0a7d4f}.c2.line{stroke:#8a3ab9}"
    ".c3.line{stroke:#b3261e}.c4.line{stroke:#5c6670}.c5.line{stroke:#806000}"
    "text.limits{fill:#0b62b8}text.c0{fill:#b25a00}text.c1{fill:#0a7d4f}text.c2{fill:#8a3ab9}"
    "text.c3{fill:#b3261e}text.c4{fill:#5c6670}text.c5{fill:#806000}";
constexpr const char* kRocDark =
    ".limit{fill:#64b0ff;fill-opacity:.16;stroke:#64b0ff}.even.line{stroke:#66717b}"
    ".c0.line{stroke:#ffab57}.c1.line{stroke:#5fd3a0}.c2.line{stroke:#d29bf2}"
    ".c3.line{stroke:#ff8f85}.c4.line{stroke:#a8b2bb}.c5.line{stroke:#e0c060}"
    "text.limits{fill:#64b0ff}text.c0{fill:#ffab57}text.c1{fill:#5fd3a0}text.c2{fill:#d29bf2}"
    "text.c3{fill:#ff8f85}text.c4{fill:#a8b2bb}text.c5{fill:#e0c060}";

// A rate on a logarithmic axis, from 0 for 10^-kDecades and less to 1.
double Share(double rate) {
  return std::clamp(1 + std::log10(std::max(rate, 1e-300)) / kDecades, 0.0, 1.0);
}
double RocX(double rate) { return kRocLeft + kRocSide * Share(rate); }
double RocY(double rate) { return kRocTop + kRocSide * (1 - Share(rate)); }

// Corners of the steps that a curve of finitely many scores has, without those that nobody sees.
std::string RocPoints(const std::vector<std::pair<double, double>>& points) {
  std::string line;
  double last_x = -1;
  double last_y = -1;
  for (const auto& [false_rate, true_rate] : points) {
    const double x = RocX(false_rate);
    const double y = RocY(true_rate);
    if (std::abs(x - last_x) < kMinShift && std::abs(y - last_y) < kMinShift) continue;
    line += fmt::format("{}{:.2f},{:.2f}", line.empty() ? "" : " ", x, y);
    last_x = x;
    last_y = y;
  }
  return line;
}

std::string LimitArea(const std::vector<PrivacyLine>& claim) {
  std::vector<std::pair<double, double>> border;
  for (int i = 0; i <= kLimitPoints; ++i) {
    const double rate = std::pow(10.0, kDecades * (static_cast<double>(i) / kLimitPoints - 1));
    border.emplace_back(rate, 1 - ProfileTradeoff(claim, rate));
  }
  return fmt::format("<polygon class=\"limit\" points=\"{} {:.2f},{:.2f} {:.2f},{:.2f}\"/>\n",
                     RocPoints(border), RocX(1), RocY(0), RocX(0), RocY(0));
}

std::string RocAxes() {
  std::string svg;
  for (int i = 0; i <= kDecades; ++i) {
    const double rate = std::pow(10.0, i - kDecades);
    const std::string label = i == kDecades ? "1" : fmt::format("{:g}", rate);
    svg += fmt::format(
        "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/>\n"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\" text-anchor=\"end\">{6}</text>\n"
        "<line class=\"{0}\" x1=\"{7:.1f}\" x2=\"{7:.1f}\" y1=\"{8:.1f}\" y2=\"{9:.1f}\"/>\n"
        "<text x=\"{7:.1f}\" y=\"{10:.1f}\" text-anchor=\"middle\">{6}</text>\n",
        i == 0 ? "axis" : "grid", kRocLeft, kRocLeft + kRocSide, RocY(rate), kRocLeft - 9,
        RocY(rate) + 4.5, label, RocX(rate), kRocTop, kRocTop + kRocSide, kRocTop + kRocSide + 21);
  }
  return svg + fmt::format(
                   "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\">false positive rate"
                   "</text>\n<text x=\"20\" y=\"{2:.1f}\" text-anchor=\"middle\" "
                   "transform=\"rotate(-90 20 {2:.1f})\">true positive rate</text>\n",
                   kRocLeft + kRocSide / 2, kRocTop + kRocSide + 46, kRocTop + kRocSide / 2);
}

}  // namespace

std::string RocSvg(const RocPicture& picture) {
  std::string svg =
      SvgOpening({.label = "true positive rate of an attack against its false positive rate",
                  .warning = "",
                  .title = picture.title,
                  .caption = picture.caption},
                 SvgStyle(kRocLight, kRocDark), kRocLeft);
  if (!picture.claim.empty()) svg += LimitArea(picture.claim);
  svg += RocAxes();
  std::vector<std::pair<double, double>> even;
  for (int i = 0; i <= kDecades; ++i) {
    even.emplace_back(std::pow(10.0, i - kDecades), std::pow(10.0, i - kDecades));
  }
  svg += fmt::format("<polyline class=\"even line\" points=\"{}\"/>\n", RocPoints(even));
  double y = kRocTop + 14;
  const auto say = [&](const std::string& kind, const std::string& text) {
    svg += fmt::format("<text class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kind, kRocLegend,
                       y, SvgEscaped(text));
    y += 20;
  };
  const std::size_t curves = std::min(picture.curves.size(), kMaxRocCurves);
  for (std::size_t i = 0; i < curves; ++i) {
    const std::string kind = fmt::format("c{}", i);
    svg += fmt::format("<polyline class=\"{} line\" points=\"{}\"/>\n", kind,
                       RocPoints(picture.curves[i].points));
    say(kind, picture.curves[i].name);
  }
  if (!picture.claim.empty()) say("limits", "shaded: what is claimed allows");
  say("small", "dotted: guesses");
  return svg + "</svg>\n";
}

}  // namespace sordino
