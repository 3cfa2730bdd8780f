// A picture of a training run: accuracy on the public test set and epsilon spent, against steps.
#ifndef SORDINO_REPORT_RUN_PICTURE_H_
#define SORDINO_REPORT_RUN_PICTURE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sordino {

struct RunPoint {
  std::int64_t step = 0;
  std::optional<double> epsilon;   // upper bound; absent for a run without privacy
  std::optional<double> accuracy;  // in [0, 1]; absent without a test set
};

struct RunPictureText {
  std::string title;    // any text
  std::string caption;  // a line below it
  std::string warning;  // in red above everything; empty: none
};

// A self-contained SVG that follows the reader's choice of light or dark. Accuracy has the axis on
// the left, epsilon the one on the right. Points stand in the order of their steps.
std::string RunSvg(std::span<const RunPoint> points, const RunPictureText& text);

}  // namespace sordino

#endif  // SORDINO_REPORT_RUN_PICTURE_H_
