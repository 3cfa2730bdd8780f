#include "sordino/gradients/internal/isolation/isolation.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/BatchedFallback.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/movedim.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/internal/isolation/bfloat16_products.h"
#include "sordino/gradients/internal/isolation/isolated_operations.h"
#include "sordino/gradients/internal/isolation/isolated_units.h"
#include "sordino/gradients/internal/isolation/pure_operations.h"
#include "sordino/gradients/internal/physical_batch.h"

namespace sordino {
namespace {

namespace functorch = at::functorch;
using isolated::ProductPrecision;

std::int64_t NextLevel() {
  static std::atomic<std::int64_t> level{0};
  return ++level;
}

// The first line, without where it was thrown, and without numbers.
std::string WithoutNumbers(std::string_view message) {
  message = message.substr(0, message.find("\nException raised from"));
  std::string text;
  for (const char c : message) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (text.empty() || text.back() != '#') text += '#';
    } else {
      text += c == '\n' ? ' ' : c;
    }
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

struct Reason {
  std::string_view sign;  // in libtorch's message
  const char* sentence;
};

// The first that is found counts.
constexpr Reason kReasons[] = {
    {"Batch norm got a batched tensor",
     "a batch norm normalises over the batch and keeps running statistics, so every example enters "
     "the gradient of every other; use group norm or layer norm, or put the layer into evaluation "
     "mode."},
    {"Expected more than 1 value per channel when training",
     "a batch norm normalises over the batch, so every example enters the gradient of every other; "
     "use group norm or layer norm, or put the layer into evaluation mode."},
    {"calling .item() on a Tensor",
     "the model takes a value of an example out of its tensor (item, bool, a branch or a loop that "
     "depends on a value), which is not possible for all examples of a batch at once; compute with "
     "tensors instead, with masks or where."},
    {"data-dependent control flow",
     "the model takes a value of an example out of its tensor (item, bool, a branch or a loop that "
     "depends on a value), which is not possible for all examples of a batch at once; compute with "
     "tensors instead, with masks or where."},
    {"is not possible because there exists a Tensor",
     "the model writes values of an example into a tensor that all examples share (a buffer, a "
     "running statistic, a tensor made with zeros); keep no state between calls, and make new "
     "tensors with zeros_like of a tensor of the example."},
    // What is written has one dimension more, that of the examples.
    {"doesn't match the broadcast shape",
     "the model writes values of an example into a tensor that all examples share (a buffer, a "
     "running statistic, a tensor made with zeros); keep no state between calls, and make new "
     "tensors with zeros_like of a tensor of the example."},
    {"vmap: inplace arithmetic",
     "the model writes values of an example into a tensor that all examples share (a buffer, a "
     "running statistic, a tensor made with zeros); keep no state between calls, and make new "
     "tensors with zeros_like of a tensor of the example."},
    {"a leaf Variable that requires grad",
     "the model writes to a parameter; leave the parameters to the optimizer."},
    {"inplace randomness on an unbatched tensor",
     "the model fills a tensor that all examples share with random numbers in place; draw them "
     "with "
     "bernoulli or rand_like, or make the tensor with new_empty of a tensor of the example."},
    {"that doesn't have storage",
     "the model uses the memory of a tensor directly, or a tensor that it kept from an earlier "
     "call; keep no state between calls."},
    {"Cannot access storage of BatchedTensorImpl",
     "the model uses the memory of a tensor directly, or a tensor that it kept from an earlier "
     "call; keep no state between calls."},
};

// Errors of a script come with a trace; the last line says what went wrong.
std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  constexpr std::string_view kSign = "RuntimeError: ";
  const std::size_t at = text.rfind(kSign);
  return at == std::string::npos ? text : text.substr(at + kSign.size());
}

[[noreturn]] void Rethrow(std::string message) {
  message = LastLine(std::move(message));
  for (const Reason& reason : kReasons) {
    if (message.find(reason.sign) != std::string::npos) throw NotPerExample(reason.sentence);
  }
  if (message.find("dynamic shape") != std::string::npos) {
    constexpr std::string_view kOperation = "vmap over aten::";
    const auto begin = message.find(kOperation);
    std::string name = "an operation";
    if (message.find("boolean mask") != std::string::npos) name = "a boolean mask as an index";
    if (begin != std::string::npos) {
      name = message.substr(begin + kOperation.size());
      name = "the operation '" + name.substr(0, name.find_first_of(". ")) + "'";
    }
    throw NotPerExample("the model uses " + name +
                        ", whose output has a size that depends on the values of an example; use "
                        "masks and a fixed size instead: where(mask, a, b) for what is written, "
                        "and sums that are weighted with the mask for what is read.");
  }
  if (const auto end = message.find(" hit the vmap fallback"); end != std::string::npos) {
    const std::string name = message.substr(0, end);
    throw NotPerExample("the operation '" + name +
                        "' cannot be run for all examples of a batch at once; " + WayOutOf(name) +
                        ".");
  }
  throw NotPerExample(
      "the model fails on an example that is alone in its batch: " + WithoutNumbers(message) +
      " (numbers are left out, because they may come from private data); let the model take "
      "batches "
      "of any size, also of one, and where it is a trace trace it again with sizes that it asks "
      "for.");
}

// Looks at the arguments of every operation on this thread for wrapped tensors of another level.
class KeptTensorWatch {
 public:
  KeptTensorWatch() {
    active_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
              for (const c10::IValue& input : call.inputs()) active_->Inspect(input);
              return nullptr;
            })
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~KeptTensorWatch() {
    at::removeCallback(handle_);
    active_ = nullptr;
  }
  KeptTensorWatch(const KeptTensorWatch&) = delete;
  KeptTensorWatch& operator=(const KeptTensorWatch&) = delete;

