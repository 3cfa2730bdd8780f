// A constant out of range is found by the compiler where the constant is one.
// expect: call to non-.constexpr|must be initialized by a constant expression
#include "sordino/base/quantity.h"

#ifdef MISTAKE
constexpr sordino::SamplingRate kRate(1.5);
#else
constexpr sordino::SamplingRate kRate(0.5);
#endif

double Use() { return kRate.value(); }
