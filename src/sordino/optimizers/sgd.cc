// Stochastic gradient descent: m <- mu m + g, p <- p - r m; with Nesterov's momentum p <- p -
// r (g + mu m).
#include <torch/optim/sgd.h>

#include "sordino/base/error.h"
#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

constexpr OptionSpec kNesterov{.key = "nesterov",
                               .flag = "--nesterov",
                               .help = "Nesterov's momentum",
                               .what = "Nesterov's momentum",
                               .type = OptionType::kSwitch,
                               .fallback = false};
constexpr const OptionSpec* kSgdOptions[] = {&kMomentum, &kNesterov, &kWeightDecay};

class Sgd : public OptimizerComponent {
 public:
  Sgd()
      : OptimizerComponent({.name = "sgd",
                            .help = "m ← μ m + g, p ← p − r m; Nesterov: p ← p − r (g + μ m)",
                            .options = kSgdOptions}) {}

  double LearningRate() const override { return 0.5; }

  void Check(const OptionValues& options) const override {
    if (options.Switch(kNesterov) && options.Number(kMomentum) == 0) {
      throw Error(
          "Nesterov's momentum was asked for with a momentum of 0; give a momentum between 0 and "
          "1, for example 0.9.");
    }
  }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    using State = torch::optim::SGDParamState;
    const double momentum = options.Number(kMomentum);
    std::vector<TorchTensor<State>> kept;
    if (momentum > 0) {
      kept = {{"momentum", [](State& state) -> at::Tensor& { return state.momentum_buffer(); }}};
    }
    return std::make_unique<TorchAlgorithm<torch::optim::SGD, State>>(
        parameters,
        torch::optim::SGDOptions(kAnyLearningRate)
            .momentum(momentum)
            .nesterov(options.Switch(kNesterov))
            .weight_decay(options.Number(kWeightDecay)),
        std::move(kept));
  }
};

}  // namespace

const OptimizerComponent& SgdOptimizer() {
  static const Sgd component;
  return component;
}

}  // namespace sordino