  void SetLevel(std::int64_t level) { level_ = level; }
  bool found() const { return found_; }
  bool has_own_function() const { return has_own_function_; }

 private:
  void Inspect(const c10::IValue& value) {
    if (value.isTensor()) {
      auto* wrapped = functorch::maybeGetBatchedImpl(value.toTensor());
      if (level_ == 0 || wrapped == nullptr) return;
      // Autograd works on what is inside; only an autograd function of the model's own leaves a
      // trace outside.
      has_own_function_ = has_own_function_ || wrapped->requires_grad();
      if (wrapped->level() == level_) return;
      found_ = true;
      // The operation continues with it, so that it does not crash; its result is not used.
      wrapped->_unsafe_set_level(level_);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) Inspect(tensor);
    }
  }

  static thread_local KeptTensorWatch* active_;
  at::CallbackHandle handle_ = 0;
  std::int64_t level_ = 0;
  bool found_ = false;
  bool has_own_function_ = false;
};
thread_local KeptTensorWatch* KeptTensorWatch::active_ = nullptr;

template <typename Run>
at::Tensor WithoutPrivateErrors(const Run& run) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
    const std::string message =
        of_libtorch != nullptr ? of_libtorch->what_without_backtrace() : error.what();
    // The second one is for directional_derivative.h.
    if (IsOutOfMemory(error) || message.find("forward AD") != std::string::npos) throw;
    Rethrow(message);
  }
}

}  // namespace

class DroppedWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

struct IsolationLayer::Guards {
  // An operation without a rule is an error; libtorch would run it unit by unit.
  Guards() { functorch::setVmapFallbackEnabled(false); }
  ~Guards() { functorch::setVmapFallbackEnabled(fallback); }
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  const bool fallback = functorch::isVmapFallbackEnabled();
  // libtorch warns by strides and sizes that it sees, which may tell how many examples there are.
  DroppedWarnings dropped;
  c10::WarningUtils::WarningHandlerGuard warnings{&dropped};
  // A model may leave it off.
  const at::AutoGradMode gradients{at::GradMode::is_enabled()};
  // Random numbers are drawn for each unit apart.
  c10::impl::IncludeDispatchKeyGuard random{c10::DispatchKey::FuncTorchVmapMode};
};

IsolationLayer::IsolationLayer(std::int64_t units) : units_(units), level_(NextLevel()) {
  SORDINO_CHECK(functorch::getDynamicLayerStack().empty(), "isolated passes do not nest");
  RegisterIsolatedOperations();
  functorch::DynamicLayer layer(functorch::TransformType::Vmap, level_, c10::SymInt(units),
                                functorch::RandomnessType::Different);
  layer.interpreter().set_is_alive(true);
  functorch::setDynamicLayerStack({std::move(layer)});
  guards_ = std::make_unique<Guards>();
}

IsolationLayer::~IsolationLayer() {
  guards_.reset();
  isolated::ForgetSplits();
  functorch::setDynamicLayerStack({});
}

at::Tensor IsolationLayer::Wrap(const at::Tensor& tensor) const {
  SORDINO_CHECK(tensor.size(0) == units_, "a wrapped tensor has a row for each unit");
  return functorch::makeBatched(tensor, 0, level_);
}

at::Tensor IsolationLayer::Unwrap(const at::Tensor& tensor) const {
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  if (wrapped == nullptr) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.insert(sizes.begin(), units_);
    return tensor.unsqueeze(0).expand(sizes);
  }
  if (wrapped->level() != level_) {
    throw NotPerExample(
        "the model returns a tensor that it kept from an earlier call; keep no state between "
        "calls.");
  }
  return wrapped->bdim() == 0 ? wrapped->value() : wrapped->value().movedim(wrapped->bdim(), 0);
}

