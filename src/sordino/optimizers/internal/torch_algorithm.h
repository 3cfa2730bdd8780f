// An algorithm of torch::optim as an OptimizerAlgorithm, with options that several of them have.
#ifndef SORDINO_OPTIMIZERS_INTERNAL_TORCH_ALGORITHM_H_
#define SORDINO_OPTIMIZERS_INTERNAL_TORCH_ALGORITHM_H_

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sordino/optimizers/optimizer_component.h"

namespace sordino {

inline constexpr OptionSpec kWeightDecay{.key = "weight-decay",
                                         .flag = "--weight-decay",
                                         .value_name = "X",
                                         .help = "L2 penalty; decoupled for adamw",
                                         .what = "the weight decay",
                                         .fallback = 0.0,
                                         .high = kMaxStepFactor,
                                         .high_open = false};
inline constexpr OptionSpec kMomentum{.key = "momentum",
                                      .flag = "--momentum",
                                      .value_name = "X",
                                      .help = "Share of the last step that is added to the next",
                                      .what = "the momentum",
                                      .fallback = 0.0,
                                      .recipe = 0.9,
                                      .high = 1};
inline constexpr OptionSpec kBeta1{.key = "beta1",
                                   .flag = "--beta1",
                                   .value_name = "X",
                                   .help = "Decay of the mean of the gradients",
                                   .what = "beta1",
                                   .fallback = 0.9,
                                   .high = 1};
inline constexpr OptionSpec kBeta2{.key = "beta2",
                                   .flag = "--beta2",
                                   .value_name = "X",
                                   .help = "Decay of the mean of their squares",
                                   .what = "beta2",
                                   .fallback = 0.999,
                                   .high = 1};
inline constexpr OptionSpec kStabiliser{.key = "stabiliser",
                                        .flag = "--stabiliser",
                                        .value_name = "X",
                                        .help = "Added to the root that a gradient is divided by",
                                        .what = "the stabiliser of the optimizer",
                                        .fallback = 1e-8,
                                        .low_open = true};

// Set before each step.
inline constexpr double kAnyLearningRate = 1;

// A tensor that torch::optim keeps for a parameter, and its name in a checkpoint.
template <typename ParamState>
struct TorchTensor {
  std::string_view name;
  at::Tensor& (*in)(ParamState& state);
};

template <typename Algorithm, typename ParamState>
class TorchAlgorithm : public OptimizerAlgorithm {
 public:
  using StepCounter = std::int64_t (*)(const ParamState&);
  using SetSteps = void (*)(ParamState&, std::int64_t);

  // Without the last two no steps are counted.
  template <typename Options>
  TorchAlgorithm(const std::vector<at::Tensor>& parameters, const Options& options,
                 std::vector<TorchTensor<ParamState>> kept, StepCounter steps = nullptr,
                 SetSteps set_steps = nullptr)
      : parameters_(parameters),
        algorithm_(parameters, options),
        kept_(std::move(kept)),
        steps_(steps),
        set_steps_(set_steps) {}

  void Step(double learning_rate) override {
    for (auto& group : algorithm_.param_groups()) group.options().set_lr(learning_rate);
    algorithm_.step();
  }

  std::vector<std::string_view> KeptTensors() const override {
    std::vector<std::string_view> names;
    for (const auto& tensor : kept_) names.push_back(tensor.name);
    return names;
  }
  bool CountsSteps() const override { return steps_ != nullptr; }

  KeptState Kept(std::size_t i) const override {
    auto& state =
        static_cast<ParamState&>(*algorithm_.state().at(parameters_[i].unsafeGetTensorImpl()));
    KeptState kept;
    for (const auto& tensor : kept_) kept.tensors.push_back(tensor.in(state));
    if (CountsSteps()) kept.step = steps_(state);
    return kept;
  }

  void Restore(std::size_t i, const KeptState& saved) override {
    auto state = std::make_unique<ParamState>();
    for (std::size_t k = 0; k < kept_.size(); ++k) kept_[k].in(*state) = saved.tensors[k];
    if (CountsSteps()) set_steps_(*state, saved.step);
    algorithm_.state()[parameters_[i].unsafeGetTensorImpl()] = std::move(state);
  }

 private:
  std::vector<at::Tensor> parameters_;
  Algorithm algorithm_;
  std::vector<TorchTensor<ParamState>> kept_;
  StepCounter steps_;
  SetSteps set_steps_;
};

// Adam and its relatives: `Options` are those of torch::optim, which keeps two moments.
template <typename Algorithm, typename ParamState, typename Options>
std::unique_ptr<OptimizerAlgorithm> MakeMomentsAlgorithm(const std::vector<at::Tensor>& parameters,
                                                         const OptionValues& options) {
  return std::make_unique<TorchAlgorithm<Algorithm, ParamState>>(
      parameters,
      Options(kAnyLearningRate)
          .betas(std::tuple(options.Number(kBeta1), options.Number(kBeta2)))
          .weight_decay(options.Number(kWeightDecay))
          .eps(options.Number(kStabiliser)),
      std::vector<TorchTensor<ParamState>>{
          {"first_moment", [](ParamState& state) -> at::Tensor& { return state.exp_avg(); }},
          {"second_moment", [](ParamState& state) -> at::Tensor& { return state.exp_avg_sq(); }}},
      [](const ParamState& state) { return state.step(); },
      [](ParamState& state, std::int64_t steps) { state.step(steps); });
}
inline constexpr const OptionSpec* kMomentsOptions[] = {&kBeta1, &kBeta2, &kWeightDecay,
                                                        &kStabiliser};

}  // namespace sordino

#endif  // SORDINO_OPTIMIZERS_INTERNAL_TORCH_ALGORITHM_H_
