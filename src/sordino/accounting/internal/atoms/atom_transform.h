// The moments E[e^{sL}] of a list of atoms along a line Re s = c, with bounds on their rounding.
// The building block of smoothed_contour.h; the sums are those of atom_list.h.
//
// Along the line, atoms whose |s l| is small are summed as a power series in s, whose coefficients
// are shared by all frequencies; the others turn by a constant angle from one frequency to the next
// and start anew from sines every kBlock frequencies. Masses may be negative (list_family.h).
#ifndef SORDINO_ACCOUNTING_INTERNAL_ATOM_TRANSFORM_H_
#define SORDINO_ACCOUNTING_INTERNAL_ATOM_TRANSFORM_H_

#include <complex>
#include <cstddef>
#include <vector>

#include "sordino/accounting/internal/atoms/atom_list.h"

namespace sordino {

class AtomTransform {
 public:
  AtomTransform(AtomList list, double count);

  double count() const { return count_; }
  std::size_t size() const { return list_.loss.size(); }
  const AtomList& list() const { return list_; }
  double LargestLoss() const { return largest_; }

  // M(c) - 1, c >= 0; infinity where e^{cl} leaves the range of doubles.
  double Excess(double c) const;
  // Its error.
  double ExcessError(double c) const;
  // Mean and variance of the loss under the tilted measure.
  struct Moments {
    double mean;
    double variance;
  };
  Moments Tilted(double c) const;

  // M(s) - 1 and a bound on its error at s = c + i k step for k = 0 ... out.size() - 1.
  void Line(double c, double step, std::vector<std::complex<double>>& out,
            std::vector<double>& error) const;

 private:
  AtomList list_;  // in any order
  double count_;
  double largest_;  // loss; 0 where there is none
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ATOM_TRANSFORM_H_
