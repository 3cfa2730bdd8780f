#include "sordino/gradients/internal/part_clipper.h"

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
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/internal/equal_places.h"
#include "sordino/gradients/internal/graph/gradient_check.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/isolation/operation_comparison.h"
#include "sordino/gradients/internal/physical_batch.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {

void Totals::Add(Totals other) {
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    if (!other.gradients[k].defined()) continue;
    // Float64 between the parts of a cut batch: what they were cut into does not show.
    at::Tensor& own = gradients[k];
    if (!own.defined()) {
      own = other.gradients[k].to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
      continue;
    }
    if (own.scalar_type() != at::kDouble) own = own.to(at::kDouble);
    own.add_(other.gradients[k]);
  }
  const auto add = [](at::Tensor& sum, const at::Tensor& more) {
    if (more.defined()) sum = sum.defined() ? sum + more : more;
  };
  add(clipped, other.clipped);
  add(counts, other.counts);
  norms.insert(norms.end(), other.norms.begin(), other.norms.end());
}

void TotalsOfParts::Begin() {
  current_ = {};
  current_.gradients.resize(parameters_);
  finished_.gradients.resize(parameters_);
  parts_ = 0;
}

void TotalsOfParts::Add(Totals part) {
  current_.Add(std::move(part));
  if (++parts_ < kPartsPerSum) return;
  finished_.Add(std::move(current_));
  Begin();
}

Totals TotalsOfParts::Take() {
  finished_.Add(std::move(current_));
  return std::move(finished_);
}

PartClipper::PartClipper(std::vector<NamedParameter> parameters, GradientOptions options,
                         SumOptions sum)
    : parameters_(std::move(parameters)), options_(options), sum_(sum) {
  if (options_.equal_places) CheckEqualPlaces(parameters_.front().value.device());
}

// The bounds as [groups, 1], copied to the device when they change.
const at::Tensor& PartClipper::BoundsOnDeviceOf(const at::Tensor& norms,
                                                const std::vector<double>& bounds) const {
  if (!bounds_ || bounds_->values() != bounds) bounds_.emplace(bounds);
  return bounds_->OnDeviceOf(norms);
}

// How many norms of each group are above its bound, or not a number.
at::Tensor PartClipper::AboveBounds(const at::Tensor& norms,
                                    const std::vector<double>& bounds) const {
  if (norms.is_cpu()) return CountAbove(norms, bounds);
  return (norms <= BoundsOnDeviceOf(norms, bounds)).logical_not().sum(1);
}

at::Tensor PartClipper::NoNorms(const ClippingPolicy& policy) const {
  return at::zeros({static_cast<std::int64_t>(policy.Bounds().size()), 0},
                   parameters_.front().value.options().dtype(at::kDouble).requires_grad(false));
}

// Which nodes of the graph are the same for all examples, from a second pass with another number of
// them.
std::vector<bool> PartClipper::SharedNodesOf(const Graph& graph, std::int64_t units,
                                             const LossFunction& loss, const Batch& batch) const {
  const std::int64_t width = Examples(batch) / units;
  const GeneratorStates states(parameters_.front().value.device());
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
    if (auto shared = SharedNodes(graph, ReadGraph(losses, parameters_))) return *std::move(shared);
  }
  throw NotPerExample(
      "the model computes something else in each call (its graph changes from call to call), so "
      "nothing that was found out about it holds for the next one; let it do the same for every "
      "batch.");
}

