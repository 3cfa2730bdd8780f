// Stochastic gradient descent: m <- mu m + g, p <- p - r m; with Nesterov's momentum p <- p -
// r (g + mu m).
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/zeros_like.h>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

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

// All parameters at once: on a GPU a step is at most four launches, and not four for each
// parameter.
class SgdAlgorithm : public OptimizerAlgorithm {
 public:
  SgdAlgorithm(std::vector<at::Tensor> parameters, double momentum, bool nesterov, double decay)
      : parameters_(std::move(parameters)),
        momentum_(momentum),
        nesterov_(nesterov),
        decay_(decay),
        buffers_(momentum > 0 ? parameters_.size() : 0) {}

  void Step(double learning_rate) override {
    std::vector<at::Tensor> direction;
    direction.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) direction.push_back(parameter.grad());
    if (decay_ > 0) direction = at::_foreach_add(direction, parameters_, decay_);
    if (momentum_ > 0) direction = WithMomentum(direction);
    at::_foreach_add_(parameters_, direction, -learning_rate);
  }

  std::optional<Descent> AsDescent(double learning_rate) override {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (!buffers_[i].defined()) buffers_[i] = at::zeros_like(parameters_[i]);
    }
    return Descent{
        .parameters = parameters_,
        .momenta = buffers_,
        .factors = {
            .rate = learning_rate, .momentum = momentum_, .decay = decay_, .nesterov = nesterov_}};
  }

  std::vector<std::string_view> KeptTensors() const override {
    if (momentum_ == 0) return {};
    return {"momentum"};
  }
  bool CountsSteps() const override { return false; }
  KeptState Kept(std::size_t i) const override {
    KeptState kept;
    if (momentum_ > 0) kept.tensors.push_back(buffers_[i]);
    return kept;
  }
  void Restore(std::size_t i, const KeptState& saved) override {
    if (momentum_ > 0) buffers_[i] = saved.tensors[0];
  }

 private:
  std::vector<at::Tensor> WithMomentum(const std::vector<at::Tensor>& gradients) {
    if (!buffers_.front().defined()) {
      for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i] = gradients[i].clone();
    } else {
      at::_foreach_mul_(buffers_, momentum_);
      at::_foreach_add_(buffers_, gradients);
    }
    return nesterov_ ? at::_foreach_add(gradients, buffers_, momentum_) : buffers_;
  }

  std::vector<at::Tensor> parameters_;
  double momentum_;
  bool nesterov_;
  double decay_;
  std::vector<at::Tensor> buffers_;
};

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
    return std::make_unique<SgdAlgorithm>(parameters, options.Number(kMomentum),
                                          options.Switch(kNesterov), options.Number(kWeightDecay));
  }
};

}  // namespace

const OptimizerComponent& SgdOptimizer() {
  static const Sgd component;
  return component;
}

}  // namespace sordino
