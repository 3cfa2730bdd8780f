// Noise is in units of the clip norm; mixing the two scales the noise by C.
// expect: no matching function|no matching conversion
#include "sordino/base/quantity.h"

sordino::NoiseMultiplier Use(sordino::ClipNorm clip) {
#ifdef MISTAKE
  return sordino::NoiseMultiplier(clip);
#else
  return sordino::NoiseMultiplier(1.0 / clip.value());
#endif
}
