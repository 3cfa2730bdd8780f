// A gradient that nobody noised does not become one that an optimizer takes.
// expect: private within this context|is private|calling a private constructor
#include "sordino/gradients/noised_value.h"

sordino::NoisedGradients Noised(const sordino::NoisedGradients& noised) {
#ifdef MISTAKE
  return sordino::NoisedGradients(noised.value(), 1);
#else
  return noised;
#endif
}
