// Adam (Kingma, Ba, arXiv 1412.6980): steps by the mean of the gradients over the root of that of
// their squares, both corrected for their start at 0.
#include <torch/optim/adam.h>

#include "sordino/optimizers/internal/torch_algorithm.h"

namespace sordino {
namespace {

class Adam : public OptimizerComponent {
 public:
  Adam()
      : OptimizerComponent({.name = "adam",
                            .help = "p ← p − r m̂ / (√v̂ + η), m and v the means of g and g²",
                            .options = kMomentsOptions}) {}

  double LearningRate() const override { return 0.001; }

  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    return MakeMomentsAlgorithm<torch::optim::Adam, torch::optim::AdamParamState,
                                torch::optim::AdamOptions>(parameters, options);
  }
};

}  // namespace

const OptimizerComponent& AdamOptimizer() {
  static const Adam component;
  return component;
}

}  // namespace sordino
