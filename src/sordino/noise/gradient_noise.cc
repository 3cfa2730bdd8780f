#include "sordino/noise/gradient_noise.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/vector_clones.h"
#include "sordino/device/parallel_shares.h"
#include "sordino/kernels/grid_step.h"
#include "sordino/noise/device_noise.h"
#include "sordino/random/grid_noise.h"

namespace sordino {
namespace {

constexpr double kMaxGridSteps = 0x1p30;  // scale / g stays below
constexpr int kMaxCoarserBits = 28;       // scale / g stays above 1

using internal::GridStep;
using internal::kFinerBits;
using internal::kSaturation;
using internal::NoisedValueOf;
using internal::RoundedSteps;

// A range of the coordinates of a sum.
struct CoordinateRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Draws of this scale for a range of all coordinates; `keep` is called for each block, with the
// place of its first draw in the range. A block is drawn as a whole, whatever is taken of it.
template <typename Keep>
void DrawBlocks(const NoiseComponent& kind, double scale, CoordinateRange range,
                std::int64_t coordinates, std::int64_t step, RandomSource& source, Keep keep) {
  if (range.begin == range.end) return;
  const std::int64_t first_block = range.begin / kNoiseBlock;
  const std::int64_t blocks = (range.end + kNoiseBlock - 1) / kNoiseBlock - first_block;
  std::vector<std::unique_ptr<Generator>> streams;
  for (std::int64_t block = first_block; block < first_block + blocks; ++block) {
    streams.push_back(source.Stream({.step = static_cast<std::uint64_t>(step),
                                     .rank = 0,
                                     .tensor = static_cast<std::uint32_t>(block)}));
  }
  const std::unique_ptr<NoiseDraws> distribution = kind.Draws(scale);
  ParallelShares(blocks, [&](std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> draws(kNoiseBlock);
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t start = (first_block + block) * kNoiseBlock;
      const auto count = static_cast<std::size_t>(std::min(kNoiseBlock, coordinates - start));
      distribution->Fill(*streams[static_cast<std::size_t>(block)], std::span(draws).first(count));
      const std::int64_t from = std::max(start, range.begin);
      const std::int64_t to = std::min(start + static_cast<std::int64_t>(count), range.end);
      keep(from - range.begin,
           std::span<const std::int64_t>(draws).subspan(static_cast<std::size_t>(from - start),
                                                        static_cast<std::size_t>(to - from)));
    }
  });
}

// Noise in steps of the grid for a range of all coordinates, as whole numbers in doubles.
at::Tensor DrawSteps(const StepNoise& noise, const NoiseGrid& grid, CoordinateRange range,
                     std::int64_t coordinates, RandomSource& source) {
  const std::int64_t count = range.end - range.begin;
  const double scale = ScaleOfDraws(grid);
  at::Tensor steps = at::empty({count}, at::kDouble);
  double* const out = steps.mutable_data_ptr<double>();
  if (!noise.earlier) {
    DrawBlocks(*noise.kind, scale, range, coordinates, noise.step, source,
               [&](std::int64_t first, std::span<const std::int64_t> draws) {
                 std::transform(draws.begin(), draws.end(), out + first, [&](std::int64_t draw) {
                   return static_cast<double>(RoundedSteps(draw, grid.finer_bits));
                 });
               });
    return steps;
  }
  const auto draw = [&](std::int64_t step, double of_scale) {
    at::Tensor draws = at::empty({count}, at::kLong);
    std::int64_t* const kept = draws.mutable_data_ptr<std::int64_t>();
    DrawBlocks(*noise.kind, of_scale, range, coordinates, step, source,
               [&](std::int64_t first, std::span<const std::int64_t> block) {
                 std::copy(block.begin(), block.end(), kept + first);
               });
    return draws;
  };
  const at::Tensor draws = draw(noise.step, scale);
  noise.earlier({.draws = draws,
                 .scale = scale,
                 .step = noise.step,
                 .draw_again = [&](std::int64_t step, double of_scale) {
                   SORDINO_CHECK(!source.IsPrivate(), "private noise was to be drawn again");
                   return draw(step, of_scale);
                 }});
  const std::int64_t* const all = draws.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<double>(RoundedSteps(all[i], grid.finer_bits));
  }
  return steps;
}

