#include "sordino/gradients/chunked_clipper.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/internal/equal_places.h"
#include "sordino/gradients/internal/jl_sum.h"
#include "sordino/gradients/internal/part_clipper.h"
#include "sordino/gradients/internal/physical_batch.h"
#include "sordino/gradients/internal/rounding/fixed_point_steps.h"
#include "sordino/gradients/internal/rounding/long_steps.h"
#include "sordino/gradients/internal/rounding/sum_sensitivity.h"
#include "sordino/gradients/jl_clipping.h"

namespace sordino {
namespace {

constexpr double kTotalSteps = 0x1p61;

// What of the failure probability of estimated norms is kept for sums that are cut off.
constexpr double kCutOffShare = 0x1p-10;

SumOptions SumOf(const JlOptions& options) {
  return {.adjacency = options.adjacency,
          .rounding = options.rounding,
          .largest_batch = options.largest_batch};
}

Totals TotalsOf(SumParts parts) {
  Totals totals;
  totals.gradients = std::move(parts.gradients);
  totals.counts = parts.counts.RevealForNoise();
  return totals;
}

}  // namespace

struct ChunkedClipper::State {
  State(std::vector<NamedParameter> trained, const GradientOptions& options,
        const SumOptions& the_sum)
      : parts(std::move(trained), options, the_sum),
        sum(the_sum),
        cut{.micro_batch = the_sum.micro_batch,
            .most_examples = std::min(options.physical_batch, kUnitsOfPart * the_sum.micro_batch),
            .largest_batch = the_sum.largest_batch,
            .is_padded = options.equal_places},
        most_chunks(ChunkCount(the_sum.largest_batch, cut)) {
    if (cut.is_padded) {
      const std::int64_t most = kUnitsOfPart * sum.micro_batch;
      const at::Device device = parts.parameters().front().value.device();
      cut.most_examples = EqualPlacesPart(device, cut.most_examples, most, sum.micro_batch);
      most_chunks = ChunkCount(sum.largest_batch, cut);
    }
    for (const NamedParameter& parameter : parts.parameters()) {
      coordinates += parameter.value.numel();
      if (parameter.value.scalar_type() == at::kDouble) type = at::kDouble;
    }
  }

  PartClipper parts;
  SumOptions sum;
  ChunkOptions cut;
  std::int64_t most_chunks;
  std::int64_t coordinates = 0;
  at::ScalarType type = at::kFloat;
  std::optional<JlOptions> estimated;  // none: norms are exact

