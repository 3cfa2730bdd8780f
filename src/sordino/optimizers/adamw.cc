// Adam with decoupled weight decay (Loshchilov, Hutter, arXiv 1711.05101): w r p is taken off the
// parameter and not added to the gradient.
#include <torch/optim/adamw.h>

#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

class AdamW : public OptimizerComponent {
 public:
  AdamW()
      : OptimizerComponent({.name = "adamw",
                            .help = "as adam, and p ← (1 − r w) p first",
                            .options = kMomentsOptions}) {}

  double LearningRate() const override { return 0.001; }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    return MakeMomentsAlgorithm<torch::optim::AdamW, torch::optim::AdamWParamState,
                                torch::optim::AdamWOptions>(parameters, options);
  }
};

}  // namespace

const OptimizerComponent& AdamWOptimizer() {
  static const AdamW component;
  return component;
}

}  // namespace sordino