// To the steps of a range of all coordinates.
void AddCanaries(std::span<const Dirac> canaries, double granularity, L2Sensitivity sensitivity,
                 CoordinateRange range, std::int64_t coordinates, const at::Tensor& steps) {
  double* const out = steps.mutable_data_ptr<double>();
  for (const Dirac& canary : canaries) {
    SORDINO_CHECK(std::abs(canary.value) <= sensitivity.value(),
                  "a canary is larger than the sensitivity of the sum");
    SORDINO_CHECK(0 <= canary.coordinate && canary.coordinate < coordinates,
                  "a canary has a coordinate that the model does not have");
    if (canary.coordinate < range.begin || canary.coordinate >= range.end) continue;
    out[canary.coordinate - range.begin] += std::trunc(canary.value / granularity);
  }
}

// Steps of one power of two as steps of another, to the nearest, saturated at kSaturation.
at::Tensor InStepsOf(double to, const at::Tensor& steps, double from) {
  int shift = 0;  // to / from = 2^shift
  SORDINO_CHECK(std::frexp(to / from, &shift) == 0.5, "a grid is not one of a power of two");
  --shift;
  const auto saturation = static_cast<std::int64_t>(kSaturation);
  if (shift > 0) {
    // Values are below 2^61 (fixed_point_sum.h), so that half a step more is no overflow.
    if (shift > 62) return at::zeros_like(steps);
    const std::int64_t half = std::int64_t{1} << (shift - 1);
    return at::bitwise_right_shift(steps.add(half), shift).clamp_(-saturation, saturation);
  }
  if (-shift > 50) return steps.sign().mul_(saturation);
  const std::int64_t most = saturation >> -shift;
  return at::bitwise_left_shift(steps.clamp(-most, most), -shift);
}

// The noised values of a part of the sum, given its draws.
template <typename Value, typename Noised>
[[gnu::always_inline]] inline void NoiseEach(const Value* values,
                                             std::span<const std::int64_t> draws,
                                             const GridStep& step, Noised* out) {
  for (std::size_t i = 0; i < draws.size(); ++i) {
    out[i] = static_cast<Noised>(NoisedValueOf(static_cast<double>(values[i]),
                                               RoundedSteps(draws[i], step.finer_bits), step));
  }
}
using Draws = std::span<const std::int64_t>;
SORDINO_VECTOR_CLONES void Noise(const float* values, Draws draws, const GridStep& step,
                                 float* out) {
  NoiseEach(values, draws, step, out);
}
SORDINO_VECTOR_CLONES void Noise(const double* values, Draws draws, const GridStep& step,
                                 float* out) {
  NoiseEach(values, draws, step, out);
}
SORDINO_VECTOR_CLONES void Noise(const float* values, Draws draws, const GridStep& step,
                                 double* out) {
  NoiseEach(values, draws, step, out);
}
SORDINO_VECTOR_CLONES void Noise(const double* values, Draws draws, const GridStep& step,
                                 double* out) {
  NoiseEach(values, draws, step, out);
}

// Calls visit(pointer) with the data of a float or double tensor.
template <typename Visit>
void VisitNumbers(const at::Tensor& tensor, const Visit& visit) {
  if (tensor.scalar_type() == at::kFloat) {
    visit(tensor.data_ptr<float>());
  } else {
    visit(tensor.data_ptr<double>());
  }
}

// Whether AddByBlocks serves a sum.
bool LiesInMemory(const BoundedSum& sum) {
  const auto has_loop = [](at::ScalarType type) {
    return type == at::kFloat || type == at::kDouble;
  };
  return std::ranges::all_of(sum.gradients,
                             [&](const at::Tensor& gradient) {
                               return gradient.is_cpu() && gradient.is_contiguous() &&
                                      has_loop(gradient.scalar_type());
                             }) &&
         std::ranges::all_of(sum.noised_types, has_loop);
}

