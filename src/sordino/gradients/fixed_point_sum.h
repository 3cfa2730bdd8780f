// A clipped sum in whole steps of a grid, which several processes add up in any order.
//
// A batch is cut into chunks (chunks.h), each of them is summed by one process as rounding.h says,
// and the sum of a chunk is rounded to whole steps of a grid before it is added to others. Integers
// add up to the same whatever the order and the number of processes: the total depends on the batch
// and its chunks alone.
//
// Grid. With the bounds of the policy, V = sqrt(sum bound^2), the largest batch B and at most K
// chunks:  f = 2^k,  V B <= 2^59 f < 2 V B.
//
// No overflow. Chunks hold at most 2 B / K examples, so the sum of a chunk is at most 2^60 / K
// steps in any coordinate, but for the share that rounding adds. It is cut off at 2^61 / K steps,
// which moves no two values apart; so a total of K chunks stays below 2^61 whatever was computed.
//
// Estimated norms (jl_clipping.h). A chunk that is cut off while the records of others have moved
// to it from the chunk before would move totals apart, so this must not happen, and an estimate may
// be too small for any record of a batch, not only for the one that differs. V is therefore X times
// as large, where no scaled gradient of the records of two neighbouring batches (2 B estimates for
// each clipping group) exceeds X times its bound but for 2^-10 of the failure probability of the
// step. The rest is that of the record that differs.
//
// A batch that is larger than B has a chunk for each micro-batch. What a chunk adds is then a
// function of its record alone, and the integers are exact: with one record more the total changes
// by what that record adds, whatever the number of the others. Their sum may be too large for an
// int64; it is added up in two parts and cut off at 2^61 steps at the end, which moves no two
// totals apart. Of two neighbouring batches of B and B + 1 records the second has B + 1 chunks, and
// then K below is B + 1.
//
// Sensitivity. Rounding to the grid moves a coordinate of a chunk by at most f / 2, those of the
// totals of two neighbouring batches by at most K f, and the totals by K f sqrt(d) for d
// coordinates, in addition to what rounding.h bounds (for any order of the rows, which are others
// in all later chunks where a record is missing). It is added to the sensitivity.
#ifndef SORDINO_GRADIENTS_FIXED_POINT_SUM_H_
#define SORDINO_GRADIENTS_FIXED_POINT_SUM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "sordino/base/quantity.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/private_value.h"

namespace sordino {

// Coordinates of a shard are a multiple of this, so that a loop over a shard ends with a whole
// vector register wherever it begins: the end of a loop may round in another way.
inline constexpr std::int64_t kShardMultiple = 64;

// The number of coordinates of each of `shards` equal parts.
std::int64_t ShardSize(std::int64_t coordinates, int shards);

// f above.
double FixedPointStep(std::span<const double> bounds, std::int64_t largest_batch);

// One of several equal parts of the coordinates of a sum over all processes.
class FixedPointShard {
 public:
  const at::Tensor steps;           // int64 [ShardSize()]; those after the last coordinate are 0
  const std::int64_t begin;         // its first coordinate
  const std::int64_t coordinates;   // of the whole sum
  const double granularity;         // f
  const L2Sensitivity sensitivity;  // of the whole sum
  const Adjacency adjacency;
  const at::ScalarType type;  // of the gradients: float32 or float64

 private:
  friend class FixedPointSum;
  friend class TestForgery;  // testing/forged_values.h, which is not installed
  FixedPointShard(at::Tensor the_steps, std::int64_t first, std::int64_t all, double step,
                  L2Sensitivity of_sum, Adjacency the_adjacency, at::ScalarType the_type)
      : steps(std::move(the_steps)),
        begin(first),
        coordinates(all),
        granularity(step),
        sensitivity(of_sum),
        adjacency(the_adjacency),
        type(the_type) {}
};

// What one process added to the sum over all of them.
class FixedPointSum {
 public:
  // `add` fills its second argument with part `shard` of `shards` equal parts of the first one,
  // added up over all processes; both are on `device`. The shard is on the CPU.
  FixedPointShard Scatter(const std::function<void(const at::Tensor&, at::Tensor&)>& add, int shard,
                          int shards, at::Device device = at::kCPU) const;
  // The counts of an adaptive policy over all processes, without gradients; `add` adds up its
  // argument over all processes.
  BoundedSum Counts(const std::function<void(at::Tensor&)>& add) const;

  bool HasCounts() const { return half_counts_.RevealForNoise().defined(); }
  L2Sensitivity sensitivity() const { return parts_.sensitivity; }
  double granularity() const { return granularity_; }
  // For tests and audits: int64 [coordinates], all parameters one after the other, where these
  // lie.
  PrivateValue<at::Tensor> steps() const;

 private:
  friend class ChunkedClipper;
  FixedPointSum(at::Tensor steps, at::Tensor high, at::Tensor half_counts, double granularity,
                at::ScalarType type, SumParts parts)
      : steps_(std::move(steps)),
        high_(std::move(high)),
        half_counts_(std::move(half_counts)),
        granularity_(granularity),
        type_(type),
        parts_(std::move(parts)) {}

  PrivateValue<at::Tensor> steps_;
  PrivateValue<at::Tensor> high_;  // of a batch larger than was declared: the upper parts of steps_
  PrivateValue<at::Tensor> half_counts_;  // int64: counts are multiples of 1/2
  double granularity_;
  at::ScalarType type_;
  SumParts parts_;  // sensitivities and adjacency
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_FIXED_POINT_SUM_H_