GraphReading PartClipper::Read(const at::Tensor& losses, std::int64_t units,
                               const LossFunction& loss, const Batch& batch,
                               const ClippingPolicy& policy, bool* is_new) {
  Graph graph = ReadGraph(losses, parameters_);
  std::optional<GraphReading> reading = memory_.Recall(graph, losses.numel(), units, parameters_);
  *is_new = !reading.has_value();
  if (reading) return *std::move(reading);
  const bool judges = !IsPrivate() || is_looking_;
  if (!judges) {
    // A graph of another size than the model was looked at with. It is made-up examples that are
    // compared. What zeros leave open is found out from the batch, and decides nothing but how its
    // gradients are read.
    LookAt(loss, MadeUp(0, losses.numel()), policy);
    *is_new = false;
    reading = memory_.Recall(graph, losses.numel(), units, parameters_);
    if (reading) return *std::move(reading);
  }
  // Copies: a model may write into its inputs.
  Batch copy;
  for (const at::Tensor& tensor : batch) copy.push_back(tensor.clone());
  std::vector<bool> shared = SharedNodesOf(graph, units, loss, copy);
  if (options_.compare && judges) {
    CompareWithJoint(loss, copy, units, GeneratorStates(parameters_.front().value.device()),
                     losses);
  }
  return memory_.Learn(std::move(graph), std::move(shared), losses, units, parameters_,
                       options_.probe);
}

SumPlan PartClipper::PlanOf(const PerExamplePass& pass, const Tape& tape,
                            const ClippingPolicy& policy) {
  SumShape shape;
  shape.float64 = pass.AllFloat64();
  for (const NamedParameter& parameter : parameters_) {
    shape.float64 = shape.float64 && parameter.value.scalar_type() == at::kDouble;
    shape.coordinates += parameter.value.numel();
  }
  shape.largest_batch = Units(sum_.largest_batch);
  shape.one_row_features = pass.one_row_features();
  shape.recomputed_features = pass.recomputed_features();
  shape.recomputed_roundings = pass.recomputed_roundings();
  shape.recomputed_rows = pass.recomputed_rows();
  shape.recomputed_product_rows = pass.recomputed_product_rows();
  shape.uses = static_cast<std::int64_t>(tape.uses.size());
  const std::vector<double> bounds = policy.Bounds();
  shape.smallest_bound = *std::min_element(bounds.begin(), bounds.end());
  shape.largest_factor = policy.LargestFactor();
  if (!plan_ || !(planned_shape_ == shape)) {
    plan_ = PlanSum(shape, sum_.rounding);
    planned_shape_ = shape;
  }
  return *plan_;
}

// Norms, and the factors that they are clipped with. Padding is left out of everything.
PartClipper::Clipped PartClipper::Clip(const PerExamplePass& pass, const ClippingPolicy& policy,
                                       const SumPlan& plan, const RealUnits& real) const {
  const std::vector<double> bounds = policy.Bounds();
  const bool all_are_real = real.mask.defined() || real.count == pass.squared_norms().size(1);
  const bool in_one_launch = pass.TakesRows() && !pass.squared_mass().defined() && all_are_real;
  if (in_one_launch && policy.ToBound() != nullptr) {
    const at::Tensor& squared = pass.squared_norms();
    DeviceClipped clipped =
        DeviceClipToBound(squared, policy.ToBound()->OnDeviceOf(squared),
                          BoundsOnDeviceOf(squared, bounds), real.mask, kMaxNorm);
    return {.norms = std::move(clipped.norms),
            .factors = {std::move(clipped.factors.float64), std::move(clipped.factors.float32)},
            .above = std::move(clipped.factors.above)};
  }
  Roots roots;
  if (pass.squared_norms().is_cpu()) {
    roots = RootsWithin(pass.squared_norms(), kMaxNorm);
  } else {
    roots = {pass.squared_norms().sqrt(), false};
  }
  at::Tensor norms = roots.roots;
  at::Tensor factors = policy.Factors(norms);
  if (in_one_launch) {
    DeviceFactors clipped = DeviceClip(norms, factors.contiguous(), BoundsOnDeviceOf(norms, bounds),
                                       real.mask, kMaxNorm);
    return {.norms = std::move(norms),
            .factors = {std::move(clipped.float64), std::move(clipped.float32)},
            .above = std::move(clipped.above)};
  }
  bool all_usable = roots.within;
  at::Tensor mass;
  if (pass.squared_mass().defined()) {
    mass = pass.squared_mass().sqrt();
    all_usable = all_usable && (mass <= kMaxNorm).all().item<bool>();
    factors = at::minimum(factors, BoundsOnDeviceOf(norms, bounds) * plan.cancellation / mass);
  }
  if (!all_usable) {
    // An example that is out of range (or not a number) anywhere is left out everywhere.
    at::Tensor usable = norms <= kMaxNorm;
    if (mass.defined()) usable = usable.logical_and(mass <= kMaxNorm);
    factors = factors.masked_fill(usable.all(0, /*keepdim=*/true).logical_not(), 0);
  }
  if (real.mask.defined()) {
    all_usable = false;
    const at::Tensor padding = real.mask.logical_not();
    factors = factors.masked_fill(padding, 0);
    norms = norms.masked_fill(padding, 0);
  } else if (const std::int64_t units = factors.size(1); real.count < units) {
    all_usable = false;
    const at::Tensor none = at::zeros({factors.size(0), units - real.count}, factors.options());
    factors = at::cat({factors.narrow(1, 0, real.count), none}, 1);
    norms = norms.slice(1, 0, real.count).contiguous();
  }
  at::Tensor above = AboveBounds(norms, bounds);
  return {.norms = std::move(norms),
          .factors = {.float64 = std::move(factors), .all_finite = all_usable},
          .above = std::move(above)};
}

