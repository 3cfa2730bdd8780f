#include "sordino/gradients/clipper.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/internal/equal_places.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/part_clipper.h"
#include "sordino/gradients/internal/physical_batch.h"
#include "sordino/gradients/internal/recorded_sums.h"
#include "sordino/gradients/internal/rounding/fixed_point_steps.h"
#include "sordino/gradients/internal/rounding/long_steps.h"
#include "sordino/gradients/internal/rounding/sum_sensitivity.h"

namespace sordino {
namespace {

// Batches of this size and more are cut by what was measured; below, only where memory ran out.
constexpr std::int64_t kMeasureFrom = 32;
constexpr std::int64_t kFewExamples = 8;
constexpr int kMeasuredPasses = 3;
// On a CPU a part of more memory than this is not faster than two smaller ones, beyond the memory
// that every part takes (sums of all parameters). A part also passes over all parameters some
// times, which takes as long as records that have so many times the memory of the parameters.
constexpr std::int64_t kPartBytes = 160 << 20;
constexpr std::int64_t kPartBytesPerParameterByte = 16;
// Where places are equal: of a batch whose usual size is known, a part on a CPU is a quarter, so
// that little is padding; and a part where it is not.
constexpr std::int64_t kPartsOfUsualBatch = 4;
constexpr std::int64_t kUnknownBatch = 256;
// A clipped gradient has 2^59 steps of its grid at most, but for what rounding adds.
constexpr double kMostStepsOfUnit = 0x1p61;

}  // namespace

struct Clipper::State {
  State(std::vector<NamedParameter> trained, const GradientOptions& the_options,
        const SumOptions& the_sum)
      : parts(std::move(trained), the_options, the_sum),
        parameters(parts.parameters()),
        options(parts.options()),
        sum(parts.sum()),
        fitting(kUnitsOfPart * sum.micro_batch) {
    if (options.graph == GraphUse::kOff) return;
    const std::string problem = RecordingProblem(parameters.front().value.device());
    if (problem.empty()) {
      recorded.emplace(parts);
    } else if (options.graph == GraphUse::kOn) {
      throw Error("steps were to be recorded, and cannot be: " + problem);
    }
  }

  PartClipper parts;
  std::optional<RecordedSums> recorded;
  const std::vector<NamedParameter>& parameters;
  const GradientOptions& options;
  const SumOptions& sum;
  // Examples that may be in memory at once: they fit, as far as known, and are kUnitsOfPart at
  // most.
  std::int64_t fitting;
  int measured_passes = 0;
  std::vector<std::int64_t> few_history;

  std::int64_t MeasuredExamples() const {
    return measured_passes + 1 < kMeasuredPasses ? kFewExamples : 2 * kFewExamples;
  }
  bool Measures() const {
    return options.physical_batch == 0 && measured_passes < kMeasuredPasses &&
           kFewExamples % sum.micro_batch == 0;
  }
  std::int64_t PartFrom(std::int64_t begin, std::int64_t examples) const;
  std::int64_t PaddedSize(std::int64_t part, std::int64_t full) const;
  Totals MeasuredPart(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);
  std::int64_t RecordedSize() const;
  std::int64_t EqualSize() const;
  void MeasureMadeUp(const LossFunction& loss, const ClippingPolicy& policy);
  void CheckRecorded(const ClippingPolicy& policy) const;
  Totals PartSum(const LossFunction& loss, const Batch& part, const ClippingPolicy& policy,
                 std::int64_t padded_examples, bool is_all);
  Totals SumOfParts(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);
  Totals SumOfSingleUnits(const LossFunction& loss, const Batch& batch,
                          const ClippingPolicy& policy);
  bool replays = true;  // what was recorded
  BoundedSum Finish(Totals totals, const ClippingPolicy& policy, bool is_wide) const;
};

// The exact sum of what the units add, each computed by itself: for a batch that is larger than
// was declared (long_steps.h).
Totals Clipper::State::SumOfSingleUnits(const LossFunction& loss, const Batch& batch,
                                        const ClippingPolicy& policy) {
  const std::vector<double> bounds = policy.Bounds();
  const double granularity = FixedPointStep(bounds, /*largest_batch=*/1);
  const std::int64_t examples = Examples(batch);
  Totals totals;
  totals.gradients.resize(parameters.size());
  std::vector<LongSteps> sums;
  for (const NamedParameter& parameter : parameters) {
    sums.push_back(LongSteps::Zeros(parameter.value.numel(), parameter.value.device()));
  }
  for (std::int64_t begin = 0; begin < examples; begin += sum.micro_batch) {
    const std::int64_t end = std::min(examples, begin + sum.micro_batch);
    const std::int64_t size = options.equal_places ? EqualSize() : 2 * sum.micro_batch;
    Totals unit = parts.Sum(loss, Slice(batch, begin, end), policy, PaddedSize(end - begin, size));
    const at::NoGradGuard no_grad;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      at::Tensor& gradient = unit.gradients[k];
      if (!gradient.defined()) continue;
      at::Tensor steps = at::zeros_like(sums[k].low);
      AddSteps(gradient.reshape({gradient.numel()}), granularity, kMostStepsOfUnit, steps);
      sums[k].Add(steps);
      gradient = at::Tensor();
    }
    totals.Add(std::move(unit));
  }
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    totals.gradients[k] = sums[k].Float64().mul_(granularity);
  }
  return totals;
}

