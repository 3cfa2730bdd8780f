// Adam (Kingma, Ba, arXiv 1412.6980): steps by the mean of the gradients over the root of that of
// their squares, both corrected for their start at 0.
#include <torch/optim/adam.h>

#include <tuple>

#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

constexpr const OptionSpec* kAdamOptions[] = {&kBeta1, &kBeta2, &kWeightDecay, &kStabiliser};

class Adam : public OptimizerComponent {
 public:
  Adam()
      : OptimizerComponent({.name = "adam",
                            .help = "p ← p − r m̂ / (√v̂ + η), m and v the means of g and g²",
                            .options = kAdamOptions}) {}

  double LearningRate() const override { return 0.001; }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    using State = torch::optim::AdamParamState;
    return std::make_unique<TorchAlgorithm<torch::optim::Adam, State>>(
        parameters,
        torch::optim::AdamOptions(kAnyLearningRate)
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

const OptimizerComponent& AdamOptimizer() {
  static const Adam component;
  return component;
}

}  // namespace sordino
