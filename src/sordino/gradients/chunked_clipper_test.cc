#include "sordino/gradients/chunked_clipper.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sordino/gradients/jl_clipping.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"
#include "sordino/gradients/testing/test_policies.h"

namespace sordino {
namespace {

TEST(Chunks, CoverTheBatchOnceInWholeMicroBatches) {
  for (const std::int64_t width : {1, 3, 8}) {
    for (const std::int64_t most : {0, 1, 5, 64}) {
      for (std::int64_t examples = 0; examples < 700; ++examples) {
        const ChunkOptions options{.micro_batch = width, .most_examples = most};
        const std::vector<Chunk> chunks = Chunks(examples, options);
        ASSERT_EQ(chunks.size(), static_cast<std::size_t>(ChunkCount(examples, options)));
        std::int64_t end = 0;
        std::int64_t smallest = examples;
        std::int64_t largest = 0;
        for (const Chunk& chunk : chunks) {
          ASSERT_EQ(chunk.begin, end);
          ASSERT_TRUE(chunk.begin % width == 0 || chunk.begin == examples);
          end = chunk.end;
          smallest = std::min(smallest, chunk.end - chunk.begin);
          largest = std::max(largest, chunk.end - chunk.begin);
        }
        ASSERT_EQ(end, examples);
        ASSERT_LE(largest, std::max(width, most > 0 ? most : kChunkExamples));
        ASSERT_LE(largest - smallest, 2 * width);
      }
    }
  }
}

// Of the proof in fixed_point_sum.h: chunks of a smaller batch are not so large that a sum is cut
// off, and there are not more of them.
TEST(Chunks, HoldAtMostTwiceTheShareOfTheLargestBatch) {
  for (const std::int64_t most : {0, 1, 7, 8, 100, -128}) {
    // A size below zero is one that chunks are padded to.
    const ChunkOptions options{.most_examples = std::abs(most), .is_padded = most < 0};
    for (std::int64_t largest = 1; largest < 600; largest += 7) {
      const std::int64_t count = ChunkCount(largest, options);
      for (std::int64_t examples = 1; examples <= largest; ++examples) {
        ASSERT_LE(ChunkCount(examples, options), count);
        for (const Chunk& chunk : Chunks(examples, options)) {
          ASSERT_LE((chunk.end - chunk.begin) * count, 2 * largest)
              << examples << " of " << largest << " by " << most;
        }
      }
    }
  }
}

TEST(FixedPointStep, IsAPowerOfTwoWithPlaceForTheLargestBatch) {
  for (const double bound : {1e-6, 0.1, 1.0, 1.5, 77.0}) {
    for (const std::int64_t batch : {1, 500, 1 << 20}) {
      const double step = FixedPointStep(std::vector<double>{bound, bound}, batch);
      int exponent = 0;
      EXPECT_EQ(std::frexp(step, &exponent), 0.5);
      const double steps = bound * std::sqrt(2) * static_cast<double>(batch) / step;
      EXPECT_LE(steps, 0x1p59 * (1 + 1e-12));
      EXPECT_GE(steps, 0x1p58 * (1 - 1e-12));
    }
  }
}

ModelFunction ChunkModel() {
  return [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {6, 3});
    const at::Tensor b = m.Parameter("l.bias", {6});
    const at::Tensor v = m.Parameter("v.weight", {6});
    m.Input({3});
    return [=](const Batch& x) { return at::matmul(at::linear(x[0], w, b).tanh(), v); };
  };
}

// The sum of the chunks that process `rank` of `size` computes.
FixedPointSum SumOn(ChunkedClipper& clipper, const TestModel& model, const Batch& batch,
                    const ClippingPolicy& policy, std::size_t rank = 0, std::size_t size = 1) {
  const std::vector<Chunk> chunks = Chunks(Examples(batch), clipper.chunks());
  std::size_t chunk = rank;
  return clipper.Sum(
      model.loss, Examples(batch),
      [&]() -> std::optional<Batch> {
        if (chunk >= chunks.size()) return std::nullopt;
        const Chunk& own = chunks[chunk];
        chunk += size;
        return Slice(batch, own.begin, own.end);
      },
      policy);
}

at::Tensor Values(const FixedPointSum& sum) {
  return sum.steps().RevealForAudit().to(at::kDouble) * sum.granularity();
}

TEST(ChunkedClipper, SumsWhatAClipperSums) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(ChunkModel(), type);
    const Batch batch = model.batch(75);
    for (const NormMethod norms : {NormMethod::kAutomatic, NormMethod::kMaterialise,
                                   NormMethod::kGhost, NormMethod::kLoop}) {
      const FlatClipping policy(ClipNorm(0.3));
      Clipper whole(model.parameters, {.norms = norms});
      ChunkedClipper chunked(model.parameters, {.norms = norms});
      const BoundedSum wanted = whole.ClippedSum(model.loss, batch, policy);
      std::vector<at::Tensor> parts;
      for (const at::Tensor& gradient : wanted.gradients) parts.push_back(gradient.reshape({-1}));
      const FixedPointSum sum = SumOn(chunked, model, batch, policy);
      const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
      EXPECT_LT((Values(sum) - at::cat(parts)).norm().item<double>(), tolerance);
      // More than that of the floating-point sum, by very little.
      EXPECT_GT(sum.sensitivity().value(), wanted.sensitivity.value());
      EXPECT_LT(sum.sensitivity().value(), wanted.sensitivity.value() * (1 + 1e-9));
    }
  }
}