Totals Clipper::State::SumOfParts(const LossFunction& loss, const Batch& batch,
                                  const ClippingPolicy& policy) {
  const std::int64_t examples = Examples(batch);
  if (options.equal_places) MeasureMadeUp(loss, policy);
  TotalsOfParts totals(parameters.size());
  std::int64_t begin = 0;
  while (begin < examples) {
    // Parts of a declared size all have it: the sizes that operations see do not depend on the
    // batch.
    const std::int64_t padded = options.equal_places         ? EqualSize()
                                : RecordedSize() > 0         ? RecordedSize()
                                : options.physical_batch > 0 ? PartFrom(0, examples)
                                                             : 0;
    const bool measure = Measures() && !options.equal_places && examples >= kMeasureFrom &&
                         examples - begin >= MeasuredExamples();
    const std::int64_t end = begin + (measure ? MeasuredExamples() : PartFrom(begin, examples));
    const bool all = begin == 0 && end == examples;
    try {
      const Batch examples_of_part = all ? batch : Slice(batch, begin, end);
      Totals part =
          measure ? MeasuredPart(loss, examples_of_part, policy)
                  : PartSum(loss, examples_of_part, policy, PaddedSize(end - begin, padded), all);
      if (all) return part;
      totals.Add(std::move(part));
      begin = end;
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error) || end - begin <= sum.micro_batch) throw;
      fitting = (options.equal_places ? padded : end - begin) / 2;
      if (options.equal_places && EqualSize() == padded) throw;
    }
  }
  return totals.Take();
}

// What all parts are padded to where they are recorded; 0: they are not, or are of any size.
std::int64_t Clipper::State::RecordedSize() const {
  if (!recorded || !replays || !recorded->problem().empty()) return 0;
  const std::int64_t size =
      options.recorded_batch > 0 ? options.recorded_batch : options.physical_batch;
  const std::int64_t whole = std::min(size, fitting) / sum.micro_batch * sum.micro_batch;
  return whole >= 2 * sum.micro_batch ? whole : 0;
}

// What all parts are padded to where places are equal.
std::int64_t Clipper::State::EqualSize() const {
  const at::Device device = parameters.front().value.device();
  std::int64_t size = options.physical_batch;
  if (size == 0) size = options.recorded_batch / (device.is_cpu() ? kPartsOfUsualBatch : 1);
  if (size == 0) size = kUnknownBatch;
  return EqualPlacesPart(device, size, fitting, sum.micro_batch);
}

void Clipper::State::CheckRecorded(const ClippingPolicy& policy) const {
  if (options.graph != GraphUse::kOn) return;
  std::string problem = recorded->problem();
  if (!RecordedSums::Takes(policy)) {
    problem = "what the policy clips by is decided anew in every step.";
  }
  if (!problem.empty()) throw Error("steps were to be recorded, and cannot be: " + problem);
}

Totals Clipper::State::PartSum(const LossFunction& loss, const Batch& part,
                               const ClippingPolicy& policy, std::int64_t padded_examples,
                               bool is_all) {
  if (recorded && replays) {
    const std::int64_t size = padded_examples > 0 ? padded_examples : Examples(part);
    if (auto totals = recorded->Sum(loss, part, policy, size, is_all)) {
      return *std::move(totals);
    }
    CheckRecorded(policy);
  }
  return parts.Sum(loss, part, policy, padded_examples);
}

// What a part of whole units is padded to; 0 for the part as it is.
std::int64_t Clipper::State::PaddedSize(std::int64_t part, std::int64_t full) const {
  const bool is_padded = part < full || (options.equal_places && part == full);
  return is_padded && part % sum.micro_batch == 0 ? full : 0;
}

// Examples of the part that begins at `begin`: whole micro-batches, and what is left at the end by
// itself.
std::int64_t Clipper::State::PartFrom(std::int64_t begin, std::int64_t examples) const {
  const std::int64_t width = sum.micro_batch;
  const std::int64_t left = examples - begin;
  std::int64_t size = options.equal_places ? EqualSize() : RecordedSize();
  if (size == 0) {
    size = options.physical_batch > 0 ? std::min(options.physical_batch, fitting)
                                      : PartSize(examples, fitting);
  }
  size = std::min(std::max(size / width, std::int64_t{1}) * width, left);
  return size > width ? size - size % width : size;
}

// Records have one place and size from the first batch on.
void Clipper::State::MeasureMadeUp(const LossFunction& loss, const ClippingPolicy& policy) {
  if (!parts.IsPrivate() || !Measures()) return;
  const GeneratorStates states(parameters.front().value.device());
  while (Measures()) MeasuredPart(loss, parts.MadeUp(0, MeasuredExamples()), policy);
  states.Rewind();
}

