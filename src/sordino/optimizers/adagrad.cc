// AdaGrad (Duchi, Hazan, Singer, 2011): s <- s + g^2, p <- p - r g / (sqrt(s) + eta).
#include <torch/optim/adagrad.h>

#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

constexpr const OptionSpec* kAdaGradOptions[] = {&kWeightDecay, &kStabiliser};

class AdaGrad : public OptimizerComponent {
 public:
  AdaGrad()
      : OptimizerComponent({.name = "adagrad",
                            .help = "s ← s + g², p ← p − r g / (√s + η)",
                            .options = kAdaGradOptions}) {}

  double LearningRate() const override { return 0.01; }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    using State = torch::optim::AdagradParamState;
    return std::make_unique<TorchAlgorithm<torch::optim::Adagrad, State>>(
        parameters,
        torch::optim::AdagradOptions(kAnyLearningRate)
            .weight_decay(options.Number(kWeightDecay))
            .eps(options.Number(kStabiliser)),
        std::vector<TorchTensor<State>>{
            {"sum", [](State& state) -> at::Tensor& { return state.sum(); }}},
        [](const State& state) { return state.step(); },
        [](State& state, std::int64_t steps) { state.step(steps); });
  }
};

}  // namespace

const OptimizerComponent& AdaGradOptimizer() {
  static const AdaGrad component;
  return component;
}

}  // namespace sordino
