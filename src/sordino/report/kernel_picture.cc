#include "sordino/report/kernel_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kKernelLeft = 28;
constexpr double kKernelTop = 104;
constexpr double kKernelRowHeight = 52;
constexpr double kBarLeft = 520;
constexpr double kBarRight = 692;

constexpr const char* kKernelLight =
    ".yes{fill:#1a7f37}.no{fill:#cf222e}.gain{fill:#0b62b8}.loss{fill:#b25a00}";
constexpr const char* kKernelDark =
    ".yes{fill:#57d97f}.no{fill:#ff7b72}.gain{fill:#64b0ff}.loss{fill:#ffab57}";

std::string Cell(double x, double y, bool holds, const std::string& detail) {
  return fmt::format(
      "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n"
      "<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
      holds ? "yes" : "no", x, y, holds ? "yes" : "no", x, y + 17, detail);
}

}  // namespace

std::string KernelSvg(const std::vector<KernelPictureRow>& rows, const std::string& caption) {
  std::string svg = SvgOpening({.label = "which clipping keeps the tangent kernel positive",
                                .warning = "",
                                .title = "What clipping does to the tangent kernel",
                                .caption = caption},
                               SvgStyle(kKernelLight, kKernelDark), kKernelLeft);
  const double columns[] = {168, 258, 384};
  const char* const names[] = {"symmetric", "quadratic form ≥ 0", "eigenvalues ≥ 0"};
  for (int c = 0; c < 3; ++c) {
    svg += fmt::format("<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", columns[c],
                       kKernelTop - 22, names[c]);
  }
  svg += fmt::format("<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">change of the loss</text>\n",
                     kBarLeft, kKernelTop - 22);
  double largest = std::numeric_limits<double>::min();
  for (const KernelPictureRow& row : rows) {
    largest = std::max({largest, std::abs(row.predicted), std::abs(row.measured)});
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const KernelPictureRow& row = rows[r];
    const double y = kKernelTop + kKernelRowHeight * static_cast<double>(r);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kKernelLeft, y,
                       SvgEscaped(row.clipping));
    svg += Cell(columns[0], y, row.symmetric, "");
    svg += Cell(columns[1], y, row.positive_form, fmt::format("least {:.2g}", row.least_form));
    svg +=
        Cell(columns[2], y, row.positive_eigenvalues, fmt::format("least {:.2g}", row.least_real));
    const double width = (kBarRight - kBarLeft) * std::abs(row.measured) / largest;
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"12\"/>\n"
        "<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{:+.3g}, predicted {:+.3g}</text>\n",
        row.measured >= 0 ? "gain" : "loss", kBarLeft, y - 10, width, kBarLeft, y + 17,
        0.0 - row.measured, 0.0 - row.predicted);
  }
  return svg + fmt::format(
                   "<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">Least values are shares of "
                   "the largest eigenvalue of the symmetric part.</text>\n</svg>\n",
                   kKernelLeft, kSvgHeight - 12);
}

}  // namespace sordino