// A large batch is begun with three small parts: one to warm up, and two of different sizes whose
// memory is measured.
Totals Clipper::State::MeasuredPart(const LossFunction& loss, const Batch& batch,
                                    const ClippingPolicy& policy) {
  const at::Device device = parameters.front().value.device();
  AllocationMeter meter(device);
  Totals part = parts.Sum(loss, batch, policy);
  if (++measured_passes < kMeasuredPasses) {
    few_history = meter.History();
  } else {
    const MemoryModel model(kFewExamples, few_history, 2 * kFewExamples, meter.History());
    fitting = std::min(fitting, model.FittingExamples(AvailableMemory(device)));
    if (device.is_cpu()) {
      std::int64_t bytes = kPartBytes;
      for (const NamedParameter& parameter : parameters) {
        bytes += kPartBytesPerParameterByte * static_cast<std::int64_t>(parameter.value.nbytes());
      }
      fitting = std::min(fitting, model.FittingExamples(model.Peak(0) + bytes, /*share=*/1));
    }
    few_history.clear();
  }
  return part;
}

BoundedSum Clipper::State::Finish(Totals totals, const ClippingPolicy& policy, bool is_wide) const {
  SumParts result;
  const std::vector<double> bounds = policy.Bounds();
  result.sensitivity = SumSensitivity(bounds, sum.adjacency, sum.micro_batch, sum.rounding);
  result.adjacency = sum.adjacency;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor& value = parameters[k].value;
    const at::ScalarType own = value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    // A sum of a large batch is rounded after the noise.
    const at::ScalarType type = is_wide ? at::kDouble : own;
    result.noised_types.push_back(own);
    at::Tensor& gradient = totals.gradients[k];
    if (!gradient.defined()) {
      gradient = at::zeros(value.sizes(), value.options().dtype(type)).detach();
    }
    if (gradient.scalar_type() != type) gradient = gradient.to(type);
    if (gradient.sizes() != value.sizes()) gradient = gradient.reshape(value.sizes());
    result.gradients.push_back(std::move(gradient));
  }
  if (totals.norms.empty()) {
    const at::Tensor norms = parts.NoNorms(policy);
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

std::vector<NamedParameter> TrainedParameters(std::vector<NamedParameter> parameters) {
  std::vector<NamedParameter> trained;
  for (NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) continue;
    if (std::any_of(trained.begin(), trained.end(), [&](const NamedParameter& other) {
          return other.value.is_same(parameter.value);
        })) {
      continue;
    }
    if (!parameter.value.is_leaf()) {
      throw Error("the parameter '" + parameter.name +
                  "' is computed from other tensors; give the "
                  "tensors that it is computed from.");
    }
    if (parameter.value.is_complex()) {
      throw Error("the parameter '" + parameter.name +
                  "' is complex, which cannot be clipped or saved; give its real and imaginary "
                  "parts in a last dimension of two, and make it with view_as_complex.");
    }
    trained.push_back(std::move(parameter));
  }
  if (trained.empty()) throw Error("no parameter requires a gradient; nothing can be trained.");
  return trained;
}

Clipper::Clipper(std::vector<NamedParameter> parameters, GradientOptions options, SumOptions sum)
    : state_(std::make_unique<State>(TrainedParameters(std::move(parameters)), options, sum)) {}

Clipper::~Clipper() = default;
Clipper::Clipper(Clipper&&) noexcept = default;
Clipper& Clipper::operator=(Clipper&&) noexcept = default;

BoundedSum Clipper::ClippedSum(const LossFunction& loss, const Batch& batch,
                               const ClippingPolicy& policy) {
  State& s = *state_;
  s.parts.Check(loss, policy);
  if (Examples(batch) > s.sum.largest_batch) {
    return s.Finish(s.SumOfSingleUnits(loss, batch, policy), policy, /*is_wide=*/true);
  }
  return s.Finish(s.SumOfParts(loss, batch, policy), policy, s.parts.is_wide());
}

std::string Clipper::GraphStatus() const {
  const State& s = *state_;
  if (!s.recorded) return s.options.graph == GraphUse::kOff ? "off" : "not available";
  if (!s.recorded->problem().empty()) return s.recorded->problem();
  return s.recorded->has_replayed() ? "recorded" : "not recorded yet";
}

at::Tensor Clipper::Norms(const LossFunction& loss, const Batch& batch,
                          const ClippingPolicy& policy) {
  // Norms of recorded parts have entries for what they are padded with.
  state_->replays = false;
  const Totals totals = state_->SumOfParts(loss, batch, policy);
  state_->replays = true;
  if (totals.norms.empty()) return state_->parts.NoNorms(policy);
  return at::cat(totals.norms, 1);
}

const std::vector<NamedParameter>& Clipper::parameters() const { return state_->parameters; }

}  // namespace sordino
