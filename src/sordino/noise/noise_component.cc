#include "sordino/noise/noise_component.h"

namespace sordino {

#define SORDINO_COMPONENT(function, file) const NoiseComponent& function();
#include "sordino/noise/noise_list.inc"
#undef SORDINO_COMPONENT

const Registry<NoiseComponent>& Noises() {
  static const Registry<NoiseComponent> list("kind of noise", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/noise/noise_list.inc"
#undef SORDINO_COMPONENT
                                                              });
  return list;
}

}  // namespace sordino
