#include "sordino/optimizers/optimizer_component.h"

namespace sordino {

#define SORDINO_COMPONENT(function, file) const OptimizerComponent& function();
#include "sordino/optimizers/optimizer_list.inc"
#undef SORDINO_COMPONENT

const Registry<OptimizerComponent>& Optimizers() {
  static const Registry<OptimizerComponent> list("optimizer", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/optimizers/optimizer_list.inc"
#undef SORDINO_COMPONENT
                                                              });
  return list;
}

}  // namespace sordino
