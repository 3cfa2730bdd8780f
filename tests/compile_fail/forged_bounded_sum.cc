// A sum that no clipper made has no sensitivity that anyone vouches for.
// expect: private within this context|is private|calling a private constructor
#include "sordino/gradients/bounded_sum.h"

sordino::BoundedSum Copied(const sordino::BoundedSum& sum) {
#ifdef MISTAKE
  return sordino::BoundedSum(sordino::SumParts{.gradients = sum.gradients});
#else
  return sum;
#endif
}