TEST(ChunkedClipper, TotalDoesNotDependOnWhoComputedWhat) {
  const TestModel model = MakeModel(ChunkModel(), at::kFloat);
  const Batch batch = model.batch(300);
  const NormClipping policy = NormClipping::Layerwise(model.parameters, ClipNorm(0.3));
  ChunkedClipper clipper(model.parameters);
  const at::Tensor wanted = SumOn(clipper, model, batch, policy).steps().RevealForAudit();
  for (const std::size_t size : {2U, 5U, 16U, 40U}) {
    at::Tensor total = at::zeros_like(wanted);
    for (std::size_t rank = size; rank-- > 0;) {
      // Each with a clipper that has seen nothing yet.
      ChunkedClipper own(model.parameters);
      total += SumOn(own, model, batch, policy, rank, size).steps().RevealForAudit();
    }
    EXPECT_TRUE(at::equal(total, wanted)) << size;
  }
}

// Also where a record is missing, which moves all later ones to other places in other chunks.
TEST(ChunkedClipper, NeighbouringTotalsDifferByAtMostTheSensitivity) {
  double largest = 0;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(ChunkModel(), type);
    const Batch batch = model.batch(130);
    // Records that break arithmetic.
    const double inf = std::numeric_limits<double>::infinity();
    batch[0][3].fill_(type == at::kDouble ? 1e300 : 1e38);
    batch[0][70].fill_(inf);
    batch[0][71].fill_(std::nan(""));
    for (const bool small_chunks : {false, true}) {
      ChunkedClipper clipper(model.parameters, {.physical_batch = small_chunks ? 2 : 0},
                             {.largest_batch = 130});
      const FlatClipping policy(ClipNorm(0.3));
      const FixedPointSum sum = SumOn(clipper, model, batch, policy);
      for (const std::int64_t missing : {0, 1, 3, 64, 70, 71, 129}) {
        const Batch without = {at::cat(
            {batch[0].slice(0, 0, missing), batch[0].slice(0, missing + 1, batch[0].size(0))})};
        const FixedPointSum other = SumOn(clipper, model, without, policy);
        const at::Tensor moved = sum.steps().RevealForAudit() - other.steps().RevealForAudit();
        const double distance = moved.to(at::kDouble).norm().item<double>() * sum.granularity();
        EXPECT_LE(distance, sum.sensitivity().value()) << missing;
        EXPECT_EQ(sum.granularity(), other.granularity());
        largest = std::max(largest, distance / sum.sensitivity().value());
      }
    }
  }
  // The bound is reached: a test of distances that are all zero could not fail.
  EXPECT_GT(largest, 0.98);
}

