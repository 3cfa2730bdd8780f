// Epsilons are added by an accountant, not by an operator: composition is not always a sum.
// expect: no match for .operator\+|invalid operands
#include "sordino/base/quantity.h"

double Use(sordino::Epsilon a, sordino::Epsilon b) {
#ifdef MISTAKE
  return a + b;
#else
  return a.value() + b.value();
#endif
}
