// Norms of gradients that are kept in memory.
#include "sordino/clipping/internal/exact_norms.h"

namespace sordino {

const NormsComponent& MaterialisedNorms() {
  static const ExactNorms component("materialise", "gradients of the examples, in memory",
                                    NormMethod::kMaterialise);
  return component;
}

}  // namespace sordino