// Calls use(pass, tape) for the pass of some losses. One of a new graph is compared with ordinary
// autograd before.
void PartClipper::WithPass(const at::Tensor& losses, const ClippingPolicy& policy,
                           const LossFunction& loss, const Batch& batch, const UsePass& use) try {
  const std::int64_t units = Units(losses.numel());
  const auto groups = policy.Groups(parameters_);
  SORDINO_CHECK(groups.size() == parameters_.size(), "a clipping group for each parameter");
  bool is_new = false;
  GraphReading reading = Read(losses, units, loss, batch, policy, &is_new);
  const double loss_weight = 1.0 / static_cast<double>(sum_.micro_batch);
  std::optional<GradientCheck> check;
  if (is_new && options_.checked_examples > 0 && policy.transform() == nullptr) {
    check.emplace(losses, units, loss_weight, parameters_, options_.checked_examples);
  }
  const bool write_out = policy.transform() != nullptr;
  const PerExamplePass pass(losses, reading.tape, std::move(reading.rules), reading.layouts,
                            write_out ? reading.facts->written_out : reading.facts->plan,
                            parameters_, groups,
                            {.norms = options_.norms,
                             .loss_weight = loss_weight,
                             .units = units,
                             .transform = policy.transform()});
  if (pass.mismatch()) {
    memory_.Clear();
    throw NotPerExample(
        "the rows of an operation are not a multiple of the number of examples, or "
        "lie in another order than in a batch that was checked before; run the "
        "step again, which checks the order anew.");
  }
  const at::NoGradGuard no_grad;
  // Gradients of zero show nothing; the graph is looked at again when it comes back.
  if (check && !check->Compare(pass)) memory_.Clear();
  use(pass, reading.tape);
} catch (const c10::Error& error) {
  RethrowFromBackward(error);
}

Totals PartClipper::FromLosses(const at::Tensor& losses, const RealUnits& real,
                               const ClippingPolicy& policy, const LossFunction& loss,
                               const Batch& batch) {
  Totals totals;
  WithPass(losses, policy, loss, batch, [&](const PerExamplePass& pass, const Tape& tape) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const SumPlan sum_plan = PlanOf(pass, tape, policy);
    const Clipped clipped = Clip(pass, policy, sum_plan, real);
    totals.gradients = pass.WeightedSums(clipped.factors, sum_plan.accuracy);
    totals.clipped = clipped.above;
    totals.counts = policy.Counts(clipped.norms);
    totals.norms.push_back(clipped.norms);
  });
  return totals;
}

