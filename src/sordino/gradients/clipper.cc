#include "sordino/gradients/clipper.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/internal/graph/gradient_check.h"
#include "sordino/gradients/internal/graph/graph_reading.h"
#include "sordino/gradients/internal/graph/per_example_pass.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/isolation/operation_comparison.h"
#include "sordino/gradients/internal/physical_batch.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/rounding/sum_plan.h"
#include "sordino/gradients/internal/rounding/sum_sensitivity.h"
#include "sordino/gradients/internal/terms/row_kernels.h"

namespace sordino {
namespace {

// What a batch adds up to, before it is a BoundedSum.
struct Totals {
  std::vector<at::Tensor> gradients;  // undefined for zero
  at::Tensor clipped;
  at::Tensor counts;
  std::vector<at::Tensor> norms;

  void Add(Totals other) {
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (!other.gradients[k].defined()) continue;
      // Float64 between the parts of a cut batch: what they were cut into does not show.
      const at::Tensor wide = other.gradients[k].to(at::kDouble);
      gradients[k] = gradients[k].defined() ? gradients[k].to(at::kDouble) + wide : wide;
    }
    const auto add = [](at::Tensor& sum, const at::Tensor& more) {
      if (more.defined()) sum = sum.defined() ? sum + more : more;
    };
    add(clipped, other.clipped);
    add(counts, other.counts);
    norms.insert(norms.end(), other.norms.begin(), other.norms.end());
  }
};

// The batch, and copies of its first example behind it.
Batch Padded(const Batch& batch, std::int64_t examples) {
  Batch padded;
  for (const at::Tensor& tensor : batch) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = examples - tensor.size(0);
    padded.push_back(at::cat({tensor, tensor.narrow(0, 0, 1).expand(sizes)}));
  }
  return padded;
}

// The bounds as [groups, 1] beside the norms; one group needs no copy to a device.
at::Tensor BoundsOn(const at::Tensor& norms, const std::vector<double>& bounds) {
  if (bounds.size() == 1) return at::full({1, 1}, bounds.front(), norms.options());
  return at::tensor(bounds, norms.options()).unsqueeze(1);
}

}  // namespace

// Batches of this size and more are cut by what was measured; below, only where memory ran out.
constexpr std::int64_t kMeasureFrom = 32;
constexpr std::int64_t kFewExamples = 8;
constexpr int kMeasuredPasses = 3;
// On a CPU a part of more memory than this is not faster than two smaller ones.
constexpr std::int64_t kPartBytes = 160 << 20;

struct Clipper::State {
  std::vector<NamedParameter> parameters;
  GradientOptions options;
  SumOptions sum;
  GraphMemory memory;
  bool falls_back = false;
  // Examples that fit into memory at once, as far as known.
  std::int64_t fitting = std::numeric_limits<std::int64_t>::max();
  int measured_passes = 0;
  std::vector<std::int64_t> few_history;
  // The plan of the last sum, and what it was made for.
  std::optional<SumPlan> plan;
  SumShape planned_shape;
  std::vector<double> planned_bounds;
  double largest_factor = 1;

  void CheckSize(std::int64_t examples) const;
  std::int64_t MeasuredExamples() const {
    return measured_passes + 1 < kMeasuredPasses ? kFewExamples : 2 * kFewExamples;
  }
  std::int64_t PartFrom(std::int64_t begin, std::int64_t examples) const;
  std::int64_t PaddedSize(std::int64_t part, std::int64_t full) const;
  Totals MeasuredPart(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);
  Totals Part(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
              std::int64_t padded_examples = 0);
  Totals FromLosses(const at::Tensor& losses, std::int64_t real_units, const ClippingPolicy& policy,
                    const LossFunction& loss, const Batch& batch);
  Totals Whole(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);
  Totals Loop(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy) const;
  SumPlan PlanOf(const PerExamplePass& pass, const Tape& tape, const ClippingPolicy& policy);
  GraphReading Read(const at::Tensor& losses, std::int64_t units, const LossFunction& loss,
                    const Batch& batch, bool* is_new);
  std::vector<bool> SharedNodesOf(const Graph& graph, std::int64_t units, const LossFunction& loss,
                                  const Batch& batch) const;
  BoundedSum Finish(Totals totals, const ClippingPolicy& policy) const;
  // The norms of an empty batch, [groups, 0].
  at::Tensor NoNorms(const ClippingPolicy& policy) const {
    return at::zeros({static_cast<std::int64_t>(policy.Bounds().size()), 0},
                     parameters.front().value.options().dtype(at::kDouble).requires_grad(false));
  }
  std::int64_t Units(std::int64_t examples) const {
    return (examples + sum.micro_batch - 1) / sum.micro_batch;
  }
};

