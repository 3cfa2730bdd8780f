// What rounding of double precision costs, for the bounds of this module.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ROUNDING_H_
#define SORDINO_ACCOUNTING_INTERNAL_ROUNDING_H_

#include <cmath>

namespace sordino {

inline constexpr double kUnitRoundoff = 0x1p-53;
// Rounding of one butterfly stage of a Fourier transform, in units of the unit roundoff: products,
// sums and the error of the twiddle factors.
inline constexpr double kStageRounding = 16;

// A sum that keeps what each addition rounds off (Neumaier), so that it is rounded once and not
// once a term where terms of both signs cancel.
class CarefulSum {
 public:
  void Add(double term) {
    const double next = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double Total() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ROUNDING_H_