CollectedTerms PartClipper::Collect(const LossFunction& loss, const Batch& batch) {
  const std::int64_t units = Examples(batch);
  SORDINO_CHECK(units >= 2 && sum_.micro_batch == 1, "terms of at least two single examples");
  const at::Tensor losses = IsolatedLosses(loss, batch, units);
  CollectedTerms collected;
  collected.losses = losses.detach();
  collected.terms.resize(parameters_.size());
  if (!losses.requires_grad()) return collected;
  bool is_new = false;
  GraphReading reading = Read(losses, units, loss, batch, FlatClipping(ClipNorm(1)), &is_new);
  std::optional<GradientCheck> check;
  if (is_new && options_.checked_examples > 0) {
    check.emplace(losses, units, 1, parameters_, options_.checked_examples);
  }
  const std::vector<std::int64_t> groups(parameters_.size(), 0);
  const PerExamplePass pass(losses, reading.tape, std::move(reading.rules), reading.layouts,
                            reading.facts->plan, parameters_, groups,
                            {.units = units, .keep_graph = true, .collect = true});
  if (pass.mismatch()) {
    memory_.Clear();
    throw NotPerExample(
        "the rows of an operation lie in another order than in a batch that was checked before.");
  }
  const at::NoGradGuard no_grad;
  if (check && !check->Compare(pass)) memory_.Clear();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (std::size_t p = 0; p < parameters_.size(); ++p) collected.terms[p] = pass.TermsOf(p);
  return collected;
}

// Of units that fail: as those whose gradients are not numbers.
Totals PartClipper::NothingOf(std::int64_t examples, const ClippingPolicy& policy) const {
  const at::Tensor norms =
      at::full({static_cast<std::int64_t>(policy.Bounds().size()), Units(examples)},
               std::numeric_limits<double>::quiet_NaN(),
               at::TensorOptions(at::kDouble).device(parameters_.front().value.device()));
  Totals totals;
  totals.gradients.resize(parameters_.size());
  totals.clipped = AboveBounds(norms, policy.Bounds());
  totals.counts = policy.Counts(norms);
  totals.norms.push_back(norms);
  return totals;
}

Totals PartClipper::Loop(const LossFunction& loss, const Batch& batch,
                         const ClippingPolicy& policy) {
  try {
    return LoopAll(loss, batch, policy);
  } catch (const std::exception& error) {
    if (!FailsForRecords(error, loss, policy)) throw;
  }
  Totals totals;
  const std::int64_t examples = Examples(batch);
  for (std::int64_t begin = 0; begin < examples; begin += sum_.micro_batch) {
    const std::int64_t end = std::min(examples, begin + sum_.micro_batch);
    Totals own;
    try {
      own = LoopAll(loss, Slice(batch, begin, end), policy);
    } catch (const std::exception& error) {
      if (IsOutOfMemory(error)) throw;
      own = NothingOf(end - begin, policy);
    }
    if (begin == 0) {
      totals = std::move(own);
    } else {
      totals.Add(std::move(own));
    }
  }
  return totals;
}

Totals PartClipper::LoopAll(const LossFunction& loss, const Batch& batch,
                            const ClippingPolicy& policy) const try {
  LoopResult result = LoopClippedSum(loss, batch, parameters_, policy, sum_.micro_batch, is_wide());
  Totals totals;
  totals.gradients = std::move(result.sum);
  totals.clipped = AboveBounds(result.norms, policy.Bounds());
  totals.counts = policy.Counts(result.norms);
  totals.norms.push_back(result.norms);
  return totals;
} catch (const c10::Error& error) {
  RethrowFromBackward(error);
}

