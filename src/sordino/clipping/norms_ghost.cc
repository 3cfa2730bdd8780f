// Ghost norms: Gram matrices of inputs and output gradients.
#include "sordino/clipping/internal/exact_norms.h"

namespace sordino {

const NormsComponent& GhostNorms() {
  static const ExactNorms component("ghost", "Gram matrices of inputs and output gradients",
                                    NormMethod::kGhost);
  return component;
}

}  // namespace sordino
