// What GradientOptions::made_up promises: a verdict by the model and the made-up examples, and
// records that fail without a sound.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/chunked_clipper.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/jl_clipping.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/seeded_directions.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

constexpr double kBound = 0.1;
constexpr std::int64_t kBatch = 9;

struct Task {
  at::Tensor w = at::full({4, 2}, 0.25).set_requires_grad(true);
  std::vector<NamedParameter> parameters = {{"w", w}};

  // Fails for a record whose label is not below 8.
  at::Tensor Looked(const Batch& batch) const {
    const at::Tensor table = at::arange(8, at::kFloat);
    return at::matmul(batch[0], w).sum(1) * at::embedding(table.unsqueeze(1), batch[1]).squeeze(1);
  }
  // Fails for a record whose matrix has no Cholesky factor.
  at::Tensor Factored(const Batch& batch) const {
    const at::Tensor root = at::linalg_cholesky(at::eye(2).unsqueeze(0) *
                                                (8 - batch[1]).to(at::kFloat).view({-1, 1, 1}));
    return (at::matmul(batch[0], w).unsqueeze(2) * root).sum({1, 2});
  }
};

Batch NormalRows(std::int64_t count, std::uint64_t seed) {
  at::manual_seed(seed);
  return {at::randn({count, 4}), at::arange(count, at::kLong).remainder(7) + 1};
}

Batch LeftOut(const Batch& batch, std::int64_t record) {
  const at::Tensor rest = at::arange(batch[0].size(0), at::kLong).ne(record).nonzero().squeeze(1);
  return {batch[0].index_select(0, rest), batch[1].index_select(0, rest)};
}

TEST(MadeUpExamples, ARecordThatFailsAddsNothingAndNobodyIsTold) {
  const Task task;
  const FlatClipping policy{ClipNorm(kBound)};
  for (const bool factored : {false, true}) {
    const LossFunction loss = [&](const Batch& b) {
      return factored ? task.Factored(b) : task.Looked(b);
    };
    for (const NormMethod norms : {NormMethod::kAutomatic, NormMethod::kGhost, NormMethod::kLoop}) {
      for (const std::int64_t failing : {std::int64_t{0}, kBatch - 1}) {
        const GradientOptions options = {.norms = norms, .made_up = NormalRows(18, 3)};
        Batch batch = NormalRows(kBatch, 5);
        batch[1][failing] = 9;
        EXPECT_THROW(Clipper(task.parameters, {.norms = norms}).ClippedSum(loss, batch, policy),
                     Error);
        Clipper clipper(task.parameters, options);
        const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
        const BoundedSum rest =
            Clipper(task.parameters, options).ClippedSum(loss, LeftOut(batch, failing), policy);
        EXPECT_TRUE(at::allclose(sum.gradients[0], rest.gradients[0], 1e-5, 1e-7));
        EXPECT_GT(rest.gradients[0].norm().item<double>(), 0);
        // Alone, and after it.
        const Batch alone = {batch[0].narrow(0, failing, 1), batch[1].narrow(0, failing, 1)};
        EXPECT_EQ(clipper.ClippedSum(loss, alone, policy).gradients[0].abs().max().item<float>(),
                  0);
        EXPECT_TRUE(at::allclose(clipper.ClippedSum(loss, batch, policy).gradients[0],
                                 rest.gradients[0], 1e-5, 1e-7));
      }
    }
  }
}

TEST(MadeUpExamples, ARecordThatFailsAddsNothingInChunksAndToEstimatedSums) {
  const Task task;
  const FlatClipping policy{ClipNorm(kBound)};
  const LossFunction loss = [&](const Batch& b) { return task.Looked(b); };
  Batch batch = NormalRows(kBatch, 5);
  batch[1][2] = 9;
  const SeededDirections directions(3);
  const auto chunked = [&](const Batch& given) {
    ChunkedClipper clipper(task.parameters, {.made_up = NormalRows(18, 3)});
    std::optional<Batch> next = given;
    const FixedPointSum sum = clipper.Sum(
        loss, given[0].size(0), [&] { return std::exchange(next, std::nullopt); }, policy);
    return sum.steps().RevealForNoise().to(at::kDouble) * sum.granularity();
  };
  EXPECT_TRUE(at::allclose(chunked(batch), chunked(LeftOut(batch, 2)), 1e-5, 1e-7));
  const JlOptions options = {
      .directions = 64, .failure_probability = Delta(1e-9), .made_up = NormalRows(18, 3)};
  const auto estimated = [&](const Batch& given) {
    return JlClippedSum(loss, given, task.parameters, policy, options, directions).sum;
  };
  EXPECT_TRUE(at::allclose(estimated(batch).gradients[0], estimated(LeftOut(batch, 2)).gradients[0],
                           1e-5, 1e-7));
}

