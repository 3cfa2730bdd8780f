#include "sordino/optimizers/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/optimizers/optimizer_component.h"

namespace sordino {
namespace {

void CheckOptions(const OptimizerOptions& options, std::int64_t steps) {
  CheckRange("the learning rate", options.learning_rate, 0, true, kMaxStepFactor, false);
  CheckRange("the projection radius", options.projection_radius, 0, false, kMaxStepFactor, false);
  CheckRange("the decay of the average of the weights", options.average_decay, 0, false, 1, true);
  CheckRange("the number of steps", static_cast<double>(steps), 1, false, kInfinity, true);
  options.schedule.CheckLength("learning rate", steps);
}

std::string ShownSizes(at::IntArrayRef sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

// Rounding may not leave the ball, and what is inside stays untouched, so that a second projection
// changes nothing: the factor is a little below radius / norm, by more than the scaled entries can
// be rounded up.
void ProjectOntoBall(const std::vector<at::Tensor>& parameters, double radius) {
  std::vector<at::Tensor> norms;
  double epsilon = 0;
  for (const at::Tensor& parameter : parameters) {
    norms.push_back(
        at::linalg_vector_norm(parameter, 2, at::OptionalIntArrayRef(), false, at::kDouble));
    epsilon = std::max(epsilon, parameter.scalar_type() == at::kDouble  ? 0x1p-52
                                : parameter.scalar_type() == at::kFloat ? 0x1p-23
                                : parameter.scalar_type() == at::kHalf  ? 0x1p-10
                                                                        : 0x1p-7);
  }
  const double norm = at::linalg_vector_norm(at::stack(norms)).item<double>();
  if (!(norm > radius)) return;
  const double factor = radius / norm * (1 - 4 * epsilon);
  for (const at::Tensor& parameter : parameters) parameter.detach().mul_(factor);
}

std::string KeptName(const std::string& parameter, std::string_view what) {
  return fmt::format("optimizer.{}.{}", parameter, what);
}

}  // namespace

struct Optimizer::State {
  OptimizerOptions options;
  std::int64_t steps;
  std::int64_t steps_done = 0;
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  std::unique_ptr<OptimizerAlgorithm> algorithm;  // null for a follower
  std::vector<at::Tensor> averages;               // empty without an average
  std::vector<at::Tensor> set_aside;  // the parameters while the averages stand in for them
  bool guarded = false;

  void CheckReady() const;
  void Check(const std::vector<at::Tensor>& gradients) const;
  double Rate() const { return options.learning_rate * options.schedule.Factor(steps_done, steps); }
  void Step(const std::vector<at::Tensor>& gradients);
  bool StepBy(const std::function<bool(const Descent&)>& descend);
  void ForgetGradients() {
    for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
  }
  void Finish();
  // What the algorithm keeps for each parameter, once a step was made.
  std::vector<std::string_view> KeptTensors(std::int64_t after_steps) const {
    return algorithm == nullptr || after_steps == 0 ? std::vector<std::string_view>()
                                                    : algorithm->KeptTensors();
  }
  void UpdateAverages();
};

void Optimizer::State::CheckReady() const {
  if (guarded) {
    throw Error(
        "the optimizer was asked for a step while its averaged weights are in use; let the "
        "AveragedWeights end first.");
  }
  if (steps_done == steps) {
    throw Error(fmt::format(
        "the optimizer was made for {} steps and has made them all; give it the whole length of "
        "the run.",
        steps));
  }
}

void Optimizer::State::Check(const std::vector<at::Tensor>& gradients) const {
  CheckReady();
  if (gradients.size() != parameters.size()) {
    throw Error(fmt::format(
        "{} gradients were given for {} trained parameters; give one for each, in their order.",
        gradients.size(), parameters.size()));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      throw Error(fmt::format("the gradient of '{}' is not defined; give zeros in its shape {}.",
                              names[i], ShownSizes(parameters[i].sizes())));
    }
    if (gradients[i].sizes() != parameters[i].sizes()) {
      throw Error(fmt::format(
          "the gradient of '{}' has the shape {}; it must be {}, that of the "
          "parameter.",
          names[i], ShownSizes(gradients[i].sizes()), ShownSizes(parameters[i].sizes())));
    }
  }
}

void Optimizer::State::Step(const std::vector<at::Tensor>& gradients) {
  SORDINO_CHECK(algorithm != nullptr, "a follower was asked for a step of its own");
  Check(gradients);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    parameters[i].mutable_grad() = gradients[i].to(parameters[i].options(), /*non_blocking=*/true);
  }
  algorithm->Step(Rate());
  ForgetGradients();
  Finish();
}