// A value that is not finite has reached the gradients of other units, or one fails. Each goes
// beside a copy of itself, by the same rules as before, and through the loop where that fails too:
// what a unit adds is decided by that unit alone. Where places are equal the others keep the size
// of their part, so it is halved until each such unit is alone.
Totals PartClipper::UnitByUnit(const LossFunction& loss, const Batch& batch,
                               const ClippingPolicy& policy, std::int64_t padded_examples) {
  const std::int64_t examples = Examples(batch);
  if (Units(examples) == 1) return Loop(loss, batch, policy);
  const std::int64_t units = options_.equal_places ? (Units(examples) + 1) / 2 : 1;
  const std::int64_t size = options_.equal_places ? padded_examples : 2 * sum_.micro_batch;
  Totals totals;
  for (std::int64_t begin = 0; begin < examples; begin += units * sum_.micro_batch) {
    const std::int64_t end = std::min(examples, begin + units * sum_.micro_batch);
    const Batch unit = Slice(batch, begin, end);
    const bool is_whole = (end - begin) % sum_.micro_batch == 0;
    Totals own = is_whole ? Sum(loss, unit, policy, size) : Loop(loss, unit, policy);
    if (begin == 0) {
      totals = std::move(own);
    } else {
      totals.Add(std::move(own));
    }
  }
  return totals;
}

at::Tensor PartClipper::LossesOf(const LossFunction& loss, const Batch& batch) const {
  at::Tensor losses = IsolatedLosses(loss, batch, Units(Examples(batch)));
  if (!losses.requires_grad()) {
    throw Error(
        "the losses do not depend on any parameter that requires a gradient; compute "
        "them from the parameters that are trained, with gradients enabled.");
  }
  return losses;
}

Totals PartClipper::MaskedSum(const LossFunction& loss, const Batch& batch,
                              const ClippingPolicy& policy, const at::Tensor& mask) {
  SORDINO_CHECK(mask.numel() == Units(Examples(batch)) && mask.numel() > 1,
                "a mask has an entry for each of several units");
  SORDINO_CHECK(mask.numel() <= kUnitsOfPart, "a part has more units than its rounding covers");
  return FromLosses(LossesOf(loss, batch), {.count = mask.numel(), .mask = mask}, policy, loss,
                    batch);
}

Totals PartClipper::Sum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                        std::int64_t padded_examples) {
  Check(loss, policy);
  // An example that is alone goes beside a copy of itself: the loop knows neither the range nor the
  // limit on the cancellation of rounding.h, and what an example adds must not depend on whether
  // others are there. (Batches of micro-batches have one size, and are always cut alike.)
  if (sum_.micro_batch == 1 && Examples(batch) == 1) {
    padded_examples = std::max<std::int64_t>(padded_examples, 2);
  }
  const std::int64_t seen = std::max(Examples(batch), padded_examples);
  SORDINO_CHECK(Units(seen) <= kUnitsOfPart, "a part has more units than its rounding covers");
  if (falls_back_ || options_.norms == NormMethod::kLoop || Units(seen) == 1) {
    return Loop(loss, batch, policy);
  }
  try {
    const Batch padded = padded_examples == 0 ? batch : Padded(batch, padded_examples);
    LookAtFew(loss, padded, policy);
    return FromLosses(LossesOf(loss, padded), {.count = Units(Examples(batch))}, policy, loss,
                      padded);
  } catch (const NeedsLoop&) {
    return UnitByUnit(loss, batch, policy, padded_examples);
  } catch (const std::exception& error) {
    if (FailsForRecords(error, loss, policy))
      return UnitByUnit(loss, batch, policy, padded_examples);
    const bool by_values = dynamic_cast<const DifferentValues*>(&error) != nullptr;
    const bool by_form = dynamic_cast<const NotPerExample*>(&error) != nullptr;
    if (IsPrivate() || by_values || !by_form || !options_.fallback) throw;
    falls_back_ = true;
  }
  return Loop(loss, batch, policy);
}

}  // namespace sordino
