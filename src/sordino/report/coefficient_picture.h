// A picture of fitted coefficients: a bar for each, with the noise on it where it is known.
#ifndef SORDINO_REPORT_COEFFICIENT_PICTURE_H_
#define SORDINO_REPORT_COEFFICIENT_PICTURE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sordino {

// How many bars are drawn at most: those of the largest values.
inline constexpr std::size_t kMaxCoefficientBars = 24;

struct CoefficientBar {
  std::string name;  // any text
  double value = 0;
  std::optional<double> deviation;  // standard deviation of the noise
};

struct CoefficientPicture {
  std::vector<CoefficientBar> bars;
  std::string title;
  std::string caption;
  std::string warning;  // in red above everything; empty: none
};

// A self-contained SVG that follows the reader's choice of light or dark. Lines through the ends of
// bars reach two deviations to either side.
std::string CoefficientSvg(const CoefficientPicture& picture);

}  // namespace sordino

#endif  // SORDINO_REPORT_COEFFICIENT_PICTURE_H_