// Which nodes of the graph are the same for all examples, from a second pass with another number of
// them.
std::vector<bool> Clipper::State::SharedNodesOf(const Graph& graph, std::int64_t units,
                                                const LossFunction& loss,
                                                const Batch& batch) const {
  const std::int64_t width = Examples(batch) / units;
  const GeneratorStates states(parameters.front().value.device());
  // Two are cheap; but libtorch may take other ways for few examples, and then it is one more.
  for (const std::int64_t others : {std::int64_t{2}, units + 1}) {
    if (others == units) continue;
    Batch other;
    for (const at::Tensor& tensor : batch) {
      other.push_back(others < units
                          ? tensor.narrow(0, 0, others * width)
                          : at::cat({tensor, tensor.narrow(0, 0, (others - units) * width)}));
    }
    const at::Tensor losses = WatchedLosses(loss, other, others);
    states.Rewind();
    if (auto shared = SharedNodes(graph, ReadGraph(losses, parameters))) return *std::move(shared);
  }
  throw NotPerExample(
      "The model computes something else in each call (its graph changes from call to call), so "
      "nothing that was found out about it holds for the next one; let it do the same for every "
      "batch.");
}

GraphReading Clipper::State::Read(const at::Tensor& losses, std::int64_t units,
                                  const LossFunction& loss, const Batch& batch, bool* is_new) {
  Graph graph = ReadGraph(losses, parameters);
  std::optional<GraphReading> reading = memory.Recall(graph, losses.numel(), units, parameters);
  *is_new = !reading.has_value();
  if (reading) return *std::move(reading);
  // Copies: a model may write into its inputs.
  Batch copy;
  for (const at::Tensor& tensor : batch) copy.push_back(tensor.clone());
  std::vector<bool> shared = SharedNodesOf(graph, units, loss, copy);
  if (options.compare) {
    CompareWithJoint(loss, copy, units, GeneratorStates(parameters.front().value.device()));
  }
  return memory.Learn(std::move(graph), std::move(shared), losses, units, parameters,
                      options.probe);
}

SumPlan Clipper::State::PlanOf(const PerExamplePass& pass, const Tape& tape,
                               const ClippingPolicy& policy) {
  SumShape shape;
  shape.float64 = true;
  for (const NamedParameter& parameter : parameters) {
    shape.float64 = shape.float64 && parameter.value.scalar_type() == at::kDouble;
    shape.coordinates += parameter.value.numel();
  }
  shape.largest_batch = Units(sum.largest_batch);
  shape.one_row_features = pass.one_row_features();
  shape.recomputed_features = pass.recomputed_features();
  shape.recomputed_rows = pass.recomputed_rows();
  shape.uses = static_cast<std::int64_t>(tape.uses.size());
  const std::vector<double> bounds = policy.Bounds();
  shape.smallest_bound = *std::min_element(bounds.begin(), bounds.end());
  if (bounds != planned_bounds) {
    const auto groups = static_cast<std::int64_t>(bounds.size());
    largest_factor = policy.Factors(at::zeros({groups, 1}, at::kDouble)).max().item<double>();
    planned_bounds = bounds;
  }
  shape.largest_factor = largest_factor;
  if (!plan || !(planned_shape == shape)) {
    plan = PlanSum(shape, sum.rounding);
    planned_shape = shape;
  }
  return *plan;
}

