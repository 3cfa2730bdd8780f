// What the SVG pictures of the project share: their size, their look, and ticks.
#ifndef SORDINO_REPORT_SVG_H_
#define SORDINO_REPORT_SVG_H_

#include <string>
#include <string_view>

namespace sordino {

inline constexpr double kSvgWidth = 720;
inline constexpr double kSvgHeight = 440;

// A <style> element for text, background, grid and axes that follows the reader's choice of light
// or dark, with rules of a picture's own for either.
std::string SvgStyle(std::string_view light, std::string_view dark);

// What stands above the curves: a warning in red where there is one, a title, and a line below it.
struct SvgHeading {
  std::string_view label;  // for readers that do not see the picture
  std::string_view warning;
  std::string_view title;
  std::string_view caption;
};
// The beginning of a picture, up to its heading at the left edge of its axes.
std::string SvgOpening(const SvgHeading& heading, std::string_view style, double left);

// Text as it stands between tags.
std::string SvgEscaped(std::string_view text);

// Attributes of a <text> that may be longer than its place: beyond `most` characters it is drawn
// narrower, into `width`, and never cut. Empty where it fits.
std::string SvgFit(std::string_view text, std::size_t most, double width);

// The distance of about `count` round ticks over a span > 0: 1, 2 or 5 times a power of ten.
double TickDistance(double span, int count);

}  // namespace sordino

#endif  // SORDINO_REPORT_SVG_H_
