// A policy that scales gradients by what it learns from noised means (gradients/scaled_clipping.h),
// in a run: a noised mean is mapped back for the optimizer, then learned from, and what is tracked
// is saved.
#ifndef SORDINO_CLIPPING_INTERNAL_SCALED_STATE_H_
#define SORDINO_CLIPPING_INTERNAL_SCALED_STATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/clipping/clipping_component.h"
#include "sordino/gradients/scaled_clipping.h"

namespace sordino {

// Named by gradients/scaled_clipping.h as its friend: nothing else restores a policy.
class ScaledClippingState : public ClippingState {
 public:
  // `policy` is of these parameters.
  ScaledClippingState(std::vector<NamedParameter> parameters,
                      std::unique_ptr<ScaledClipping> policy);

  const ClippingPolicy& StepPolicy(ClipNorm clip) override;
  bool NeedsAllGradients() const override { return true; }
  NoisedGradients AfterNoise(NoisedGradients mean, const BoundedSum& sum, std::int64_t step,
                             RandomSource& random) override;
  NamedTensors Save() const override;
  void Restore(SavedTensors& saved) override;

 private:
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<ScaledClipping> policy_;
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_INTERNAL_SCALED_STATE_H_
