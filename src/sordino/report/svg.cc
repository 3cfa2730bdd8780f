#include "sordino/report/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace sordino {

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

std::string SvgEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
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
