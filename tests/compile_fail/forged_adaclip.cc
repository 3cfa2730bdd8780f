// A mean that nobody noised does not become a gradient that an optimizer takes, by way of AdaCliP.
// expect: private within this context|is private
#include "sordino/clipping/adaclip.h"

sordino::NoisedGradients Noised(sordino::AdaClip& policy, const sordino::NoisedGradients& noised,
                                const std::vector<at::Tensor>& secret) {
#ifdef MISTAKE
  policy.Restore({secret, secret});
#else
  static_cast<void>(secret);
#endif
  return policy.ToGradients(noised);
}