// More records than were declared: a chunk for each, and exact sums of any size.
TEST(ChunkedClipper, LargerBatchesThanDeclaredDifferByAtMostTheSensitivity) {
  constexpr std::int64_t kDeclared = 33;
  const TestModel model = MakeModel(ChunkModel(), at::kFloat);
  const Batch all = model.batch(300);
  const FlatClipping policy(ClipNorm(0.3));
  ChunkedClipper clipper(model.parameters, {}, {.largest_batch = kDeclared});
  ChunkedClipper wide(model.parameters);
  EXPECT_EQ(Chunks(kDeclared, clipper.chunks()).size(), 4U);
  EXPECT_EQ(Chunks(kDeclared + 1, clipper.chunks()).size(), 34U);
  for (const std::int64_t size : {kDeclared - 1, kDeclared, kDeclared + 1, std::int64_t{299}}) {
    const Batch batch = Slice(all, 1, size + 1);
    const FixedPointSum sum = SumOn(clipper, model, batch, policy);
    EXPECT_LT((Values(sum) - Values(SumOn(wide, model, batch, policy))).norm().item<double>(),
              1e-5);
    const FixedPointSum other = SumOn(clipper, model, Slice(all, 0, size + 1), policy);
    EXPECT_LE((Values(sum) - Values(other)).norm().item<double>(), sum.sensitivity().value());
    EXPECT_EQ(sum.granularity(), other.granularity());
    EXPECT_EQ(sum.sensitivity().value(), other.sensitivity().value());
    if (size <= kDeclared) continue;
    // Over processes, and to the last step what the record alone adds.
    const auto scattered = [&](const Batch& of) {
      std::vector<FixedPointSum> parts;
      for (std::size_t rank = 0; rank < 3; ++rank) {
        parts.push_back(SumOn(clipper, model, of, policy, rank, 3));
      }
      std::size_t call = 0;
      std::vector<at::Tensor> low;
      const auto collect = [&](const at::Tensor& values, at::Tensor& part) {
        low.push_back(values.clone());
        part.zero_();
      };
      for (const FixedPointSum& part : parts) static_cast<void>(part.Scatter(collect, 0, 1));
      return parts.front().Scatter(
          [&](const at::Tensor&, at::Tensor& part) {
            part.copy_(low[call] + low[call + 2] + low[call + 4]);
            ++call;
          },
          0, 1);
    };
    EXPECT_TRUE(at::equal(scattered(batch).steps.narrow(0, 0, 30), sum.steps().RevealForAudit()));
    const at::Tensor record = other.steps().RevealForAudit() - sum.steps().RevealForAudit();
    const at::Tensor later =
        SumOn(clipper, model, Slice(all, 0, 100), policy).steps().RevealForAudit() -
        SumOn(clipper, model, Slice(all, 1, 100), policy).steps().RevealForAudit();
    EXPECT_TRUE(at::equal(record, later));
  }
}

TEST(ChunkedClipper, CountsOfAPolicyAreThoseOfAClipper) {
  const TestModel model = MakeModel(ChunkModel(), at::kFloat);
  const Batch batch = model.batch(101);
  const CountingClipping policy(ClipNorm(0.5));
  Clipper whole(model.parameters);
  ChunkedClipper chunked(model.parameters);
  const BoundedSum wanted = whole.ClippedSum(model.loss, batch, policy);
  const FixedPointSum sum = SumOn(chunked, model, batch, policy);
  ASSERT_TRUE(sum.HasCounts());
  const BoundedSum counts = sum.Counts([](at::Tensor& values) { values.mul_(3); });
  EXPECT_TRUE(at::equal(counts.counts.RevealForAudit(), wanted.counts.RevealForAudit() * 3));
  EXPECT_EQ(counts.count_sensitivity.value(), wanted.count_sensitivity.value());
  EXPECT_TRUE(counts.gradients.empty());
}