// The noised values of a sum, each block of noise added as soon as it is drawn.
std::vector<at::Tensor> AddByBlocks(const BoundedSum& sum, const StepNoise& noise,
                                    const NoiseGrid& grid, std::int64_t coordinates,
                                    RandomSource& source) {
  std::vector<at::Tensor> noised;
  std::vector<std::int64_t> ends;  // of each tensor, in coordinates
  for (std::size_t k = 0; k < sum.gradients.size(); ++k) {
    noised.push_back(at::empty(sum.gradients[k].sizes(), sum.noised_types[k]));
    ends.push_back((ends.empty() ? 0 : ends.back()) + noised[k].numel());
  }
  const GridStep step{.steps_per_unit = 1 / grid.granularity,
                      .value_of_step = grid.granularity / noise.divisor,
                      .finer_bits = grid.finer_bits};
  const auto add = [&](std::int64_t first, std::span<const std::int64_t> draws) {
    auto k = static_cast<std::size_t>(std::ranges::upper_bound(ends, first) - ends.begin());
    while (!draws.empty()) {
      const auto count = std::min(draws.size(), static_cast<std::size_t>(ends[k] - first));
      const std::int64_t place = first - (ends[k] - noised[k].numel());
      VisitNumbers(sum.gradients[k], [&](const auto* values) {
        VisitNumbers(noised[k], [&](auto* out) {
          Noise(values + place, draws.first(count), step, out + place);
        });
      });
      draws = draws.subspan(count);
      first += static_cast<std::int64_t>(count);
      ++k;
    }
  };
  DrawBlocks(*noise.kind, ScaleOfDraws(grid), {0, coordinates}, coordinates, noise.step, source,
             add);
  return noised;
}

// The sum with noise that was drawn, in steps of the grid, and the canaries.
std::vector<at::Tensor> AddSteps(const BoundedSum& sum, const StepNoise& noise,
                                 const NoiseGrid& grid, at::Tensor steps) {
  const std::int64_t coordinates = steps.numel();
  AddCanaries(noise.canaries, grid.granularity, sum.sensitivity, {0, coordinates}, coordinates,
              steps);
  if (!sum.gradients.empty()) steps = steps.to(sum.gradients.front().device());

  std::vector<at::Tensor> noised;
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < sum.gradients.size(); ++k) {
    const at::Tensor& gradient = sum.gradients[k];
    const std::int64_t count = gradient.numel();
    at::Tensor value = gradient.to(at::kDouble).mul(1 / grid.granularity);
    value = value.nan_to_num_(0, kSaturation, -kSaturation).round_();
    value.clamp_(-kSaturation, kSaturation);
    value.add_(steps.narrow(0, begin, count).view(gradient.sizes()));
    // From here on everything is a function of an integer release.
    noised.push_back(value.mul_(grid.granularity / noise.divisor).to(sum.noised_types[k]));
    begin += count;
  }
  return noised;
}

}  // namespace

NoiseGrid ChooseNoiseGrid(const NoiseComponent& kind, NoiseMultiplier noise, L2Sensitivity unit,
                          std::int64_t coordinates, double rounding, double largest) {
  SORDINO_CHECK(unit.value() > 0, "noise was asked for a sum that nothing can change");
  const double z = noise.value();
  const auto d = static_cast<double>(coordinates);
  const double spread = kind.UnitOfDistance(d);
  const double moved = rounding * kind.UnitOfRounding(d);  // in steps
  // scale / g = z spread U / g + z moved is to stay below 2^30 with half of it left to the first.
  if (z * moved > kMaxGridSteps / 4) {
    throw Error(fmt::format(
        "noise of multiplier {} on {} parameters is too large for its grid; use a smaller noise "
        "multiplier (more records in a batch, or fewer steps) or train fewer parameters.",
        z, coordinates));
  }
  const double exact = z * spread * unit.value();
  // Steps of the grid and one over them are numbers.
  if (!(exact >= 0x1p-900 && exact <= 0x1p900)) {
    throw Error(
        fmt::format("noise of multiplier {} for a sensitivity of {} is too small or too large for "
                    "a number; use a noise multiplier and a clipping norm nearer to 1.",
                    z, unit.value()));
  }
  NoiseGrid grid;
  for (int coarser = 0;; ++coarser) {
    // Of the finest grid: with the room that the rounding to the coarser one takes of the draws.
    const double room = kMaxGridSteps - 1 - std::ldexp(z * moved, coarser);
    if (coarser > kMaxCoarserBits || room < kMaxGridSteps / 2) {
      throw Error(
          fmt::format("noise of multiplier {} is too small beside sums of this many records: they "
                      "do not fit on one grid; use a larger noise multiplier, or a run without "
                      "noise.",
                      z));
    }
    int exponent = 0;
    std::frexp(exact / room, &exponent);  // 2^exponent > the quotient
    grid.granularity = std::ldexp(1.0, exponent + coarser);
    grid.finer_bits = kFinerBits + coarser;
    if (largest <= kSaturation * grid.granularity) break;
  }
  // Rounded upwards: noise is never too small.
  grid.scale = (exact + z * moved * grid.granularity) * (1 + 0x1p-40);
  return grid;
}

