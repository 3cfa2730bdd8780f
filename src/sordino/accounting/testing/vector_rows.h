// Reference values for the accounting tests, as rows of a table.
//
// Columns: id, mechanism, params, quantity, expected, rtol, source. The project keeps its own copy
// of the facts in testdata/accounting_vectors.csv; a larger file may be named in the environment
// variable SORDINO_VECTORS or lie in ../shared/vectors beside the source tree. Every row of every
// file is checked, and a row that no checker knows fails.
#ifndef SORDINO_ACCOUNTING_TESTING_VECTOR_ROWS_H_
#define SORDINO_ACCOUNTING_TESTING_VECTOR_ROWS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sordino {

struct VectorRow {
  std::string id;
  std::string mechanism;
  std::string params;
  std::string quantity;
  std::string expected_text;
  double expected = 0;  // the first number of expected_text; infinity for "inf"
  double rtol = 0;
  std::string source;

  // The number behind "key=" in params; fractions ("1/48000") and chains ("q=m/n=0.01") are
  // understood. Throws std::runtime_error when the key is missing.
  double Number(std::string_view key) const;
  double NumberOr(std::string_view key, double fallback) const;
  bool Has(std::string_view key) const;
  bool Mentions(std::string_view text) const;  // anywhere in mechanism, params or quantity
};

// All files that are present, one after the other; the project's own copy first.
std::vector<std::pair<std::string, std::vector<VectorRow>>> LoadVectorFiles();

// By the beginning of the mechanism; the longest known beginning decides.
using RowCheckers = std::map<std::string, std::function<void(const VectorRow&)>>;
// Checks the rows of every file that are about privacy loss distributions, or those that are not;
// more than `least` of each. A row that no checker knows fails.
void CheckVectorRows(const RowCheckers& checkers, bool pld, int least);

// Whether the row is about privacy loss distributions and belongs to vectors_pld_test.cc. All
// other rows belong to vectors_test.cc.
bool NeedsPld(const VectorRow& row);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_TESTING_VECTOR_ROWS_H_