// Units from real_units on are padding: they are left out of everything.
Totals Clipper::State::FromLosses(const at::Tensor& losses, std::int64_t real_units,
                                  const ClippingPolicy& policy, const LossFunction& loss,
                                  const Batch& batch) {
  const std::int64_t units = Units(losses.numel());
  const auto groups = policy.Groups(parameters);
  SORDINO_CHECK(groups.size() == parameters.size(), "a clipping group for each parameter");
  bool is_new = false;
  GraphReading reading = Read(losses, units, loss, batch, &is_new);
  const double loss_weight = 1.0 / static_cast<double>(sum.micro_batch);
  std::optional<GradientCheck> check;
  if (is_new && options.checked_examples > 0 && policy.transform() == nullptr) {
    check.emplace(losses, units, loss_weight, parameters, options.checked_examples);
  }
  const bool write_out = policy.transform() != nullptr;
  const PerExamplePass pass(losses, reading.tape, std::move(reading.rules), reading.layouts,
                            write_out ? reading.facts->written_out : reading.facts->plan,
                            parameters, groups,
                            {.norms = options.norms,
                             .loss_weight = loss_weight,
                             .units = units,
                             .transform = policy.transform()});
  if (pass.mismatch()) {
    memory.Clear();
    throw NotPerExample(
        "The rows of an operation are not a multiple of the number of examples, or "
        "lie in another order than in a batch that was checked before; run the "
        "step again, which checks the order anew.");
  }
  const at::NoGradGuard no_grad;
  // Gradients of zero show nothing; the graph is looked at again when it comes back.
  if (check && !check->Compare(pass)) memory.Clear();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const SumPlan sum_plan = PlanOf(pass, reading.tape, policy);
  const std::vector<double> bounds = policy.Bounds();
  const bool on_cpu = losses.is_cpu();
  Roots roots;
  if (on_cpu) {
    roots = RootsWithin(pass.squared_norms(), kLargestNorm);
  } else {
    roots = {pass.squared_norms().sqrt(), false};
  }
  at::Tensor norms = roots.roots;
  at::Tensor factors = policy.Factors(norms);
  bool all_usable = roots.within;
  at::Tensor mass;
  if (pass.squared_mass().defined()) {
    mass = pass.squared_mass().sqrt();
    all_usable = all_usable && (mass <= kLargestNorm).all().item<bool>();
    factors = at::minimum(factors, BoundsOn(norms, bounds) * sum_plan.cancellation / mass);
  }
  if (!all_usable) {
    // An example that is out of range (or not a number) anywhere is left out everywhere.
    at::Tensor usable = norms <= kLargestNorm;
    if (mass.defined()) usable = usable.logical_and(mass <= kLargestNorm);
    factors = factors.masked_fill(usable.all(0, /*keepdim=*/true).logical_not(), 0);
  }
  if (real_units < units) {
    all_usable = false;
    const at::Tensor none = at::zeros({factors.size(0), units - real_units}, factors.options());
    factors = at::cat({factors.narrow(1, 0, real_units), none}, 1);
    norms = norms.slice(1, 0, real_units).contiguous();
  }

  Totals totals;
  totals.gradients = pass.WeightedSums(factors, all_usable, sum_plan.accuracy);
  totals.clipped =
      on_cpu ? CountAbove(norms, bounds) : (norms <= BoundsOn(norms, bounds)).logical_not().sum(1);
  totals.counts = policy.Counts(norms);
  totals.norms.push_back(norms);
  return totals;
}

