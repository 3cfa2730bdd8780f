#include "sordino/gradients/internal/isolation/operation_comparison.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/ops/isclose.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/isolation/bfloat16_products.h"

namespace sordino {
namespace {

namespace functorch = at::functorch;

// The outputs of an operation that a model called; those of the operations that it consists of are
// not looked at.
struct Call {
  std::string name;
  std::string overload;
  std::vector<at::Tensor> outputs;  // units first; undefined where the output is shared
};

struct Recorder {
  int depth = 0;
  std::vector<Call> calls;
};
thread_local Recorder* recorder = nullptr;

at::Tensor UnitsFirst(const c10::IValue& output) {
  if (!output.isTensor()) return {};
  const auto* wrapped = functorch::maybeGetBatchedImpl(output.toTensor());
  if (wrapped == nullptr) return {};
  // A copy: operations in place may change it later.
  return wrapped->value().detach().movedim(wrapped->bdim(), 0).clone();
}

// Records what runs in its scope on this thread.
class Recording {
 public:
  explicit Recording(Recorder& into) {
    recorder = &into;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& /*call*/) -> std::unique_ptr<at::ObserverContext> {
              ++recorder->depth;
              return nullptr;
            },
            [](const at::RecordFunction& call, at::ObserverContext* /*context*/) {
              if (--recorder->depth > 0) return;
              const auto operation = call.operator_name();
              if (!operation) return;
              // What the copy below calls is not the model's.
              const int before = std::exchange(recorder->depth, 1);
              Call made{operation->name, operation->overload_name, {}};
              for (const c10::IValue& output : call.outputs()) {
                made.outputs.push_back(UnitsFirst(output));
              }
              recorder->calls.push_back(std::move(made));
              recorder->depth = before;
            })
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~Recording() {
    at::removeCallback(handle_);
    recorder = nullptr;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  at::CallbackHandle handle_ = 0;
};

double Tolerance(at::ScalarType type) {
  if (type == at::kDouble) return 1e-8;
  return type == at::kFloat ? 2e-3 : 1e-1;
}

bool Close(const at::Tensor& alone, const at::Tensor& joint) {
  if (!alone.is_floating_point()) return alone.equal(joint.to(alone.scalar_type()));
  const at::ScalarType type = isolated::RoundingType(alone.scalar_type());
  const double tolerance = Tolerance(type);
  const at::Tensor x = alone.to(at::kDouble);
  const at::Tensor y = joint.to(at::kDouble);
  // Entries near zero among larger ones round as the larger ones do, and a loss near zero as the
  // scores do that it is the logarithm of.
  const double near_zero = type == at::kFloat || type == at::kDouble ? 1e-3 : 0.5;
  const double scale = y.numel() == 0 ? 0 : y.nan_to_num(0, 0, 0).abs().max().item<double>();
  return at::isclose(x, y, tolerance, near_zero * tolerance * scale + 1e-30, /*equal_nan=*/true)
      .all()
      .item<bool>();
}

// Joint outputs have one dimension that is larger by the number of units, which may lie in front
// of, behind or between what an example has of it.
bool SameOutput(const at::Tensor& alone, const at::Tensor& joint) {
  if (!alone.defined() || !joint.defined()) return true;
  const std::int64_t units = alone.size(0);
  const at::Tensor whole = joint.select(0, 0);
  if (whole.dim() + 1 != alone.dim()) return false;
  for (std::int64_t dim = 0; dim < whole.dim(); ++dim) {
    if (whole.size(dim) != units * alone.size(dim + 1)) continue;
    const std::int64_t own = alone.size(dim + 1);
    for (std::int64_t outer = 1; outer <= own; ++outer) {
      if (own % outer != 0) continue;
      const at::Tensor parts = whole.unflatten(dim, {outer, units, own / outer})
                                   .movedim(dim + 1, 0)
                                   .flatten(dim + 1, dim + 2);
      if (parts.sizes() == alone.sizes() && Close(alone, parts)) return true;
    }
  }
  return false;
}

bool DrawsNumbers(const Call& call) {
  const auto operation = c10::Dispatcher::singleton().findSchema({call.name, call.overload});
  return operation && operation->hasTag(at::Tag::nondeterministic_seeded);
}

struct Difference {
  std::string operation;
  bool draws_numbers = false;
};

Difference FirstDifference(const Recorder& alone, const Recorder& joint) {
  for (std::size_t k = 0; k < alone.calls.size() && k < joint.calls.size(); ++k) {
    const Call& one = alone.calls[k];
    const Call& all = joint.calls[k];
    const std::string name = one.name.substr(one.name.find("::") + 2);
    if (one.name != all.name || one.outputs.size() != all.outputs.size()) return {name, false};
    for (std::size_t i = 0; i < one.outputs.size(); ++i) {
      if (!SameOutput(one.outputs[i], all.outputs[i])) return {name, DrawsNumbers(one)};
    }
  }
  return {"loss", false};
}

[[noreturn]] void Refuse(const std::string& operation) {
  std::string way_out = "let every example go through the model alone";
  if (operation.find("norm") != std::string::npos) {
    way_out = "use group norm or layer norm, or put a batch norm into evaluation mode";
  } else if (operation == "loss") {
    way_out = "give one loss for each example, without means or sums over the batch";
  }
  throw DifferentValues(
      "the losses of examples in a batch are not those of the same examples alone, first in the "
      "operation '" +
      operation + "': the model mixes the examples of a batch, so it means something else here; " +
      way_out + ".");
}

}  // namespace

void CompareWithJoint(const LossFunction& loss, const Batch& batch, std::int64_t units,
                      const GeneratorStates& states, const at::Tensor& known) {
  if (Examples(batch) == 1 || units == 1) return;
  const at::NoGradGuard no_grad;
  states.Rewind();
  at::Tensor joint;
  try {
    joint = JointLosses(loss, batch);
  } catch (const NotPerExample&) {
    // Examples alone were no problem, so there is nothing to compare with.
    states.Rewind();
    return;
  }
  const bool is_random = states.HaveMoved();
  states.Rewind();
  const bool take_known = known.defined() && !is_random;
  const at::Tensor alone = take_known ? known.detach() : IsolatedLosses(loss, batch, units);
  if (!Close(alone, joint)) {
    Recorder of_alone;
    Recorder of_joint;
    states.Rewind();
    {
      const Recording recording(of_alone);
      IsolatedLosses(loss, batch, units);
    }
    states.Rewind();
    {
      const Recording recording(of_joint);
      JointLosses(loss, batch);
    }
    states.Rewind();
    const Difference difference = FirstDifference(of_alone, of_joint);
    if (!is_random || !difference.draws_numbers) Refuse(difference.operation);
  }
  states.Rewind();
}

}  // namespace sordino
