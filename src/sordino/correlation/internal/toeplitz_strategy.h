// What Toeplitz strategies have in common: the errors of prefix sums from the coefficients of C^-1,
// and the sensitivity from those of C.
#ifndef SORDINO_CORRELATION_INTERNAL_TOEPLITZ_STRATEGY_H_
#define SORDINO_CORRELATION_INTERNAL_TOEPLITZ_STRATEGY_H_

#include <cstdint>
#include <vector>

#include "sordino/correlation/strategy.h"

namespace sordino {

class ToeplitzStrategy : public Strategy {
 public:
  using Strategy::Sensitivity;
  double Sensitivity(const Participation& participation) const final;
  std::vector<double> SquaredErrors(std::int64_t steps) const final;

 protected:
  using Strategy::Strategy;

 private:
  // How many earlier coefficients one of C is made from: what rounding adds to each.
  virtual std::int64_t RecursionLength() const = 0;
};

}  // namespace sordino

#endif  // SORDINO_CORRELATION_INTERNAL_TOEPLITZ_STRATEGY_H_