// Also where there is no record to see it with.
TEST(MadeUpExamples, ShowWhatIsWrongWithTheModelBeforeTheFirstSum) {
  const Task task;
  const FlatClipping policy{ClipNorm(kBound)};
  const LossFunction mixes = [&](const Batch& b) {
    return at::matmul(b[0] - b[0].mean(0), task.w).sum(1);
  };
  const LossFunction broken = [&](const Batch&) -> at::Tensor {
    throw std::runtime_error("no such file");
  };
  for (const std::int64_t records : {0, 1, 9}) {
    Clipper clipper(task.parameters, {.made_up = NormalRows(18, 3)});
    try {
      clipper.ClippedSum(mixes, NormalRows(records, 5), policy);
      ADD_FAILURE() << records;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("mixes the examples of a batch"));
    }
    EXPECT_THROW(clipper.ClippedSum(broken, NormalRows(records, 5), policy), Error) << records;
  }
}

// It mixes its examples where a value is above 5, and draws numbers.
TEST(MadeUpExamples, DecideAlikeWhateverTheRecordsAre) {
  const Task task;
  const FlatClipping policy{ClipNorm(kBound)};
  const LossFunction gated = [&](const Batch& b) {
    const at::Tensor gate = (b[0].amax() > 5).to(at::kFloat);
    return at::matmul(at::dropout(b[0], 0.5, true) - gate * b[0].mean(0), task.w).sum(1);
  };
  for (int run = 0; run < 20; ++run) {
    Batch batch = NormalRows(kBatch, 10 + run);
    if (run % 2 == 1) batch[0][run % kBatch].fill_(40);
    Clipper clipper(task.parameters, {.made_up = NormalRows(18, 3)});
    EXPECT_NO_THROW(clipper.ClippedSum(gated, batch, policy)) << run;
  }
}

// Weights of zero show nothing, so a look is with others. The records then need no look.
TEST(MadeUpExamples, ShowTheRowsOfWeightsThatAreZeroToo) {
  const at::Tensor w = at::full({4, 3}, 0.25).set_requires_grad(true);
  const at::Tensor head = at::zeros({3, 2}).set_requires_grad(true);
  const at::Tensor negative = at::full({2}, -0.0F).set_requires_grad(true);
  int calls = 0;
  const LossFunction loss = [&](const Batch& b) {
    ++calls;
    return at::matmul(at::matmul(b[0], w).tanh(), head).add(negative).square().sub(b[1]).sum(1);
  };
  Batch made_up = NormalRows(18, 3);
  made_up[1] = made_up[1].to(at::kFloat).unsqueeze(1);
  Clipper clipper({{"w", w}, {"head", head}, {"negative", negative}}, {.made_up = made_up});
  const FlatClipping policy{ClipNorm(kBound)};
  clipper.ClippedSum(loss, made_up, policy);
  const auto version = head._version();
  for (const std::int64_t records : {5, 7}) {
    calls = 0;
    Batch batch = NormalRows(records, 5);
    batch[1] = batch[1].to(at::kFloat).unsqueeze(1);
    clipper.ClippedSum(loss, batch, policy);
    EXPECT_EQ(calls, 1) << records;
  }
  EXPECT_EQ(head._version(), version);
  EXPECT_TRUE(head.eq(0).all().item<bool>());
  EXPECT_TRUE(negative.signbit().all().item<bool>());
}

// A look leaves the random numbers of a step as they would be.
TEST(MadeUpExamples, TakeNoRandomNumbers) {
  const Task task;
  const FlatClipping policy{ClipNorm(kBound)};
  const LossFunction loss = [&](const Batch& b) {
    return at::matmul(at::dropout(b[0], 0.5, true), task.w).sum(1);
  };
  const Batch batch = NormalRows(kBatch, 5);
  const auto sum = [&](const GradientOptions& options) {
    at::manual_seed(8);
    return Clipper(task.parameters, options).ClippedSum(loss, batch, policy).gradients[0];
  };
  EXPECT_TRUE(at::equal(sum({}), sum({.made_up = NormalRows(18, 3)})));
}

}  // namespace
}  // namespace sordino
