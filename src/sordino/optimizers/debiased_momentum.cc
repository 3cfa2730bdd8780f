// Debiased momentum (Algorithm 2 of Hong, Wang and Zhou, arXiv 2101.07413): m <- mu m + (1 - mu) g,
// p <- p - r m / (1 - mu^t) at step t = 1, 2, ... The noise of the steps is averaged too, and the
// division corrects for the start at 0. theory/momentum.h has the schedule of noise that goes with
// it.
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

constexpr const OptionSpec* kDebiasedOptions[] = {&kMomentum, &kWeightDecay};

class DebiasedAlgorithm : public OptimizerAlgorithm {
 public:
  DebiasedAlgorithm(const std::vector<at::Tensor>& parameters, double momentum, double decay)
      : parameters_(parameters), momentum_(momentum), decay_(decay) {
    for (const at::Tensor& parameter : parameters) means_.push_back(at::zeros_like(parameter));
  }

  void Step(double learning_rate) override {
    ++steps_;
    const double correction = 1 - std::pow(momentum_, static_cast<double>(steps_));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor gradient = parameters_[i].grad();
      if (decay_ > 0) gradient = gradient.add(parameters_[i], decay_);
      means_[i].mul_(momentum_).add_(gradient, 1 - momentum_);
      parameters_[i].sub_(means_[i], learning_rate / correction);
    }
  }

  std::vector<std::string_view> KeptTensors() const override { return {"momentum"}; }
  bool CountsSteps() const override { return true; }
  KeptState Kept(std::size_t i) const override { return {.tensors = {means_[i]}, .step = steps_}; }
  void Restore(std::size_t i, const KeptState& state) override {
    means_[i] = state.tensors.front();
    steps_ = state.step;
  }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> means_;
  double momentum_;
  double decay_;
  std::int64_t steps_ = 0;
};

class DebiasedMomentum : public OptimizerComponent {
 public:
  DebiasedMomentum()
      : OptimizerComponent({.name = "debiased-momentum",
                            .help = "m ← μ m + (1 − μ) g, p ← p − r m / (1 − μ^t) at step t",
                            .options = kDebiasedOptions}) {}

  // Of the length of sgd's steps with momentum 0.9, whose m is a sum and not a mean.
  double LearningRate() const override { return 5; }

  std::optional<double> Momentum(const OptionValues& options) const override {
    return options.Number(kMomentum);
  }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    return std::make_unique<DebiasedAlgorithm>(parameters, options.Number(kMomentum),
                                               options.Number(kWeightDecay));
  }
};

}  // namespace

const OptimizerComponent& DebiasedMomentumOptimizer() {
  static const DebiasedMomentum component;
  return component;
}

}  // namespace sordino
