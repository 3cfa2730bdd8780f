// The cheapest exact way, by the cost model (gradients/internal/terms/norm_cost.h).
#include "sordino/clipping/internal/exact_norms.h"

namespace sordino {

const NormsComponent& AutomaticNorms() {
  static const ExactNorms component("automatic",
                                    "the cheapest of the exact ways, for each use of a parameter",
                                    NormMethod::kAutomatic);
  return component;
}

}  // namespace sordino
