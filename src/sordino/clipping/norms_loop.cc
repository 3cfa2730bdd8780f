// One forward and backward pass for each example.
#include "sordino/clipping/internal/exact_norms.h"

namespace sordino {

const NormsComponent& LoopNorms() {
  static const ExactNorms component("loop", "one pass for each example: the reference",
                                    NormMethod::kLoop);
  return component;
}

}  // namespace sordino
