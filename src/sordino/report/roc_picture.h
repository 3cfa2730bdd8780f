// A picture of an attack: true against false positive rates on logarithmic axes, with what the
// claimed privacy allows shaded. An attack that leaves the shaded part contradicts the claim.
#ifndef SORDINO_REPORT_ROC_PICTURE_H_
#define SORDINO_REPORT_ROC_PICTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/tradeoff.h"

namespace sordino {

struct RocCurve {
  std::string name;
  // Pairs of false and true positive rates, rising.
  std::vector<std::pair<double, double>> points;
};

struct RocPicture {
  std::string title;
  std::string caption;
  std::vector<RocCurve> curves;  // at most kMaxRocCurves are drawn
  // What is claimed; empty: nothing is shaded.
  std::vector<PrivacyLine> claim;
};

inline constexpr std::size_t kMaxRocCurves = 6;

// A self-contained SVG that follows the reader's choice of light or dark.
std::string RocSvg(const RocPicture& picture);

}  // namespace sordino

#endif  // SORDINO_REPORT_ROC_PICTURE_H_