Totals Clipper::State::Loop(const LossFunction& loss, const Batch& batch,
                            const ClippingPolicy& policy) const {
  LoopResult result = LoopClippedSum(loss, batch, parameters, policy, sum.micro_batch);
  Totals totals;
  totals.gradients = std::move(result.sum);
  totals.clipped = (result.norms <= BoundsOn(result.norms, policy.Bounds())).logical_not().sum(1);
  totals.counts = policy.Counts(result.norms);
  totals.norms.push_back(result.norms);
  return totals;
}

// With `padded_examples`, the model sees as many.
Totals Clipper::State::Part(const LossFunction& loss, const Batch& batch,
                            const ClippingPolicy& policy, std::int64_t padded_examples) {
  // Ordinary autograd serves one unit.
  const std::int64_t seen = std::max(Examples(batch), padded_examples);
  if (falls_back || options.norms == NormMethod::kLoop || Units(seen) == 1) {
    return Loop(loss, batch, policy);
  }
  try {
    const Batch padded = padded_examples == 0 ? batch : Padded(batch, padded_examples);
    const at::Tensor losses = IsolatedLosses(loss, padded, Units(Examples(padded)));
    if (!losses.requires_grad()) {
      throw Error(
          "The losses do not depend on any parameter that requires a gradient; compute "
          "them from the parameters that are trained, with gradients enabled.");
    }
    return FromLosses(losses, Units(Examples(batch)), policy, loss, padded);
  } catch (const NeedsLoop&) {
    return Loop(loss, batch, policy);
  } catch (const NotPerExample&) {
    if (!options.fallback) throw;
    falls_back = true;
  }
  return Loop(loss, batch, policy);
}

void Clipper::State::CheckSize(std::int64_t examples) const {
  if (examples <= sum.largest_batch) return;
  // How many there are is private where batches are drawn at random.
  throw Error("A batch is larger than the " + std::to_string(sum.largest_batch) +
              " examples that the sensitivity covers; declare a larger largest_batch.");
}

Totals Clipper::State::Whole(const LossFunction& loss, const Batch& batch,
                             const ClippingPolicy& policy) {
  const std::int64_t examples = Examples(batch);
  CheckSize(examples);
  Totals totals;
  totals.gradients.resize(parameters.size());
  std::int64_t begin = 0;
  // Parts of a declared size all have it: the sizes that operations see do not depend on the batch.
  const std::int64_t padded = options.physical_batch > 0 ? PartFrom(0, examples) : 0;
  while (begin < examples) {
    const bool measure = options.physical_batch == 0 && measured_passes < kMeasuredPasses &&
                         examples >= kMeasureFrom && examples - begin >= MeasuredExamples() &&
                         kFewExamples % sum.micro_batch == 0;
    const std::int64_t end = begin + (measure ? MeasuredExamples() : PartFrom(begin, examples));
    const bool all = begin == 0 && end == examples;
    try {
      const Batch examples_of_part = all ? batch : Slice(batch, begin, end);
      Totals part = measure ? MeasuredPart(loss, examples_of_part, policy)
                            : Part(loss, examples_of_part, policy, PaddedSize(end - begin, padded));
      if (all) return part;
      totals.Add(std::move(part));
      begin = end;
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error) || end - begin <= sum.micro_batch) throw;
      fitting = (end - begin) / 2;
    }
  }
  return totals;
}

// What a part of whole units is padded to; 0 for the part as it is.
std::int64_t Clipper::State::PaddedSize(std::int64_t part, std::int64_t full) const {
  return part < full && part % sum.micro_batch == 0 ? full : 0;
}

// Examples of the part that begins at `begin`: whole micro-batches, and what is left at the end by
// itself.
std::int64_t Clipper::State::PartFrom(std::int64_t begin, std::int64_t examples) const {
  const std::int64_t width = sum.micro_batch;
  const std::int64_t left = examples - begin;
  std::int64_t size = options.physical_batch > 0 ? std::min(options.physical_batch, fitting)
                                                 : PartSize(examples, fitting);
  size = std::min(std::max(size / width, std::int64_t{1}) * width, left);
  return size > width ? size - size % width : size;
}