double ScaleOfDraws(const NoiseGrid& grid) {
  return std::ldexp(grid.scale / grid.granularity, grid.finer_bits);
}

NoiseGrid StepGrid(const StepNoise& noise, L2Sensitivity sensitivity, std::int64_t coordinates) {
  SORDINO_CHECK(noise.divisor > 0, "the divisor of a sum is not positive");
  SORDINO_CHECK(noise.unit_share == 1 || noise.unit_share == 0.5, "unknown unit of the noise");
  SORDINO_CHECK(!noise.earlier || noise.remembered > 0, "nobody pays for the rounding of noise");
  // The last digit of draws is at most 2^-10 of a step of the grid.
  const double rounding = 1 + std::ldexp(noise.remembered, -kFinerBits);
  return ChooseNoiseGrid(*noise.kind, noise.multiplier,
                         L2Sensitivity(sensitivity.value() * noise.unit_share), coordinates,
                         rounding, noise.largest_batch * sensitivity.value());
}

NoisedGradients AddNoise(const BoundedSum& sum, const StepNoise& noise, RandomSource& source) {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  const NoiseGrid grid = StepGrid(noise, sum.sensitivity, coordinates);
  const double deviation = noise.kind->DeviationOfScale() * grid.scale / noise.divisor;
  at::Tensor steps;
  if (noise.steps) {
    steps = noise.steps(grid, coordinates);
  } else if (!noise.earlier && DeviceNoise::Serves(sum, *noise.kind)) {
    DeviceNoise device(sum.gradients.front().device(), source);
    if (noise.canaries.empty()) {
      device.SetStep(noise, sum.sensitivity, coordinates);
      return AddNoise(sum, device);
    }
    steps = device.Steps(grid, coordinates, noise.step).cpu();
  } else if (!noise.earlier && noise.canaries.empty() && LiesInMemory(sum)) {
    return {AddByBlocks(sum, noise, grid, coordinates, source), deviation};
  } else {
    steps = DrawSteps(noise, grid, {0, coordinates}, coordinates, source);
  }
  return {AddSteps(sum, noise, grid, std::move(steps)), deviation};
}

NoisedGradients AddNoise(const FixedPointShard& shard, const StepNoise& noise,
                         RandomSource& source) {
  const NoiseGrid grid = StepGrid(noise, shard.sensitivity, shard.coordinates);
  const std::int64_t end = std::min(shard.begin + shard.steps.numel(), shard.coordinates);
  const std::int64_t begin = std::min(shard.begin, end);
  at::Tensor value = InStepsOf(grid.granularity, shard.steps, shard.granularity).to(at::kDouble);
  const CoordinateRange range{begin, end};
  const at::Tensor steps = DrawSteps(noise, grid, range, shard.coordinates, source);
  AddCanaries(noise.canaries, grid.granularity, shard.sensitivity, range, shard.coordinates, steps);
  value.narrow(0, 0, end - begin).add_(steps);
  // From here on everything is a function of an integer release.
  value = value.mul_(grid.granularity / noise.divisor).to(shard.type);
  return {{std::move(value)}, noise.kind->DeviationOfScale() * grid.scale / noise.divisor};
}

NoisedCounts AddCountNoise(const BoundedSum& sum, double count_noise, std::int64_t step,
                           RandomSource& source) {
  const at::Tensor& counts = sum.counts.RevealForNoise();
  SORDINO_CHECK(counts.defined(), "counts were to be noised, and the policy has none");
  const at::Tensor host = counts.to(at::kCPU, at::kDouble).contiguous();
  std::vector<double> values(host.const_data_ptr<double>(),
                             host.const_data_ptr<double>() + host.numel());
  // Counts are multiples of 1/2 and the granularity is a power of two below: nothing is rounded.
  const GridGaussian gaussian(count_noise);
  SORDINO_CHECK(gaussian.Granularity() <= 0.5, "the noise on counts is too coarse for them");
  const auto stream =
      source.Stream({.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = kCountStream});
  gaussian.AddTo(*stream, values);
  return {std::move(values), count_noise};
}

}  // namespace sordino
