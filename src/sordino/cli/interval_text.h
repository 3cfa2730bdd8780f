// Certified numbers in words and columns. What is shown of an upper bound is never below it, and
// what is shown of a lower bound never above it, so that a number copied from the screen still
// holds.
#ifndef SORDINO_CLI_INTERVAL_TEXT_H_
#define SORDINO_CLI_INTERVAL_TEXT_H_

#include <string>
#include <vector>

namespace sordino {

// Seven significant digits, rounded away from the wrong side; "infinity" where there is no number.
std::string UpperText(double value);
std::string LowerText(double value);

// Rows of cells as aligned lines: the first column and those from `words_from` on to the left, the
// numbers between them to the right. Rows may be of different length. Cells may hold text of
// others: they are shown as shown_text.h says.
std::string AlignedTable(const std::vector<std::vector<std::string>>& given,
                         std::size_t words_from);

}  // namespace sordino

#endif  // SORDINO_CLI_INTERVAL_TEXT_H_