// Normal directions from a fixed seed for each number.
class TestDirections : public JlDirections {
 public:
  explicit TestDirections(std::uint64_t seed) : seed_(seed) {}
  at::Tensor Draw(std::int64_t number, std::int64_t coordinates) const override {
    at::Generator generator =
        at::detail::createCPUGenerator(1'000 * seed_ + static_cast<std::uint64_t>(number));
    return at::randn({coordinates}, generator, at::TensorOptions(at::kDouble));
  }

 private:
  std::uint64_t seed_;
};

FixedPointSum EstimatedSum(ChunkedClipper& clipper, const TestModel& model, const Batch& batch,
                           const ClippingPolicy& policy, const JlDirections& directions) {
  const std::vector<Chunk> chunks = Chunks(Examples(batch), clipper.chunks());
  std::size_t chunk = 0;
  return clipper.Sum(
      model.loss, Examples(batch),
      [&]() -> std::optional<Batch> {
        if (chunk >= chunks.size()) return std::nullopt;
        const Chunk& own = chunks[chunk++];
        return Slice(batch, own.begin, own.end);
      },
      policy, &directions);
}

// Two directions: every sixteenth estimate is less than a quarter of the norm, and its gradient
// more than four times the bound. Chunks of one example have place for no more than that where
// norms are exact.
TEST(ChunkedClipper, SumsByEstimatedNormsAreNotCutOff) {
  const TestModel model = MakeModel(ChunkModel(), at::kDouble);
  const Batch batch = model.batch(130);
  const FlatClipping policy(ClipNorm(0.01));
  const JlOptions options{.directions = 2,
                          .failure_probability = Delta(1e-4),
                          .physical_batch = 1,
                          .largest_batch = 130};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const TestDirections directions(seed);
    ChunkedClipper chunked(model.parameters, options);
    const BoundedSum wanted =
        JlClippedSum(model.loss, batch, model.parameters, policy, options, directions).sum;
    std::vector<at::Tensor> parts;
    for (const at::Tensor& gradient : wanted.gradients) parts.push_back(gradient.reshape({-1}));
    const FixedPointSum sum = EstimatedSum(chunked, model, batch, policy, directions);
    EXPECT_LT((Values(sum) - at::cat(parts)).norm().item<double>(), 1e-9);
    EXPECT_EQ(sum.sensitivity().value(), chunked.Sensitivity(policy).value());
    // A part of the failure probability is kept for the grid.
    EXPECT_GT(sum.sensitivity().value(), wanted.sensitivity.value());
    EXPECT_LT(sum.sensitivity().value(), wanted.sensitivity.value() * (1 + 1e-3));
  }
}

// For directions that hold for the missing record, as all but a few do.
TEST(ChunkedClipper, NeighbouringTotalsByEstimatedNormsDifferByAtMostTheSensitivity) {
  const TestModel model = MakeModel(ChunkModel(), at::kDouble);
  const Batch batch = model.batch(60);
  const FlatClipping policy(ClipNorm(0.01));
  ChunkedClipper clipper(model.parameters, JlOptions{.directions = 8,
                                                     .failure_probability = Delta(1e-6),
                                                     .physical_batch = 3,
                                                     .largest_batch = 60});
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const TestDirections directions(seed);
    const FixedPointSum sum = EstimatedSum(clipper, model, batch, policy, directions);
    for (const std::int64_t missing : {0, 1, 31, 59}) {
      const Batch without = {at::cat(
          {batch[0].slice(0, 0, missing), batch[0].slice(0, missing + 1, batch[0].size(0))})};
      const FixedPointSum other = EstimatedSum(clipper, model, without, policy, directions);
      const at::Tensor moved = sum.steps().RevealForAudit() - other.steps().RevealForAudit();
      const double distance = moved.to(at::kDouble).norm().item<double>() * sum.granularity();
      EXPECT_LE(distance, sum.sensitivity().value()) << missing;
      EXPECT_EQ(sum.granularity(), other.granularity());
      largest = std::max(largest, distance / 0.01);
    }
  }
  EXPECT_GT(largest, 1.1);  // estimates are too small for some
}

TEST(FixedPointSum, ShardsAreEqualPartsWithZerosBehindTheLastCoordinate) {
  const TestModel model = MakeModel(ChunkModel(), at::kFloat);  // 30 coordinates
  ChunkedClipper clipper(model.parameters);
  const FlatClipping policy(ClipNorm(0.3));
  const FixedPointSum sum = SumOn(clipper, model, model.batch(20), policy);
  const at::Tensor all = sum.steps().RevealForAudit();
  for (const int shards : {1, 3}) {
    const std::int64_t size = ShardSize(all.numel(), shards);
    EXPECT_EQ(size, 64);
    for (int shard = 0; shard < shards; ++shard) {
      const FixedPointShard part = sum.Scatter(
          [&](const at::Tensor& values, at::Tensor& out) {
            EXPECT_EQ(values.numel(), shards * size);
            out.copy_(values.narrow(0, shard * size, size));
          },
          shard, shards);
      EXPECT_EQ(part.begin, shard * size);
      EXPECT_EQ(part.coordinates, all.numel());
      const at::Tensor wanted = at::zeros({size}, at::kLong);
      if (shard == 0) wanted.narrow(0, 0, all.numel()).copy_(all);
      EXPECT_TRUE(at::equal(part.steps, wanted));
    }
  }
}

}  // namespace
}  // namespace sordino
