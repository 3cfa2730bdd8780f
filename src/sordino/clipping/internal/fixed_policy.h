// A policy that learns nothing: it is made anew for the clipping norm of each step.
#ifndef SORDINO_CLIPPING_INTERNAL_FIXED_POLICY_H_
#define SORDINO_CLIPPING_INTERNAL_FIXED_POLICY_H_

#include <optional>
#include <utility>

#include "sordino/clipping/clipping_component.h"

namespace sordino {

// `Make` gives a Policy for a ClipNorm.
template <typename Policy, typename Make>
class FixedPolicy : public ClippingState {
 public:
  explicit FixedPolicy(Make make) : make_(std::move(make)) {}

  const ClippingPolicy& StepPolicy(ClipNorm clip) override { return policy_.emplace(make_(clip)); }
  bool ReadsNoised() const override { return false; }

 private:
  Make make_;
  std::optional<Policy> policy_;
};

template <typename Policy, typename Make>
std::unique_ptr<ClippingState> MakeFixedPolicy(Make make) {
  return std::make_unique<FixedPolicy<Policy, Make>>(std::move(make));
}

}  // namespace sordino

#endif  // SORDINO_CLIPPING_INTERNAL_FIXED_POLICY_H_
