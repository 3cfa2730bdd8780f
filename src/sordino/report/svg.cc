#include "sordino/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/shown_text.h"

namespace sordino {
namespace {

// Widths of a character of the heading, generous.
constexpr double kTitleCharacter = 9;
constexpr double kCaptionCharacter = 6;
constexpr double kHeadingMargin = 12;

}  // namespace

std::string SvgStyle(std::string_view light, std::string_view dark) {
  return fmt::format(
      "<style>text{{font:13px system-ui,sans-serif;fill:#38424c}}.title{{font-size:16px;"
      "font-weight:600;fill:#11181f}}.small{{font-size:11px;fill:#5b6670}}.back{{fill:#ffffff}}"
      ".grid{{stroke:#dfe4e8}}.axis{{stroke:#8a949e}}"
      ".line{{fill:none;stroke-width:2.5;stroke-linejoin:round}}{}\n"
      "@media (prefers-color-scheme:dark){{text{{fill:#c3ccd4}}.title{{fill:#f2f5f7}}"
      ".small{{fill:#98a3ad}}.back{{fill:#14191e}}.grid{{stroke:#2b333a}}"
      ".axis{{stroke:#66717b}}{}}}</style>\n",
      light, dark);
}

std::string SvgOpening(const SvgHeading& heading, std::string_view style, double left) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
      "aria-label=\"{2}\">\n{3}"
      "<rect class=\"back\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
      kSvgWidth, kSvgHeight, heading.label, style);
  const double room = kSvgWidth - left - kHeadingMargin;
  const auto fit = [room](std::string_view text, double character) {
    return SvgFit(text, static_cast<std::size_t>(room / character), room);
  };
  double line_y = 24;
  if (!heading.warning.empty()) {
    svg += fmt::format("<text class=\"warning\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", left,
                       line_y, SvgEscaped(heading.warning));
    line_y += 22;
  }
  return svg + fmt::format(
                   "<text class=\"title\" x=\"{0:.0f}\" y=\"{1:.0f}\"{2}>{3}</text>\n"
                   "<text class=\"small\" x=\"{0:.0f}\" y=\"{4:.0f}\"{5}>{6}</text>\n",
                   left, line_y, fit(heading.title, kTitleCharacter), SvgEscaped(heading.title),
                   line_y + 18, fit(heading.caption, kCaptionCharacter),
                   SvgEscaped(heading.caption));
}

std::string SvgFit(std::string_view text, std::size_t most, double width) {
  const std::string shown = ShownText(text);
  const auto characters = std::count_if(shown.begin(), shown.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  });
  if (static_cast<std::size_t>(characters) <= most) return "";
  return fmt::format(" textLength=\"{:.0f}\" lengthAdjust=\"spacingAndGlyphs\"", width);
}

std::string SvgEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : ShownText(text)) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

double TickDistance(double span, int count) {
  const double raw = span / count;
  const double decade = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= raw * (1 - 1e-9)) return factor * decade;
  }
  return 10 * decade;
}

}  // namespace sordino
