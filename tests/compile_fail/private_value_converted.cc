// A private value becomes a plain number by a named call only.
// expect: cannot convert|no viable conversion
#include "sordino/gradients/private_value.h"

double Noised(const sordino::PrivateValue<double>& count, double noise) {
#ifdef MISTAKE
  const double value = count;
#else
  const double value = count.RevealForNoise();
#endif
  return value + noise;
}
