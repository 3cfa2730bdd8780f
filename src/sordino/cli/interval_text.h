// Certified numbers (base/directed_text.h) in words and columns.
#ifndef SORDINO_CLI_INTERVAL_TEXT_H_
#define SORDINO_CLI_INTERVAL_TEXT_H_

#include <string>
#include <vector>

#include "sordino/base/directed_text.h"  // IWYU pragma: export

namespace sordino {

// Rows of cells as aligned lines: the first column and those from `words_from` on to the left, the
// numbers between them to the right. Rows may be of different length. Cells may hold text of
// others: they are shown as shown_text.h says.
std::string AlignedTable(const std::vector<std::vector<std::string>>& given,
                         std::size_t words_from);

}  // namespace sordino

#endif  // SORDINO_CLI_INTERVAL_TEXT_H_
