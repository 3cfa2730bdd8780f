#include "sordino/clipping/norms_component.h"

namespace sordino {

double NormsComponent::Failure(double /*steps*/, double /*rows*/, double /*parameters*/,
                               const OptionValues& /*options*/) const {
  return 0;
}

void NormsComponent::CheckMicroBatch(std::int64_t /*micro_batch*/) const {}

std::string NormsComponent::Description(const OptionValues& /*options*/) const { return ""; }

std::string NormsComponent::Assumption() const { return ""; }

#define SORDINO_COMPONENT(function, file) const NormsComponent& function();
#include "sordino/clipping/norms_list.inc"
#undef SORDINO_COMPONENT

const Registry<NormsComponent>& NormMethods() {
  static const Registry<NormsComponent> list("norms", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/clipping/norms_list.inc"
#undef SORDINO_COMPONENT
                                                      });
  return list;
}

}  // namespace sordino