// A large batch is begun with three small parts: one to warm up, and two of different sizes whose
// memory is measured.
Totals Clipper::State::MeasuredPart(const LossFunction& loss, const Batch& batch,
                                    const ClippingPolicy& policy) {
  const at::Device device = parameters.front().value.device();
  AllocationMeter meter(device);
  Totals part = Part(loss, batch, policy);
  if (++measured_passes < kMeasuredPasses) {
    few_history = meter.History();
  } else {
    const MemoryModel model(kFewExamples, few_history, 2 * kFewExamples, meter.History());
    fitting = model.FittingExamples(AvailableMemory(device));
    if (device.is_cpu()) {
      fitting = std::min(fitting, model.FittingExamples(kPartBytes, /*share=*/1));
    }
    few_history.clear();
  }
  return part;
}

BoundedSum Clipper::State::Finish(Totals totals, const ClippingPolicy& policy) const {
  SumParts result;
  const std::vector<double> bounds = policy.Bounds();
  result.sensitivity = SumSensitivity(bounds, sum.adjacency, sum.micro_batch, sum.rounding);
  result.adjacency = sum.adjacency;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor& value = parameters[k].value;
    const at::ScalarType type = value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor& gradient = totals.gradients[k];
    if (!gradient.defined()) {
      gradient = at::zeros(value.sizes(), value.options().dtype(type)).detach();
    }
    if (gradient.scalar_type() != type) gradient = gradient.to(type);
    if (gradient.sizes() != value.sizes()) gradient = gradient.reshape(value.sizes());
    result.gradients.push_back(std::move(gradient));
  }
  if (totals.norms.empty()) {
    const at::Tensor norms = NoNorms(policy);
    totals.clipped = norms.sum(1).to(at::kLong);
    totals.counts = policy.Counts(norms);
  }
  result.clipped = PrivateValue<at::Tensor>(totals.clipped);
  result.counts = PrivateValue<at::Tensor>(totals.counts);
  if (policy.CountBound() > 0) {
    const std::vector<double> bound = {policy.CountBound()};
    result.count_sensitivity = SumSensitivity(bound, sum.adjacency, sum.micro_batch, 0);
  }
  return BoundedSum(std::move(result));
}

Clipper::Clipper(std::vector<NamedParameter> parameters, GradientOptions options, SumOptions sum)
    : state_(std::make_unique<State>()) {
  for (NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) continue;
    // A tied weight is listed under each of its names; the first one stays.
    const auto& known = state_->parameters;
    if (std::any_of(known.begin(), known.end(), [&](const NamedParameter& other) {
          return other.value.is_same(parameter.value);
        })) {
      continue;
    }
    if (!parameter.value.is_leaf()) {
      throw Error("The parameter '" + parameter.name +
                  "' is computed from other tensors; give the "
                  "tensors that it is computed from.");
    }
    state_->parameters.push_back(std::move(parameter));
  }
  if (state_->parameters.empty()) {
    throw Error("No parameter requires a gradient; nothing can be trained.");
  }
  state_->options = options;
  state_->sum = sum;
}

Clipper::~Clipper() = default;
Clipper::Clipper(Clipper&&) noexcept = default;
Clipper& Clipper::operator=(Clipper&&) noexcept = default;

BoundedSum Clipper::ClippedSum(const LossFunction& loss, const Batch& batch,
                               const ClippingPolicy& policy) {
  return state_->Finish(state_->Whole(loss, batch, policy), policy);
}

at::Tensor Clipper::Norms(const LossFunction& loss, const Batch& batch,
                          const ClippingPolicy& policy) {
  const Totals totals = state_->Whole(loss, batch, policy);
  if (totals.norms.empty()) return state_->NoNorms(policy);
  return at::cat(totals.norms, 1);
}

const std::vector<NamedParameter>& Clipper::parameters() const { return state_->parameters; }

}  // namespace sordino
