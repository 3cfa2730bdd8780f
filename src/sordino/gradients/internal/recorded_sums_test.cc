// Recordings that run their operations again when they are replayed: everything but CUDA's part.
#include "sordino/gradients/internal/recorded_sums.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sordino/base/error.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/test_policies.h"

namespace sordino {
namespace {

class RunAgain : public RecordedGraph {
 public:
  explicit RunAgain(std::function<void()> operations) : operations_(std::move(operations)) {}
  void Replay() override { operations_(); }

 private:
  std::function<void()> operations_;
};

class RecordedSumsTest : public testing::Test {
 protected:
  RecordedSumsTest() {
    at::manual_seed(5);
    first_ = at::randn({6, 4}).set_requires_grad(true);
    second_ = at::randn({3, 6}).set_requires_grad(true);
    parameters_ = {{"a.weight", first_}, {"b.weight", second_}};
    loss_ = [this](const Batch& batch) {
      const at::Tensor hidden = at::linear(batch[0], first_).tanh();
      return at::cross_entropy_loss(at::linear(hidden, second_), batch[1], {}, at::Reduction::None);
    };
  }

  Batch MakeBatch(std::int64_t examples) const {
    return {at::randn({examples, 4}), at::randint(0, 3, {examples}, at::kLong)};
  }
  RecordedSums::Recorder Recorder() {
    return [this](const c10::Device&, const std::function<void()>& operations) {
      ++recorded_;
      return std::make_unique<RunAgain>(operations);
    };
  }