at::Tensor IsolatedLosses(const LossFunction& loss, const Batch& batch, std::int64_t units) {
  const std::int64_t examples = Examples(batch);
  SORDINO_CHECK(units > 0 && examples % units == 0, "a batch is whole units");
  const std::int64_t width = examples / units;
  Batch alone;
  for (const at::Tensor& tensor : batch) {
    alone.push_back(width == 1 ? tensor.unsqueeze(1) : tensor.unflatten(0, {units, width}));
  }
  return WithoutPrivateErrors([&] {
    const IsolationLayer layer(units);
    for (at::Tensor& tensor : alone) tensor = layer.Wrap(tensor);
    const ProductPrecision precision(ProductPrecision::Of::kUsed);
    const at::Tensor losses = loss(alone);
    CheckLosses(losses, width);
    return isolated::MergeUnits(layer.Unwrap(losses));
  });
}

at::Tensor WatchedLosses(const LossFunction& loss, const Batch& batch, std::int64_t units) {
  // Not on the stack, which a program may move while its loss runs (coroutines that copy stacks).
  const auto owned = std::make_unique<KeptTensorWatch>();
  KeptTensorWatch& watch = *owned;
  const auto check = [&] {
    if (watch.found()) {
      throw NotPerExample(
          "the model uses a tensor of an example that it kept from an earlier call; keep no state "
          "between calls.");
    }
    if (watch.has_own_function()) {
      throw NotPerExample(
          "the model uses an autograd function of its own (or a checkpoint), whose gradients per "
          "example cannot be computed; write it with operations of libtorch.");
    }
  };
  const LossFunction watched = [&](const Batch& alone) {
    watch.SetLevel(functorch::maybeGetBatchedImpl(alone.front())->level());
    return loss(alone);
  };
  at::Tensor losses;
  try {
    losses = IsolatedLosses(watched, batch, units);
  } catch (const NotPerExample&) {
    check();  // the reason behind it
    throw;
  }
  check();
  return losses;
}

void RethrowFromBackward(const c10::Error& error) {
  const std::string message = LastLine(error.what_without_backtrace());
  constexpr std::string_view kOfDevice[] = {"CUDA error", "CUBLAS_STATUS", "cuDNN error", "NCCL"};
  const bool is_of_device =
      std::any_of(std::begin(kOfDevice), std::end(kOfDevice),
                  [&](std::string_view sign) { return message.find(sign) != std::string::npos; });
  if (is_of_device || IsOutOfMemory(error) || message.find("forward AD") != std::string::npos) {
    throw;
  }
  throw NotPerExample(
      "the gradients of the model cannot be computed for each example: " + WithoutNumbers(message) +
      " (numbers are left out, because they may come from private data); write the operation in "
      "another way, or use --norms loop, which takes ordinary passes.");
}

at::Tensor JointLosses(const LossFunction& loss, const Batch& batch) {
  return WithoutPrivateErrors([&] {
    const IsolationLayer layer(1);
    Batch whole;
    for (const at::Tensor& tensor : batch) whole.push_back(layer.Wrap(tensor.unsqueeze(0)));
    const ProductPrecision precision(ProductPrecision::Of::kUsed);
    const at::Tensor losses = loss(whole);
    CheckLosses(losses, Examples(batch));
    return layer.Unwrap(losses).squeeze(0);
  });
}

GeneratorStates::GeneratorStates(at::Device device) {
  generators_.push_back(at::globalContext().defaultGenerator(at::kCPU));
  if (!device.is_cpu()) generators_.push_back(at::globalContext().defaultGenerator(device));
  for (at::Generator& generator : generators_) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    states_.push_back(generator.get_state());
  }
}

void GeneratorStates::Rewind() const {
  for (std::size_t k = 0; k < generators_.size(); ++k) {
    at::Generator generator = generators_[k];
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(states_[k]);
  }
}

void GeneratorStates::Seed(std::uint64_t seed) const {
  for (at::Generator generator : generators_) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

bool GeneratorStates::HaveMoved() const {
  for (std::size_t k = 0; k < generators_.size(); ++k) {
    at::Generator generator = generators_[k];
    const std::lock_guard<std::mutex> lock(generator.mutex());
    if (!generator.get_state().equal(states_[k])) return true;
  }
  return false;
}

bool IsWrapped(const at::Tensor& tensor) {
  return tensor.defined() && functorch::isBatchedTensor(tensor);
}

}  // namespace sordino
