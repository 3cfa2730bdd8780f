// Which clipping keeps the tangent kernel positive: a table with marks, and the loss that a small
// step gains under each.
#ifndef SORDINO_REPORT_KERNEL_PICTURE_H_
#define SORDINO_REPORT_KERNEL_PICTURE_H_

#include <string>
#include <vector>

namespace sordino {

struct KernelPictureRow {
  std::string clipping;
  bool symmetric = false;
  bool positive_form = false;
  bool positive_eigenvalues = false;
  double least_form = 0;  // over the largest, and so the next
  double least_real = 0;
  double predicted = 0;  // decrease of the loss
  double measured = 0;
};

// `caption` stands below the title. At least one row.
std::string KernelSvg(const std::vector<KernelPictureRow>& rows, const std::string& caption);

}  // namespace sordino

#endif  // SORDINO_REPORT_KERNEL_PICTURE_H_
