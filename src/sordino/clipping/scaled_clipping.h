// Flat clipping of gradients that are centred and scaled coordinate by coordinate by what was
// released before: w = (g - m) / b, clipped to ||w|| <= C, summed and noised in the unit of w.
//
// The sensitivity of the sum is that of flat clipping at C, whatever m and b > 0 are, as long as
// they are functions of earlier releases: given those, w is a fixed function of the record. That
// holds by type, because Update takes nothing but noised values, and only the checkpoint of a run
// can set what is tracked from outside.
#ifndef SORDINO_CLIPPING_SCALED_CLIPPING_H_
#define SORDINO_CLIPPING_SCALED_CLIPPING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

class ScaledClipping : public ClippingPolicy {
 public:
  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  std::vector<double> Bounds() const override;
  const CoordinateTransform* transform() const override { return &transform_; }

  // C of the next sums; m and b stay.
  void SetBound(ClipNorm bound);

  // b y + m for the noised mean y: gradients for the optimizer, post-processing of y. Their noise
  // has the standard deviation b_j sd in coordinate j.
  NoisedGradients ToGradients(const NoisedGradients& mean) const;

  // Tracks what m and b are made of; after ToGradients, which undoes the transform of this step.
  virtual void Update(const NoisedGradients& mean) = 0;

  // What is tracked, one tensor for each parameter, under a name for checkpoints.
  struct Tracked {
    std::string_view name;
    const std::vector<at::Tensor>* values;
  };
  virtual std::vector<Tracked> tracked() const = 0;

 protected:
  // m = 0 and b = 1. `name` begins messages. Frozen parameters are left out. Throws Error when no
  // parameter requires a gradient.
  ScaledClipping(std::string name, const std::vector<NamedParameter>& parameters, ClipNorm bound);

  // Stops the program where it is of other parameters.
  void CheckShapes(const NoisedGradients& mean) const;
  // Throws Error where the tensors do not have the shapes and types of those that are tracked.
  void CheckSaved(const std::vector<std::vector<at::Tensor>>& saved) const;

  CoordinateTransform transform_;

 private:
  friend class ScaledClippingState;  // which saves and restores what was tracked
  friend class TestForgery;          // gradients/testing/forged_values.h, which is not installed

  // Resumes from what an earlier policy of the same parameters and options tracked, in the order of
  // tracked(): functions of noised values. Private: ToGradients would make a NoisedValue of any
  // mean that is given here. Throws Error when it is of other shapes or out of range.
  virtual void Restore(const std::vector<std::vector<at::Tensor>>& saved) = 0;

  std::string name_;
  double bound_;
  GroupColumn below_;
};

// In a run: a noised mean is mapped back for the optimizer, then learned from, and what is tracked
// is saved.
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

#endif  // SORDINO_CLIPPING_SCALED_CLIPPING_H_
