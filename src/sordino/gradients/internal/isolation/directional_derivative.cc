#include "sordino/gradients/internal/isolation/directional_derivative.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/internal/isolation/isolation.h"

namespace sordino {
namespace {

// Leaving the level removes every tangent of it, wherever it was set.
class DualLevel {
 public:
  DualLevel() : level_(torch::autograd::forward_ad::enter_dual_level()) {}
  ~DualLevel() { torch::autograd::forward_ad::exit_dual_level(level_); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;
  std::uint64_t level() const { return level_; }

 private:
  std::uint64_t level_;
};

at::Tensor StateOf(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void SetState(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// The operation that libtorch says it cannot differentiate forward, or nothing for other errors.
std::optional<std::string> OperationWithoutDerivative(std::string_view message) {
  constexpr std::string_view kBefore = "Trying to use forward AD with ";
  constexpr std::string_view kAfter = " that does not support it";
  const std::size_t before = message.find(kBefore);
  if (before != std::string_view::npos) {
    const std::size_t begin = before + kBefore.size();
    const std::size_t end = message.find(kAfter, begin);
    if (end != std::string_view::npos) return std::string(message.substr(begin, end - begin));
  }
  if (message.find("jvp is not implemented") != std::string_view::npos) {
    return "a custom autograd function";
  }
  return std::nullopt;
}

}  // namespace

struct RepeatedLoss::FastKernelsOff {
  FastKernelsOff() {
    context.setUserEnabledMkldnn(false);
    context.setUserEnabledCuDNN(false);
    context.setSDPUseFlash(false);
    context.setSDPUseMemEfficient(false);
    context.setSDPUseCuDNN(false);
  }
  ~FastKernelsOff() {
    context.setUserEnabledMkldnn(mkldnn);
    context.setUserEnabledCuDNN(cudnn);
    context.setSDPUseFlash(flash);
    context.setSDPUseMemEfficient(efficient);
    context.setSDPUseCuDNN(cudnn_attention);
  }
  FastKernelsOff(const FastKernelsOff&) = delete;
  FastKernelsOff& operator=(const FastKernelsOff&) = delete;

  at::Context& context = at::globalContext();
  const bool mkldnn = context.userEnabledMkldnn();
  const bool cudnn = context.userEnabledCuDNN();
  const bool flash = context.userEnabledFlashSDP();
  const bool efficient = context.userEnabledMemEfficientSDP();
  const bool cudnn_attention = context.userEnabledCuDNNSDP();
};

RepeatedLoss::RepeatedLoss(LossFunction loss, Batch batch,
                           const std::vector<NamedParameter>& parameters)
    : loss_(std::move(loss)), batch_(std::move(batch)) {
  for (const NamedParameter& parameter : parameters) parameters_.push_back(parameter.value);
  generators_.push_back(at::globalContext().defaultGenerator(at::kCPU));
  if (!parameters_.empty() && !parameters_[0].is_cpu()) {
    generators_.push_back(at::globalContext().defaultGenerator(parameters_[0].device()));
  }
  for (const at::Generator& generator : generators_) states_.push_back(StateOf(generator));
}

RepeatedLoss::~RepeatedLoss() = default;

void RepeatedLoss::Rewind() {
  for (std::size_t i = 0; i < generators_.size(); ++i) SetState(generators_[i], states_[i]);
}

bool RepeatedLoss::DrewRandomNumbers() const {
  for (std::size_t i = 0; i < generators_.size(); ++i) {
    if (!StateOf(generators_[i]).equal(states_[i])) return true;
  }
  return false;
}

at::Tensor RepeatedLoss::TryDerivatives(const std::vector<at::Tensor>& tangents) {
  Rewind();
  // Forward mode needs no graph; without one, activations are freed during the pass.
  const at::NoGradGuard no_graph;
  const DualLevel dual;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!tangents[p].defined()) continue;
    parameters_[p]._set_fw_grad(tangents[p], dual.level(), /*is_inplace_op=*/false);
  }
  const at::Tensor losses = IsolatedLosses(loss_, batch_, Examples(batch_));
  const at::Tensor& derivatives = losses._fw_grad(dual.level());
  return derivatives.defined() ? derivatives.to(at::kDouble)
                               : at::zeros({losses.size(0)}, losses.options().dtype(at::kDouble));
}

at::Tensor RepeatedLoss::Derivatives(const std::vector<at::Tensor>& tangents) {
  SORDINO_CHECK(tangents.size() == parameters_.size(), "a parameter has no tangent");
  try {
    return TryDerivatives(tangents);
  } catch (const c10::Error& error) {
    if (!OperationWithoutDerivative(error.what_without_backtrace())) throw;
  }
  if (!fast_kernels_off_) fast_kernels_off_ = std::make_unique<FastKernelsOff>();
  try {
    return TryDerivatives(tangents);
  } catch (const c10::Error& error) {
    const auto operation = OperationWithoutDerivative(error.what_without_backtrace());
    if (!operation) throw;
    throw Error(c10::str("The model uses ", *operation,
                         ", for which libtorch has no forward-mode derivative, so norms cannot be "
                         "estimated by projections; use exact norms (automatic, ghost or "
                         "materialised), or replace the operation."));
  }
}

at::Tensor RepeatedLoss::Losses(const Batch& batch) {
  Rewind();
  const at::AutoGradMode grad_mode(true);
  return IsolatedLosses(loss_, batch, Examples(batch));
}

at::Tensor RepeatedLoss::LossesOf(const Batch& other) {
  Rewind();
  const at::NoGradGuard no_graph;
  return IsolatedLosses(loss_, other, Examples(other));
}

}  // namespace sordino
