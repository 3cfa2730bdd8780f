// A smaller sensitivity than that of the sum would ask for too little noise.
// expect: discards qualifiers|no viable overloaded
#include "sordino/gradients/bounded_sum.h"

double Halved(sordino::BoundedSum sum) {
#ifdef MISTAKE
  sum.sensitivity = sordino::L2Sensitivity(sum.sensitivity.value() / 2);
#endif
  return sum.sensitivity.value() / 2;
}
