// Adam with decoupled weight decay (Loshchilov, Hutter, arXiv 1711.05101): w r p is taken off the
// parameter and not added to the gradient.
#include <torch/optim/adamw.h>

#include <tuple>

#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

constexpr const OptionSpec* kAdamWOptions[] = {&kBeta1, &kBeta2, &kWeightDecay, &kStabiliser};

class AdamW : public OptimizerComponent {
 public:
  AdamW()
      : OptimizerComponent({.name = "adamw",
                            .help = "as adam, and p ← (1 − r w) p first",
                            .options = kAdamWOptions}) {}

  double LearningRate() const override { return 0.001; }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    using State = torch::optim::AdamWParamState;
    return std::make_unique<TorchAlgorithm<torch::optim::AdamW, State>>(
        parameters,
        torch::optim::AdamWOptions(kAnyLearningRate)
            .betas(std::tuple(options.Number(kBeta1), options.Number(kBeta2)))
            .weight_decay(options.Number(kWeightDecay))
            .eps(options.Number(kStabiliser)),
        std::vector<TorchTensor<State>>{
            {"first_moment", [](State& state) -> at::Tensor& { return state.exp_avg(); }},
            {"second_moment", [](State& state) -> at::Tensor& { return state.exp_avg_sq(); }}},
        [](const State& state) { return state.step(); },
        [](State& state, std::int64_t steps) { state.step(steps); });
  }
};

}  // namespace

const OptimizerComponent& AdamWOptimizer() {
  static const AdamW component;
  return component;
}

}  // namespace sordino
