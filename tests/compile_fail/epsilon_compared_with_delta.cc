// Quantities of different kinds have no order.
// expect: no match for .operator<|invalid operands
#include "sordino/base/quantity.h"

bool Use(sordino::Epsilon epsilon, sordino::Delta delta) {
#ifdef MISTAKE
  return epsilon < delta;
#else
  return epsilon.value() < delta.value();
#endif
}
