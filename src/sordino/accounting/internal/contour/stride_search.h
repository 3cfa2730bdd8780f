// How coarsely the table of a tilted density may be summed: the trapezoidal rule on an analytic
// integrand, whose error contour.h bounds.
#ifndef SORDINO_ACCOUNTING_INTERNAL_STRIDE_SEARCH_H_
#define SORDINO_ACCOUNTING_INTERNAL_STRIDE_SEARCH_H_

#include <cstddef>
#include <vector>

#include "sordino/accounting/internal/contour/mixture_table.h"
#include "sordino/base/quantity.h"

namespace sordino {

// The tilted density of a table, divided by its largest value e^top.
struct TiltedTable {
  TiltedTable(const MixtureTable& table, double c);

  std::vector<double> log_tilted;
  double top = -kInfinity;
  double total = 0;  // integral of exp(log_tilted - top) / spacing
  // Logarithms of upper bounds cell by cell, from an enclosure of the slope.
  std::vector<double> cell_upper;
};

// The widest strip |Im x| < a = v sigma^2 pays off until the growth of the integrand eats the gain;
// for each candidate v the largest stride that meets the goal is tried.
class StrideSearch {
 public:
  StrideSearch(const MixtureTable& table, const TiltedTable& tilted, double c, double max_frequency)
      : table_(table), tilted_(tilted), c_(c), max_frequency_(max_frequency) {}

  // Neighbouring pairs mostly have the same best strip: the search starts at the last one's and
  // goes on while that pays.
  void Run(std::size_t& strip);
  double stride() const { return stride_; }  // below 1: there is none
  double log_error() const { return log_error_; }

 private:
  bool Try(std::size_t candidate, std::size_t& strip);

  const MixtureTable& table_;
  const TiltedTable& tilted_;
  double c_;
  double max_frequency_;
  double stride_ = 0;
  double log_error_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_STRIDE_SEARCH_H_