bool Optimizer::State::StepBy(const std::function<bool(const Descent&)>& descend) {
  SORDINO_CHECK(algorithm != nullptr, "a follower was asked for a step of its own");
  CheckReady();
  const at::NoGradGuard no_grad;
  const std::optional<Descent> descent = algorithm->AsDescent(Rate());
  if (!descent || !descend(*descent)) return false;
  ForgetGradients();
  Finish();
  return true;
}

void Optimizer::State::Finish() {
  if (options.projection_radius > 0) ProjectOntoBall(parameters, options.projection_radius);
  if (!averages.empty()) UpdateAverages();
  ++steps_done;
}

void Optimizer::State::UpdateAverages() {
  const auto step = static_cast<double>(steps_done);
  const double decay = std::min(options.average_decay, (1 + step) / (10 + step));
  for (std::size_t i = 0; i < averages.size(); ++i) averages[i].lerp_(parameters[i], 1 - decay);
}

Optimizer::Optimizer(std::vector<NamedParameter> parameters, const OptimizerOptions& options,
                     std::int64_t steps)
    : Optimizer(std::move(parameters), options, steps, /*follows=*/false) {}

Optimizer Optimizer::Follower(std::vector<NamedParameter> parameters,
                              const OptimizerOptions& options, std::int64_t steps) {
  return {std::move(parameters), options, steps, /*follows=*/true};
}

Optimizer::Optimizer(std::vector<NamedParameter> parameters, const OptimizerOptions& options,
                     std::int64_t steps, bool follows)
    : state_(std::make_unique<State>()) {
  CheckOptions(options, steps);
  const OptimizerComponent& component = Optimizers().Checked(options.algorithm);
  state_->options = options;
  state_->steps = steps;
  for (NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) continue;
    if (!parameter.value.is_leaf()) {
      throw Error(
          fmt::format("'{}' is computed from other tensors; an optimizer needs parameters, "
                      "which are not.",
                      parameter.name));
    }
    const bool tied = std::any_of(state_->parameters.begin(), state_->parameters.end(),
                                  [&](const at::Tensor& p) { return p.is_same(parameter.value); });
    if (tied) continue;
    state_->names.push_back(std::move(parameter.name));
    state_->parameters.push_back(std::move(parameter.value));
  }
  if (state_->parameters.empty()) {
    throw Error(
        "none of the parameters requires a gradient, so there is nothing to train; unfreeze one.");
  }
  const at::NoGradGuard no_grad;
  if (!follows) {
    state_->algorithm = component.Make(state_->parameters, options.algorithm.options);
  }
  if (options.average_decay > 0) {
    for (const at::Tensor& parameter : state_->parameters) {
      state_->averages.push_back(parameter.detach().clone());
    }
  }
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::Step(const NoisedGradients& gradients) { state_->Step(gradients.value()); }

void Optimizer::StepNonPrivate(const std::vector<at::Tensor>& gradients) {
  state_->Step(gradients);
}

bool Optimizer::StepBy(const std::function<bool(const Descent&)>& descend) {
  return state_->StepBy(descend);
}