  at::Tensor first_;
  at::Tensor second_;
  std::vector<NamedParameter> parameters_;
  LossFunction loss_;
  int recorded_ = 0;
};

void ExpectEqual(const Totals& found, const Totals& expected) {
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  for (std::size_t k = 0; k < found.gradients.size(); ++k) {
    EXPECT_TRUE(found.gradients[k].equal(expected.gradients[k].reshape_as(found.gradients[k])));
  }
  EXPECT_TRUE(found.clipped.equal(expected.clipped));
}

TEST_F(RecordedSumsTest, RecordsWhatComesASecondTime) {
  PartClipper parts(parameters_, {}, {});
  RecordedSums sums(parts, Recorder());
  const FlatClipping policy{ClipNorm(0.5)};
  const Batch batch = MakeBatch(5);
  EXPECT_FALSE(sums.Sum(loss_, batch, policy, 5));
  EXPECT_EQ(recorded_, 0);
  const Totals expected = parts.Sum(loss_, batch, policy);
  const auto found = sums.Sum(loss_, batch, policy, 5);
  EXPECT_EQ(recorded_, 1);
  ASSERT_TRUE(found);
  ExpectEqual(*found, expected);
  EXPECT_TRUE(sums.has_replayed());
}

// Padding changes neither the sum nor what is counted, for every number of examples, also where the
// first example, of which it is made, has no finite gradient.
TEST_F(RecordedSumsTest, PaddingAddsNothing) {
  for (const bool finite : {true, false}) {
    for (std::int64_t examples = 1; examples <= 8; ++examples) {
      PartClipper parts(parameters_, {}, {});
      RecordedSums sums(parts, Recorder());
      const auto policy = NormClipping::Layerwise(parameters_, ClipNorm(0.5));
      Batch batch = MakeBatch(examples);
      if (!finite) batch[0][0][0] = std::numeric_limits<float>::quiet_NaN();
      static_cast<void>(sums.Sum(loss_, batch, policy, 8));
      const Totals expected = parts.Sum(loss_, batch, policy, examples < 8 ? 8 : 0);
      const auto found = sums.Sum(loss_, batch, policy, 8);
      ASSERT_TRUE(found);
      ExpectEqual(*found, expected);
      const Totals exact = parts.Sum(loss_, batch, policy);
      EXPECT_LT((found->gradients[0] - exact.gradients[0]).abs().max().item<double>(), 1e-6);
    }
  }
}

TEST_F(RecordedSumsTest, AreForOneLossPolicySizeAndMemory) {
  PartClipper parts(parameters_, {}, {});
  RecordedSums sums(parts, Recorder());
  const FlatClipping policy{ClipNorm(0.5)};
  const Batch batch = MakeBatch(5);
  static_cast<void>(sums.Sum(loss_, batch, policy, 5));
  static_cast<void>(parts.Sum(loss_, batch, policy));
  ASSERT_TRUE(sums.Sum(loss_, batch, policy, 5));
  ASSERT_EQ(recorded_, 1);
  // Each is compared with the recording, which the last use keeps from being dropped.
  const auto is_another = [&](const LossFunction& loss, const Batch& of, const ClippingPolicy& by,
                              std::int64_t size) {
    const bool replayed = sums.Sum(loss, of, by, size).has_value();
    EXPECT_TRUE(sums.Sum(loss_, batch, policy, 5));
    return !replayed;
  };
  const LossFunction other = loss_;
  EXPECT_TRUE(is_another(other, batch, policy, 5));
  EXPECT_TRUE(is_another(loss_, batch, FlatClipping(ClipNorm(0.25)), 5));
  EXPECT_TRUE(is_another(loss_, batch, SteepClipping(ClipNorm(0.5), 0.01), 5));
  EXPECT_TRUE(is_another(loss_, {batch[0].to(at::kDouble), batch[1]}, policy, 5));
  EXPECT_TRUE(is_another(loss_, batch, policy, 6));
  first_.set_data(first_.detach().clone());
  EXPECT_FALSE(sums.Sum(loss_, batch, policy, 5));
  EXPECT_EQ(recorded_, 1);
}

// Copies: the next replay writes over the outputs of the last one.
TEST_F(RecordedSumsTest, ResultsAreCopies) {
  PartClipper parts(parameters_, {}, {});
  RecordedSums sums(parts, Recorder());
  const FlatClipping policy{ClipNorm(0.5)};
  const Batch batch = MakeBatch(5);
  static_cast<void>(sums.Sum(loss_, batch, policy, 5));
  static_cast<void>(parts.Sum(loss_, batch, policy));
  const auto first = sums.Sum(loss_, batch, policy, 5);
  const auto second = sums.Sum(loss_, batch, policy, 5);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->gradients[0].const_data_ptr(), second->gradients[0].const_data_ptr());
}

// Totals that are lent are not written over while somebody has them, whatever part of them it is.
TEST_F(RecordedSumsTest, WhatIsHeldIsNotReplayedOver) {
  const FlatClipping policy{ClipNorm(0.5)};
  const Batch batch = MakeBatch(5);
  for (const int kept : {0, 1, 2, 3}) {
    PartClipper parts(parameters_, {}, {});
    RecordedSums sums(parts, Recorder());
    static_cast<void>(sums.Sum(loss_, batch, policy, 5));
    static_cast<void>(parts.Sum(loss_, batch, policy));
    // Nothing is held: lent again and again.
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(sums.Sum(loss_, batch, policy, 5, true));
    at::Tensor held;
    {
      const auto lent = sums.Sum(loss_, batch, policy, 5, true);
      ASSERT_TRUE(lent);
      held = kept == 0   ? lent->gradients[0]
             : kept == 1 ? lent->gradients[1].t()
             : kept == 2 ? lent->clipped
                         : lent->gradients[0].detach();
    }
    EXPECT_FALSE(sums.Sum(loss_, batch, policy, 5, true)) << kept;
    // From now on copies, of a recording that has other memory.
    EXPECT_FALSE(sums.Sum(loss_, batch, policy, 5, true)) << kept;
    const auto first = sums.Sum(loss_, batch, policy, 5, true);
    const auto second = sums.Sum(loss_, batch, policy, 5, true);
    EXPECT_TRUE(first && second) << kept;
  }
}

// What the caller did wrong is told, and no reason against recordings.
TEST_F(RecordedSumsTest, PassesOnMistakesOfTheCaller) {
  PartClipper parts(parameters_, {}, {});
  RecordedSums sums(
      parts,
      [&](const c10::Device&, const std::function<void()>&) -> std::unique_ptr<RecordedGraph> {
        throw Error("the losses are none.");
      });
  const FlatClipping policy{ClipNorm(0.5)};
  const Batch batch = MakeBatch(5);
  EXPECT_FALSE(sums.Sum(loss_, batch, policy, 5));
  EXPECT_THROW(sums.Sum(loss_, batch, policy, 5), Error);
  EXPECT_EQ(sums.problem(), "");
}

TEST_F(RecordedSumsTest, GivesUpAfterFailures) {
  PartClipper parts(parameters_, {}, {});
  int tries = 0;
  RecordedSums sums(
      parts,
      [&](const c10::Device&, const std::function<void()>&) -> std::unique_ptr<RecordedGraph> {
        ++tries;
        throw std::runtime_error("operation not permitted when stream is capturing");
      });
  const FlatClipping policy{ClipNorm(0.5)};
  const Batch batch = MakeBatch(5);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(sums.Sum(loss_, batch, policy, 5));
  EXPECT_EQ(tries, 3);
  EXPECT_NE(sums.problem().find("cannot be recorded"), std::string::npos);
}

TEST_F(RecordedSumsTest, ACpuCannotBeAskedForThem) {
  EXPECT_THROW(Clipper(parameters_, {.graph = GraphUse::kOn}), Error);
  const Clipper clipper(parameters_, {.graph = GraphUse::kAutomatic});
  EXPECT_EQ(clipper.GraphStatus(), "not available");
}

}  // namespace
}  // namespace sordino
