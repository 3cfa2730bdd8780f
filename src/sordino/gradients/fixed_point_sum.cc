#include "sordino/gradients/fixed_point_sum.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "sordino/base/check.h"
#include "sordino/gradients/internal/rounding/long_steps.h"

namespace sordino {
namespace {

constexpr int kBatchBits = 59;  // the largest batch is below 2^59 steps

}  // namespace

std::int64_t ShardSize(std::int64_t coordinates, int shards) {
  SORDINO_CHECK(shards >= 1, "a sum has at least one part");
  const std::int64_t part = (coordinates + shards - 1) / shards;
  return (part + kShardMultiple - 1) / kShardMultiple * kShardMultiple;
}

double FixedPointStep(std::span<const double> bounds, std::int64_t largest_batch) {
  double norm = 0;
  for (const double bound : bounds) norm = std::hypot(norm, bound);
  SORDINO_CHECK(norm > 0 && std::isfinite(norm), "a clipping bound is positive and finite");
  int exponent = 0;
  // norm * batch <= 2^exponent; hypot may be an ulp too small, and the place above 2^60 covers it.
  std::frexp(norm * static_cast<double>(largest_batch), &exponent);
  return std::ldexp(1.0, exponent - kBatchBits);
}

FixedPointShard FixedPointSum::Scatter(
    const std::function<void(const at::Tensor&, at::Tensor&)>& add, int shard, int shards,
    at::Device device) const {
  SORDINO_CHECK(0 <= shard && shard < shards, "a part that the sum does not have");
  const std::int64_t coordinates = steps_.RevealForNoise().numel();
  const std::int64_t size = ShardSize(coordinates, shards);
  const auto there = at::TensorOptions(at::kLong).device(device);
  const auto scattered = [&](const at::Tensor& own) {
    at::Tensor padded = at::zeros({size * shards}, there);
    padded.narrow(0, 0, coordinates).copy_(own);
    at::Tensor part = at::empty({size}, there);
    add(padded, part);
    return part.cpu();
  };
  at::Tensor part = scattered(steps_.RevealForNoise());
  if (const at::Tensor& high = high_.RevealForNoise(); high.defined()) {
    part = LongSteps{part, scattered(high)}.Saturated();
  }
  return {std::move(part),    shard * size,     coordinates, granularity_,
          parts_.sensitivity, parts_.adjacency, type_};
}

PrivateValue<at::Tensor> FixedPointSum::steps() const {
  const at::Tensor& high = high_.RevealForAudit();
  if (!high.defined()) return steps_;
  return PrivateValue<at::Tensor>(LongSteps{steps_.RevealForAudit(), high}.Saturated());
}

BoundedSum FixedPointSum::Counts(const std::function<void(at::Tensor&)>& add) const {
  SumParts parts = parts_;
  if (HasCounts()) {
    at::Tensor halves = half_counts_.RevealForNoise().clone();
    add(halves);
    parts.counts = PrivateValue<at::Tensor>(halves.to(at::kDouble).mul_(0.5));
  }
  return BoundedSum(std::move(parts));
}

}  // namespace sordino
