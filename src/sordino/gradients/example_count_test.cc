#include "sordino/gradients/example_count.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "sordino/base/error.h"

namespace sordino {
namespace {

std::int64_t Count(const LossFunction& indicator, const Batch& batch, bool one_by_one = false) {
  return CountExamples(indicator, batch, one_by_one).RevealForAudit();
}

TEST(ExampleCount, CountsWhatIsAboveOneHalf) {
  const Batch batch = {
      at::tensor({0.0, 0.5, 0.51, 1.0, 7.0, -3.0, std::numeric_limits<double>::quiet_NaN(),
                  std::numeric_limits<double>::infinity()})};
  const LossFunction value = [](const Batch& part) { return part[0]; };
  EXPECT_EQ(Count(value, batch), 4);
  EXPECT_EQ(Count(value, batch, true), 4);
  EXPECT_EQ(Count(value, {at::zeros({0})}), 0);
}

// Of random linear classifiers on random examples, with every example left out in turn.
TEST(ExampleCount, OneExampleChangesItByItsOwnIndicator) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 10; ++trial) {
    at::Tensor inputs = at::empty({20, 3}, at::kFloat);
    at::Tensor weights = at::empty({3, 4}, at::kFloat);
    for (at::Tensor* tensor : {&inputs, &weights}) {
      auto* const values = tensor->mutable_data_ptr<float>();
      for (std::int64_t i = 0; i < tensor->numel(); ++i) values[i] = normal(random);
    }
    const at::Tensor labels = at::arange(20, at::kLong).remainder(4);
    const LossFunction right = [&](const Batch& part) {
      return at::matmul(part[0], weights).argmax(1).eq(part[1]).to(at::kFloat);
    };
    const std::int64_t whole = Count(right, {inputs, labels});
    const at::Tensor own = at::matmul(inputs, weights).argmax(1).eq(labels);
    EXPECT_EQ(whole, own.sum().item<std::int64_t>());
    for (std::int64_t left_out = 0; left_out < 20; ++left_out) {
      const at::Tensor rest = at::arange(20, at::kLong).ne(left_out).nonzero().squeeze(1);
      EXPECT_EQ(whole - Count(right, {inputs.index_select(0, rest), labels.index_select(0, rest)}),
                own[left_out].item<bool>() ? 1 : 0);
    }
  }
}

TEST(ExampleCount, AnExampleThatFailsIsNotCountedWhereErrorsAreHidden) {
  const at::Tensor table = at::ones({4});
  const LossFunction looks_up = [&](const Batch& part) {
    return at::index_select(table, 0, part[0]);
  };
  const Batch batch = {at::tensor({0, 3, 9, 1}, at::kLong)};
  EXPECT_EQ(CountExamples(looks_up, batch, false, /*hide_errors=*/true).RevealForNoise(), 3);
  EXPECT_THROW(CountExamples(looks_up, batch, false), Error);
}

// A model that looks at the whole batch, or that keeps what it saw.
TEST(ExampleCount, NoExampleReachesAnother) {
  const at::Tensor inputs = at::arange(8, at::kFloat);
  // Above 1/2 for all, if one of them is large.
  const LossFunction mixes = [](const Batch& part) { return part[0].max().expand_as(part[0]); };
  EXPECT_EQ(Count(mixes, {inputs}), 7);  // each sees itself alone
  at::Tensor kept;
  const LossFunction keeps = [&](const Batch& part) {
    at::Tensor value = kept.defined() ? part[0] + kept : part[0];
    kept = part[0];
    return value;
  };
  EXPECT_EQ(Count(keeps, {inputs}), 7);
  EXPECT_THROW(Count(keeps, {inputs}), Error);
}

}  // namespace
}  // namespace sordino
