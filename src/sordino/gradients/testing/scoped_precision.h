// The precision of products for the time of a test.
#ifndef SORDINO_GRADIENTS_TESTING_SCOPED_PRECISION_H_
#define SORDINO_GRADIENTS_TESTING_SCOPED_PRECISION_H_

#include "sordino/device/precision.h"

namespace sordino {

class ScopedPrecision {
 public:
  explicit ScopedPrecision(Precision precision) : before_(UsedPrecision()) {
    UsePrecision(precision);
  }
  ~ScopedPrecision() { UsePrecision(before_); }
  ScopedPrecision(const ScopedPrecision&) = delete;
  ScopedPrecision& operator=(const ScopedPrecision&) = delete;

 private:
  const Precision before_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_SCOPED_PRECISION_H_
