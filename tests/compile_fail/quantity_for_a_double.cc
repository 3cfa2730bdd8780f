// A quantity becomes a bare number only where value() says so.
// expect: cannot convert|no viable conversion
#include "sordino/base/quantity.h"

double Use(sordino::SamplingRate rate) {
#ifdef MISTAKE
  const double bare = rate;
#else
  const double bare = rate.value();
#endif
  return bare;
}
