// A swapped (epsilon, delta) pair is the classic silent privacy bug.
// expect: could not convert|no matching function|no viable conversion
#include "sordino/base/quantity.h"

double Spend(sordino::Epsilon epsilon, sordino::Delta delta);

double Use() {
  const sordino::Epsilon epsilon(1.0);
  const sordino::Delta delta(1e-5);
#ifdef MISTAKE
  return Spend(delta, epsilon);
#else
  return Spend(epsilon, delta);
#endif
}
