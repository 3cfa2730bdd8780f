// Epsilon against the number of steps, drawn for a terminal and as an SVG file. The horizontal axis
// is logarithmic; the line is the upper bound, which is what is spent.
#ifndef SORDINO_CLI_CURVE_PICTURE_H_
#define SORDINO_CLI_CURVE_PICTURE_H_

#include <span>
#include <string>

#include "sordino/cli/epsilon_curve.h"

namespace sordino {

// Plain characters, 72 columns wide, ending in a line break; one sentence where there is nothing
// finite to draw.
std::string CurveText(std::span<const CurvePoint> curve);

// A self-contained SVG that follows the reader's choice of light or dark. The caption may hold any
// text.
std::string CurveSvg(std::span<const CurvePoint> curve, const std::string& caption, double delta);

}  // namespace sordino

#endif  // SORDINO_CLI_CURVE_PICTURE_H_
