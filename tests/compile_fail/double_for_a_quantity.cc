// A bare number has no unit: it must be named at the call.
// expect: could not convert|no matching function|no viable conversion
#include "sordino/base/quantity.h"

double Noise(sordino::NoiseMultiplier noise);

double Use() {
#ifdef MISTAKE
  return Noise(1.1);
#else
  return Noise(sordino::NoiseMultiplier(1.1));
#endif
}
