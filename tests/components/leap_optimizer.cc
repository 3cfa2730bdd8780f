// An optimizer of a test: p <- p - r (gain g + m), m the last step.
#include "sordino/optimizers/optimizer_component.h"

namespace sordino {
namespace {

constexpr OptionSpec kGain{.key = "leap-gain",
                           .flag = "--leap-gain",
                           .value_name = "X",
                           .help = "Factor of the gradient",
                           .what = "the gain of the leap",
                           .fallback = 1.0,
                           .low_open = true,
                           .high = 10,
                           .high_open = false};
constexpr const OptionSpec* kLeapOptions[] = {&kGain};

class LeapAlgorithm : public OptimizerAlgorithm {
 public:
  LeapAlgorithm(std::vector<at::Tensor> parameters, double gain)
      : parameters_(std::move(parameters)), gain_(gain) {
    for (const at::Tensor& parameter : parameters_) last_.push_back(parameter.detach().mul(0));
  }
  void Step(double learning_rate) override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      last_[i] = parameters_[i].grad().mul(gain_).add(last_[i]);
      parameters_[i].detach().sub_(last_[i].mul(learning_rate));
    }
  }
  std::vector<std::string_view> KeptTensors() const override { return {"last_leap"}; }
  bool CountsSteps() const override { return false; }
  KeptState Kept(std::size_t i) const override { return {{last_[i]}, 0}; }
  void Restore(std::size_t i, const KeptState& state) override { last_[i] = state.tensors[0]; }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> last_;
  double gain_;
};

class Leap : public OptimizerComponent {
 public:
  Leap() : OptimizerComponent({.name = "leap", .help = "of a test", .options = kLeapOptions}) {}
  double LearningRate() const override { return 0.125; }
  std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                           const OptionValues& options) const override {
    return std::make_unique<LeapAlgorithm>(parameters, options.Number(kGain));
  }
};

}  // namespace

const OptimizerComponent& LeapOptimizer() {
  static const Leap component;
  return component;
}

}  // namespace sordino
