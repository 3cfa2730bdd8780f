#include "sordino/accounting/step_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/noise_units.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"

namespace sordino {
namespace {

// A rate may be this far from one over a whole number, relative.
constexpr double kWholeBatches = 1e-6;

// t of random allocation, where a record is in one of t batches.
std::uint64_t BatchesOf(SamplingRate rate) {
  const double batches = rate.value() > 0 ? std::round(1 / rate.value()) : 0;
  if (batches < 1 || batches > static_cast<double>(kMaxExactCount) ||
      std::abs(batches * rate.value() - 1) > kWholeBatches) {
    throw Error(fmt::format(
        "the rate {:g} is not one over a whole number of batches; random allocation puts each "
        "record into one of them, so give a rate such as 0.01, which is 100 batches.",
        rate.value()));
  }
  return static_cast<std::uint64_t>(batches);
}

}  // namespace

Event StepShape::Step(NoiseMultiplier noise, SamplingRate rate) const {
  const auto leaf = [&] {
    if (matrix) return Event::Matrix(noise, matrix->sensitivity, adjacency);
    const double absolute = noise.value() * static_cast<double>(sensitivity);
    switch (mechanism) {
      case Mechanism::kLaplace:
        return Event::Laplace(noise, adjacency);
      case Mechanism::kDiscreteGaussian:
        return Event::DiscreteGaussian(absolute, sensitivity, adjacency);
      case Mechanism::kDiscreteLaplace:
        return Event::DiscreteLaplace(absolute, sensitivity, adjacency);
      case Mechanism::kGaussian:
        break;
    }
    return Event::Gaussian(noise, adjacency);
  };
  switch (sampling) {
    case Sampling::kPoisson:
      return Event::Poisson(ReleaseRate(rate), leaf());
    case Sampling::kFixed:
      return Event::Fixed(rate, leaf());
    case Sampling::kAllocation:
      return Event::Allocation(BatchesOf(rate), leaf());
    case Sampling::kNone:
      break;
  }
  return leaf();
}

std::uint64_t StepShape::StepsOfOne(SamplingRate rate) const {
  if (matrix) return matrix->steps;
  return sampling == Sampling::kAllocation ? BatchesOf(rate) : 1;
}

SamplingRate StepShape::ReleaseRate(SamplingRate rate) const {
  if (!matrix) return rate;
  const double of_group = rate.value() * static_cast<double>(matrix->steps);
  // Above 1 by rounding only.
  return SamplingRate(of_group <= 1 + 1e-12 ? std::min(of_group, 1.0) : of_group);
}

std::uint64_t StepShape::CountOf(std::uint64_t steps, SamplingRate rate) const {
  const std::uint64_t one = StepsOfOne(rate);
  return steps / one + (steps % one == 0 ? 0 : 1);
}

std::string UnitNote(const Event& event) {
  const NoiseUnits units = NoiseUnitsOf(event);
  const bool replace = event.adjacency() == Adjacency::kReplaceOne;
  std::string note;
  const auto add = [&note](std::string_view sentence) {
    if (!note.empty()) note += ' ';
    note += sentence;
  };
  if (units.allocation) {
    add("Random allocation is charged whole: an allocation over t batches stands for t steps, also "
        "where a run stops inside it.");
  }
  if (replace && units.poisson) {
    add("Under Poisson sampling the noise is relative to the bound C on one record's contribution; "
        "replacing a record moves the sum by up to 2C, and that is charged.");
  }
  if (replace && units.unsampled) {
    add("Without sampling the noise is relative to the replace-one sensitivity, which is 2C for a "
        "sum of contributions bounded by C.");
  }
  if (units.fixed) {
    add("With batches of fixed size the noise is relative to the replace-one sensitivity under "
        "every adjacency, because a record takes the place of another one; it is 2C for a sum of "
        "contributions bounded by C.");
  }
  return note;
}

}  // namespace sordino
