// How a PartClipper looks at a model before it sums anything: with a few examples of the batch, or
// with made-up ones (GradientOptions::made_up).
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/part_clipper.h"
#include "sordino/gradients/internal/physical_batch.h"

namespace sordino {
namespace {

// Units that a model is looked at with before it sees a batch of more. Where one token of T has a
// gradient (the class token of a ViT), units may also seem to take turns if T, or a number that
// divides the entries of a unit, is 1 modulo the units, and the model is looked at again. Widths
// are mostly 2^a 3^b, which is never 1 modulo 6.
constexpr std::int64_t kFewUnits = 6;

// How often a model is looked at with made-up examples, and the seed of its random numbers then.
constexpr std::int64_t kDraws = 3;
constexpr std::uint64_t kLookSeed = 41;
constexpr double kLookDeviation = 0.02;

// Weights that are all zero when training begins (the head of a ViT, the second factor of LoRA)
// leave gradients of zero, which show nothing: during a look they are small random numbers. Neither
// their versions nor their bits show it afterwards.
class WithoutZeros {
 public:
  explicit WithoutZeros(const std::vector<NamedParameter>& parameters) {
    const at::NoGradGuard no_grad;
    at::Generator generator = at::detail::createCPUGenerator(kLookSeed);
    for (const NamedParameter& parameter : parameters) {
      const at::Tensor value = parameter.value.variable_data();
      if (value.ne(0).any().item<bool>()) continue;
      zeros_.emplace_back(value, value.clone());
      value.copy_(at::randn(value.sizes(), generator).mul_(kLookDeviation));
    }
  }
  ~WithoutZeros() {
    const at::NoGradGuard no_grad;
    for (const auto& [value, before] : zeros_) value.copy_(before);
  }
  WithoutZeros(const WithoutZeros&) = delete;
  WithoutZeros& operator=(const WithoutZeros&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> zeros_;  // with what was there: -0 has other bits
};

}  // namespace

// What is found out about a model when its graph is new takes several passes, and holds for any
// number of units: they are made with a few of the batch, whose sum is thrown away.
void PartClipper::LookAtFew(const LossFunction& loss, const Batch& batch,
                            const ClippingPolicy& policy) {
  const bool looks = options_.probe || options_.compare || options_.checked_examples > 0;
  const std::int64_t few = kFewUnits * sum_.micro_batch;
  if (has_looked_ || !looks || IsPrivate() || Examples(batch) <= few) return;
  has_looked_ = true;
  // The batch gets the random numbers that it would have had.
  const GeneratorStates states(parameters_.front().value.device());
  // Copies: a model may write into its inputs.
  Batch copy;
  for (const at::Tensor& tensor : batch) copy.push_back(tensor.narrow(0, 0, few).clone());
  try {
    WithPass(LossesOf(loss, copy), policy, loss, copy, [](const PerExamplePass&, const Tape&) {});
  } catch (const NeedsLoop&) {
    // A value that is not finite: the batch shows what to do.
  }
  states.Rewind();
}

Batch PartClipper::MadeUp(std::int64_t first, std::int64_t examples) const {
  Batch chosen;
  for (const at::Tensor& tensor : options_.made_up) {
    const at::Tensor rows =
        at::arange(first, first + examples, at::kLong).remainder(tensor.size(0));
    chosen.push_back(tensor.index_select(0, rows.to(tensor.device())));
  }
  return chosen;
}

// Compares and checks, with random numbers that are the same in every process, which are then as if
// nothing had been drawn.
void PartClipper::LookAt(const LossFunction& loss, const Batch& examples,
                         const ClippingPolicy& policy) {
  struct Look {
    Look(bool& looking, at::Device device) : flag(looking), states(device) {
      flag = true;
      states.Seed(kLookSeed);
    }
    ~Look() {
      flag = false;
      states.Rewind();
    }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;
    bool& flag;
    GeneratorStates states;
  };
  const Look look(is_looking_, parameters_.front().value.device());
  const WithoutZeros weights(parameters_);
  if (falls_back_ || options_.norms == NormMethod::kLoop || Units(Examples(examples)) == 1) {
    LoopAll(loss, examples, policy);
    return;
  }
  try {
    WithPass(LossesOf(loss, examples), policy, loss, examples,
             [](const PerExamplePass&, const Tape&) {});
  } catch (const NeedsLoop&) {
    // A value that is not finite, which is no fault of the model.
  }
}

// One draw that goes through is enough: others may have values that an operation does not take.
void PartClipper::LookAtMadeUp(const LossFunction& loss, const ClippingPolicy& policy) {
  const std::int64_t few = kFewUnits * sum_.micro_batch;
  std::exception_ptr failure;
  bool is_fit = false;
  bool needs_loop = false;
  for (std::int64_t draw = 0; draw < kDraws; ++draw) {
    GraphMemory before = std::exchange(memory_, {});
    try {
      LookAt(loss, MadeUp(draw * few, few), policy);
      is_fit = true;
    } catch (const DifferentValues&) {
      throw;
    } catch (const std::exception& error) {
      if (IsOutOfMemory(error)) throw;
      if (!failure) failure = std::current_exception();
      needs_loop = dynamic_cast<const NotPerExample*>(&error) != nullptr;
    }
    if (memory_.IsEmpty()) memory_ = std::move(before);
  }
  if (is_fit) return;
  if (!needs_loop || !options_.fallback || falls_back_) std::rethrow_exception(failure);
  falls_back_ = true;
  LookAtMadeUp(loss, policy);
}

void PartClipper::Check(const LossFunction& loss, const ClippingPolicy& policy) {
  if (!IsPrivate() || is_checked_) return;
  LookAtMadeUp(loss, policy);
  is_checked_ = true;
}

// Whether an error comes from the values of records. Throws what made-up examples show as well.
bool PartClipper::FailsForRecords(const std::exception& error, const LossFunction& loss,
                                  const ClippingPolicy& policy) {
  if (!IsPrivate() || is_looking_ || IsOutOfMemory(error)) return false;
  LookAtMadeUp(loss, policy);
  return true;
}

}  // namespace sordino
