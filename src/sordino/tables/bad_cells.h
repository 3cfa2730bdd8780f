// The kinds of rows that do not keep to what was declared, told all at once.
//
// A table is read to its end, and the sentence names each kind with its column once, in the order
// of the declaration: the same whatever there is of them, wherever they stand
// (tests/neighbours_test.py). It holds no cell and no count; the detail holds the first line of
// each kind (data_error.h).
#ifndef SORDINO_TABLES_BAD_CELLS_H_
#define SORDINO_TABLES_BAD_CELLS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace sordino {

// One kind, in words.
struct BadCell {
  std::string what;      // among others: "a row has no finite number in the column 'age'"
  std::string sentence;  // where it is the only one
  std::string detail;    // without a full stop: "line 3 has 'x'"
};

class BadCells {
 public:
  // The place of a column in the declaration; whole rows come first.
  static constexpr std::size_t kRow = 0;
  static constexpr std::size_t PlaceOf(std::size_t column) { return column + 1; }

  // `tell` is called for the first cell of a kind only.
  void Add(std::size_t place, int kind, const std::function<BadCell()>& tell);
  bool empty() const { return kinds_.empty(); }
  // Throws DataError where there are any; `table` stands in the sentence.
  void Refuse(const std::string& table) const;

 private:
  std::map<std::pair<std::size_t, int>, BadCell> kinds_;
};

}  // namespace sordino

#endif  // SORDINO_TABLES_BAD_CELLS_H_
