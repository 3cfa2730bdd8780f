// What a clipping policy of a training run is: a component with its options, its share of the
// noise, its policy for each step and its memory.
//
// A new one is a file that defines a class derived from ClippingComponent and a function that
// returns it, and a line in clipping_list.inc.
#ifndef SORDINO_CLIPPING_CLIPPING_COMPONENT_H_
#define SORDINO_CLIPPING_CLIPPING_COMPONENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/random/random_source.h"

namespace sordino {

class SavedTensors;

// What a policy has to know of the plan that it is part of: public numbers.
struct ClippingTerms {
  ClipNorm clip{1};  // before its schedule
  bool clip_is_scheduled = false;
  double batch = 0;  // declared
  Adjacency adjacency = Adjacency::kAddRemove;
  bool noise_is_gaussian = true;
  double unit_share = 1;  // PrivacyPlan::UnitShare()
  std::int64_t rows_per_user = 0;
  std::int64_t micro_batch = 1;
  bool norms_are_exact = true;
};

// A policy in a run.
class ClippingState {
 public:
  virtual ~ClippingState() = default;

  // The policy of a step with this clipping norm (the plan's, after its schedule); it lives until
  // the next call, and is of the state before the step.
  virtual const ClippingPolicy& StepPolicy(ClipNorm clip) = 0;

  // With the least bounds that any step with this clipping norm may have, to try before the first
  // step whether sums can be rounded well enough for them (gradients/internal/rounding).
  virtual const ClippingPolicy& TightestPolicy(ClipNorm clip) { return StepPolicy(clip); }

  // What of the noise multiplier of a step is on the gradients: all, where nothing else is
  // released.
  virtual NoiseMultiplier GradientNoise(NoiseMultiplier total) const { return total; }

  // Whether AfterNoise needs the gradients of all parameters, in their shapes. Else any part of
  // them will do, and is what it returns.
  virtual bool NeedsAllGradients() const { return false; }

  // Releases what the policy learns from beside the gradients, and learns it. Returns the gradients
  // for the optimizer.
  virtual NoisedGradients AfterNoise(NoisedGradients mean, const BoundedSum& sum, std::int64_t step,
                                     RandomSource& random);

  // Whether AfterNoise reads the gradients or releases something. Where it does not, it need not be
  // called, and noise and update may be one.
  virtual bool ReadsNoised() const { return true; }

  // What later steps depend on, for a checkpoint: functions of noised values.
  virtual NamedTensors Save() const { return {}; }
  // Throws Error when it does not fit.
  virtual void Restore(SavedTensors& saved) { static_cast<void>(saved); }
};

class ClippingComponent : public Component {
 public:
  using Component::Component;

  // Throws Error where the analysis of the policy does not hold, or options contradict the plan.
  virtual void CheckTerms(const ClippingTerms& terms, const OptionValues& options) const;

  // What of a total noise multiplier is on the gradients, with so many clipping groups. Throws
  // Error when nothing is left.
  virtual NoiseMultiplier GradientNoise(NoiseMultiplier total, const ClippingTerms& terms,
                                        const OptionValues& options, std::int64_t groups) const;

  // For parameters that require gradients, each once. Throws Error as CheckTerms does.
  virtual std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const = 0;

  // "flat clipping at 0.1"
  virtual std::string Description(const ClippingTerms& terms) const;
};

const Registry<ClippingComponent>& ClippingPolicies();

}  // namespace sordino

#endif  // SORDINO_CLIPPING_CLIPPING_COMPONENT_H_
