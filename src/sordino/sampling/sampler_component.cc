#include "sordino/sampling/sampler_component.h"

#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/known_name.h"

namespace sordino {

#define SORDINO_COMPONENT(function, file) const SamplerComponent& function();
#include "sordino/sampling/sampler_list.inc"
#undef SORDINO_COMPONENT

const Registry<SamplerComponent>& Samplers() {
  static const Registry<SamplerComponent> list("sampling", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/sampling/sampler_list.inc"
#undef SORDINO_COMPONENT
                                                           });
  return list;
}

std::string SamplersWith(bool (SamplerComponent::*property)() const) {
  std::vector<std::string_view> names;
  for (const SamplerComponent* sampler : Samplers().all()) {
    if ((sampler->*property)()) names.push_back(sampler->name());
  }
  return OneOf(names);
}

std::int64_t SamplingPlan::MaxRecords() const {
  if (records > 0) return records;
  return static_cast<std::int64_t>(std::ceil(2 * batch / rate->value()));
}

std::optional<double> SamplerComponent::BatchOf(double records) const {
  static_cast<void>(records);
  return std::nullopt;
}

std::int64_t SamplerComponent::Separation(const SamplingPlan&) const { return 0; }

std::int64_t SamplerComponent::StepsPerEvent(const SamplingPlan& plan) const {
  static_cast<void>(plan);
  return 1;
}

Event SamplerComponent::UserEvent(const SamplingPlan& plan, std::int64_t step,
                                  NoiseMultiplier noise) const {
  static_cast<void>(step);
  static_cast<void>(noise);
  SORDINO_CHECK(false, "a sampler was asked for the event of users, which it does not have");
  return Event::None(plan.adjacency);
}

double SamplerComponent::UnitShare(const SamplingPlan& plan) const {
  static_cast<void>(plan);
  return 1;
}

}  // namespace sordino