void Optimizer::Follow() {
  SORDINO_CHECK(state_->algorithm == nullptr, "an optimizer with an algorithm makes its own steps");
  state_->CheckReady();
  const at::NoGradGuard no_grad;
  state_->Finish();
}

std::int64_t Optimizer::steps_done() const { return state_->steps_done; }

NamedTensors Optimizer::SaveState() const {
  const State& s = *state_;
  if (s.guarded) {
    throw Error(
        "the state of the optimizer was to be saved while its averaged weights are in use; let the "
        "AveragedWeights end first.");
  }
  const std::vector<std::string_view> kept = s.KeptTensors(s.steps_done);
  NamedTensors saved;
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    if (!s.averages.empty()) {
      saved.emplace_back("average." + s.names[i], CopyToCpu(s.averages[i]));
    }
    if (kept.empty()) continue;
    const KeptState state = s.algorithm->Kept(i);
    for (std::size_t k = 0; k < kept.size(); ++k) {
      saved.emplace_back(KeptName(s.names[i], kept[k]), CopyToCpu(state.tensors[k]));
    }
    if (s.algorithm->CountsSteps()) {
      saved.emplace_back(KeptName(s.names[i], "step"), at::scalar_tensor(state.step, at::kLong));
    }
  }
  static_cast<void>(SavedTensors(saved));  // names are needed to come back
  return saved;
}

void Optimizer::RestoreState(const NamedTensors& state, std::int64_t steps_done) {
  State& s = *state_;
  if (s.guarded || s.steps_done != 0) {
    throw Error(
        "a saved state was given to an optimizer that has begun; give it to a new one, before its "
        "first step.");
  }
  if (steps_done < 0 || steps_done > s.steps) {
    throw Error(
        fmt::format("the saved state is that of step {} and the run has {} steps; resume with the "
                    "settings of the run that was saved.",
                    steps_done, s.steps));
  }
  SavedTensors saved(state);
  const at::NoGradGuard no_grad;
  const std::vector<std::string_view> kept = s.KeptTensors(steps_done);
  std::vector<at::Tensor> averages;
  std::vector<KeptState> states;
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    const at::Tensor& parameter = s.parameters[i];
    const auto take = [&](const std::string& name) {
      return saved.Take(name, parameter.sizes(), parameter.scalar_type());
    };
    if (!s.averages.empty()) averages.push_back(take("average." + s.names[i]));
    if (kept.empty()) continue;
    KeptState& own = states.emplace_back();
    for (const std::string_view what : kept) {
      own.tensors.push_back(at::empty_like(parameter).copy_(take(KeptName(s.names[i], what))));
    }
    if (s.algorithm->CountsSteps()) {
      own.step = saved.TakeNumber(KeptName(s.names[i], "step"), steps_done, steps_done);
    }
  }
  saved.CheckAllTaken();
  for (std::size_t i = 0; i < averages.size(); ++i) s.averages[i].copy_(averages[i]);
  for (std::size_t i = 0; i < states.size(); ++i) s.algorithm->Restore(i, states[i]);
  s.steps_done = steps_done;
}

Optimizer::AveragedWeights::AveragedWeights(Optimizer& optimizer) : state_(*optimizer.state_) {
  if (state_.guarded) {
    throw Error(
        "the averaged weights of this optimizer are already in use; let the first AveragedWeights "
        "end before making another.");
  }
  // Values are copied and storages kept: recurrent layers on a GPU rely on where theirs lie.
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < state_.averages.size(); ++i) {
    state_.set_aside.push_back(state_.parameters[i].detach().clone());
  }
  for (std::size_t i = 0; i < state_.averages.size(); ++i) {
    state_.parameters[i].detach().copy_(state_.averages[i]);
  }
  state_.guarded = true;
}

Optimizer::AveragedWeights::~AveragedWeights() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < state_.set_aside.size(); ++i) {
    state_.parameters[i].detach().copy_(state_.set_aside[i]);
  }
  state_.set_aside.clear();
  state_.guarded = false;
}

}  // namespace sordino
