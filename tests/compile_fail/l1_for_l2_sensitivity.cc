// The L1 sensitivity of a vector query can be sqrt(d) times its L2 sensitivity.
// expect: no match for .operator=|no viable (conversion|overloaded)
#include "sordino/base/quantity.h"

sordino::L2Sensitivity Use(sordino::L1Sensitivity l1, sordino::L2Sensitivity l2) {
#ifdef MISTAKE
  l2 = l1;
#else
  l2 = sordino::L2Sensitivity(l1.value());
#endif
  return l2;
}