  Totals SumOfChunk(const LossFunction& loss, const Batch& chunk, const ClippingPolicy& policy,
                    const JlDirections* directions);
  void Check(const LossFunction& loss, const ClippingPolicy& policy,
             const JlDirections* directions);
  double Granularity(const ClippingPolicy& policy) const;
  L2Sensitivity Sensitivity(const ClippingPolicy& policy) const;
  double Excess(const ClippingPolicy& policy, double share, double examples) const;
};

Totals ChunkedClipper::State::SumOfChunk(const LossFunction& loss, const Batch& chunk,
                                         const ClippingPolicy& policy,
                                         const JlDirections* directions) {
  try {
    if (estimated) {
      Totals totals =
          TotalsOf(JlTotals(loss, chunk, parts.parameters(), policy, *estimated, *directions));
      estimated->compare = false;
      return totals;
    }
    // What is left behind whole micro-batches is one by itself.
    const std::int64_t examples = Examples(chunk);
    const std::int64_t whole = examples - examples % sum.micro_batch;
    const std::int64_t padded = cut.is_padded && whole > 0 ? cut.most_examples : 0;
    if (whole == 0 || whole == examples) return parts.Sum(loss, chunk, policy, padded);
    Totals totals = parts.Sum(loss, Slice(chunk, 0, whole), policy, padded);
    totals.Add(parts.Sum(loss, Slice(chunk, whole, examples), policy));
    return totals;
  } catch (const std::exception& error) {
    // Cut into smaller parts its sum would round differently on another machine.
    if (!IsOutOfMemory(error)) throw;
    throw Error("a chunk of up to " +
                std::to_string(cut.most_examples > 0 ? cut.most_examples : kChunkExamples) +
                " examples does not fit into memory; give a smaller physical batch.");
  }
}

// By made-up examples, before the first chunk and also where a process has none.
void ChunkedClipper::State::Check(const LossFunction& loss, const ClippingPolicy& policy,
                                  const JlDirections* directions) {
  if (!estimated) {
    parts.Check(loss, policy);
  } else if (estimated->compare && !estimated->made_up.empty()) {
    CheckJl(loss, parts.parameters(), policy, *estimated, *directions);
    estimated->compare = false;
  }
}

// How many times its bound the gradient of any of so many examples may be, but for a share of the
// failure probability.
double ChunkedClipper::State::Excess(const ClippingPolicy& policy, double share,
                                     double examples) const {
  if (!estimated) return 1;
  const auto groups = static_cast<double>(policy.Bounds().size());
  return JlExcess(parts.parameters(), policy, *estimated, examples * groups / share);
}

double ChunkedClipper::State::Granularity(const ClippingPolicy& policy) const {
  // Those of two neighbouring batches.
  const double both = 2 * static_cast<double>(sum.largest_batch);
  const double excess = Excess(policy, kCutOffShare, both);
  std::vector<double> bounds = policy.Bounds();
  for (double& bound : bounds) bound *= excess;
  return FixedPointStep(bounds, sum.largest_batch);
}

L2Sensitivity ChunkedClipper::State::Sensitivity(const ClippingPolicy& policy) const {
  const double records = sum.adjacency == Adjacency::kReplaceOne ? 2 : 1;
  const double excess = Excess(policy, 1 - kCutOffShare, records);
  const L2Sensitivity computed =
      SumSensitivity(policy.Bounds(), sum.adjacency, sum.micro_batch, excess - 1 + sum.rounding);
  // A batch of one record more than was declared has a chunk for each.
  const auto chunks = static_cast<double>(std::max(most_chunks, sum.largest_batch + 1));
  const double rounded = chunks * Granularity(policy) * std::sqrt(static_cast<double>(coordinates));
  return L2Sensitivity((computed.value() + rounded) * (1 + 0x1p-50));
}

ChunkedClipper::ChunkedClipper(std::vector<NamedParameter> parameters, GradientOptions options,
                               SumOptions sum)
    : state_(std::make_unique<State>(TrainedParameters(std::move(parameters)), options, sum)) {}

ChunkedClipper::ChunkedClipper(std::vector<NamedParameter> parameters, const JlOptions& options)
    : ChunkedClipper(std::move(parameters), {.physical_batch = options.physical_batch},
                     SumOf(options)) {
  state_->estimated = options;
}

ChunkedClipper::~ChunkedClipper() = default;
ChunkedClipper::ChunkedClipper(ChunkedClipper&&) noexcept = default;
ChunkedClipper& ChunkedClipper::operator=(ChunkedClipper&&) noexcept = default;

const ChunkOptions& ChunkedClipper::chunks() const { return state_->cut; }

const std::vector<NamedParameter>& ChunkedClipper::parameters() const {
  return state_->parts.parameters();
}

L2Sensitivity ChunkedClipper::Sensitivity(const ClippingPolicy& policy) const {
  return state_->Sensitivity(policy);
}

FixedPointSum ChunkedClipper::Sum(const LossFunction& loss, std::int64_t examples,
                                  const std::function<std::optional<Batch>()>& next,
                                  const ClippingPolicy& policy, const JlDirections* directions) {
  State& s = *state_;
  SORDINO_CHECK(s.estimated.has_value() == (directions != nullptr),
                "directions are for estimated norms");
  s.Check(loss, policy, directions);
  const double granularity = s.Granularity(policy);
  const double most = kTotalSteps / static_cast<double>(s.most_chunks);
  const at::Device device = parameters().front().value.device();
  at::Tensor steps = at::zeros({s.coordinates}, at::TensorOptions(at::kLong).device(device));
  std::optional<LongSteps> surplus;
  if (s.cut.IsSurplus(examples)) surplus = LongSteps::Zeros(s.coordinates, device);
  at::Tensor halves;
  if (policy.CountBound() > 0) {
    halves = at::zeros({static_cast<std::int64_t>(policy.Bounds().size())}, at::kLong);
  }
  while (const std::optional<Batch> chunk = next()) {
    if (Examples(*chunk) == 0) continue;
    const Totals totals = s.SumOfChunk(loss, *chunk, policy, directions);
    const at::NoGradGuard no_grad;
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < parameters().size(); ++k) {
      const std::int64_t count = parameters()[k].value.numel();
      if (totals.gradients[k].defined()) {
        SORDINO_CHECK(totals.gradients[k].numel() == count,
                      "a gradient has another size than its parameter");
        AddSteps(totals.gradients[k].reshape({count}), granularity, most,
                 steps.narrow(0, begin, count));
      }
      begin += count;
    }
    if (surplus) {
      surplus->Add(steps);
      steps.zero_();
    }
    if (halves.defined()) halves.add_(totals.counts.to(at::kCPU).mul(2).round().to(at::kLong));
  }
  // What a GPU could not compute shows here, not in whoever adds up the sum.
  if (!device.is_cpu()) {
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  }
  SumParts parts;
  parts.sensitivity = s.Sensitivity(policy);
  parts.adjacency = s.sum.adjacency;
  if (halves.defined()) {
    parts.count_sensitivity = SumSensitivity(std::vector<double>{policy.CountBound()},
                                             s.sum.adjacency, s.sum.micro_batch, /*slack=*/0);
  }
  at::Tensor high;
  if (surplus) {
    steps = std::move(surplus->low);
    high = std::move(surplus->high);
  }
  return {std::move(steps), std::move(high), std::move(halves),
          granularity,      s.type,          std::move(parts)};
}

}  // namespace sordino
