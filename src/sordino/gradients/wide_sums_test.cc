// Sums of batches that are too large for float32, against exact arithmetic.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/internal/rounding/sum_plan.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

constexpr std::int64_t kLargest = 60'000;

// Multiples of 2^-bits in [0, 1). Gradients of one example are products of two such numbers, or
// short sums of these, and exact in float32. Sums of thousands are not, but in float64.
at::Tensor Exact(at::IntArrayRef sizes, int bits = 8) {
  const std::int64_t steps = std::int64_t{1} << bits;
  return at::randint(0, steps, sizes, at::TensorOptions(at::kDouble)).div(steps);
}

// Losses that are linear in the parameters, each use of another form.
struct ExactModel {
  std::string name;
  ModelFunction function;
  std::vector<at::Tensor> (*inputs)(std::int64_t examples);
};

std::vector<ExactModel> ExactModels() {
  return {
      {"one row",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {3, 4});
         const at::Tensor bias = m.Parameter("b", {3});
         return [=](const Batch& b) { return (at::linear(b[0], w, bias) * b[1]).sum(1); };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 4}), Exact({n, 3}, 15)};
       }},
      {"several rows",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {3, 4});
         return [=](const Batch& b) {
           return (at::linear(b[0], w) * b[1]).sum(at::IntArrayRef{1, 2});
         };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 5, 4}), Exact({n, 5, 3})};
       }},
      {"transposed",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {4, 3});
         return [=](const Batch& b) { return (at::linear(b[0], w.t()) * b[1]).sum(1); };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 4}), Exact({n, 3})};
       }},
      {"a slice",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {8, 4});
         return [=](const Batch& b) {
           return (at::linear(b[0], w.slice(0, 2, 5)) * b[1]).sum(1) +
                  (at::linear(b[0], w.slice(0, 5, 8)) * b[1]).sum(1);
         };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 4}), Exact({n, 3})};
       }},
      {"elements",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {4});
         return [=](const Batch& b) { return (b[0] * w * b[1]).sum(1); };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 4}), Exact({n, 4})};
       }},
      {"a lookup",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {2, 4});
         return [=](const Batch& b) {
           return (at::embedding(w, b[0]) * b[1]).sum(at::IntArrayRef{1, 2});
         };
       },
       [](std::int64_t n) {
         return std::vector{at::randint(0, 2, {n, 3}, at::TensorOptions(at::kLong)),
                            Exact({n, 3, 4}, 20)};
       }},
      {"a convolution",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {3, 2, 3, 3});
         return [=](const Batch& b) {
           return (at::conv2d(b[0], w) * b[1]).sum(at::IntArrayRef{1, 2, 3});
         };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 2, 5, 5}), Exact({n, 3, 3, 3})};
       }},
      {"a tensor made of a parameter",
       [](ModelMaker& m) {
         const at::Tensor w = m.Parameter("w", {3, 4});
         return [=](const Batch& b) { return (at::linear(b[0], 2 * w) * b[1]).sum(1); };
       },
       [](std::int64_t n) {
         return std::vector{Exact({n, 4}), Exact({n, 3})};
       }},
  };
}

Batch InType(const Batch& batch, at::ScalarType type) {
  Batch result;
  for (const at::Tensor& tensor : batch) {
    result.push_back(tensor.is_floating_point() ? tensor.to(type) : tensor);
  }
  return result;
}

// By ordinary autograd in float64, in which every operation on these numbers is exact.
std::vector<at::Tensor> ExactSums(const ExactModel& model, const Batch& batch) {
  const TestModel wide = MakeModel(model.function, at::kDouble);
  std::vector<at::Tensor> parameters;
  for (const NamedParameter& parameter : wide.parameters) parameters.push_back(parameter.value);
  return torch::autograd::grad({wide.loss(InType(batch, at::kDouble)).sum()}, parameters);
}

// Every example is within the bound: the sum is exact if nothing that it passes through is rounded.
void ExpectExact(const ExactModel& model, const Batch& batch, GradientOptions options,
                 at::ScalarType type) {
  const TestModel own = MakeModel(model.function, type);
  Clipper clipper(own.parameters, options, {.largest_batch = kLargest});
  const BoundedSum sum =
      clipper.ClippedSum(own.loss, InType(batch, type), FlatClipping(ClipNorm(1000)));
  const std::vector<at::Tensor> exact = ExactSums(model, batch);
  ASSERT_EQ(sum.gradients.size(), exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k) {
    // Else float32 would do, and nothing would be shown.
    EXPECT_FALSE(at::equal(exact[k].to(at::kFloat).to(at::kDouble), exact[k])) << model.name;
    EXPECT_EQ(sum.gradients[k].scalar_type(), at::kDouble) << model.name;
    EXPECT_EQ(sum.noised_types[k], type) << model.name;
    EXPECT_TRUE(at::equal(sum.gradients[k], exact[k])) << model.name << " parameter " << k;
  }
}

TEST(WideSums, AreExactInEveryForm) {
  at::manual_seed(5);
  for (const ExactModel& model : ExactModels()) {
    const Batch batch = model.inputs(5000);
    for (const NormMethod method :
         {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
      ExpectExact(model, batch, {.norms = method}, at::kFloat);
    }
    ExpectExact(model, batch, {.physical_batch = 128}, at::kFloat);
    ExpectExact(model, batch, {}, at::kDouble);
  }
}

TEST(WideSums, AreExactExampleByExample) {
  at::manual_seed(6);
  const ExactModel model = ExactModels().front();
  ExpectExact(model, model.inputs(1500), {.norms = NormMethod::kLoop}, at::kFloat);
}

TEST(WideSums, AreZerosOfTheirTypeForAnEmptyBatch) {
  const ExactModel model = ExactModels().front();
  const TestModel own = MakeModel(model.function, at::kFloat);
  Clipper clipper(own.parameters, {}, {.largest_batch = kLargest});
  const BoundedSum sum =
      clipper.ClippedSum(own.loss, InType(model.inputs(0), at::kFloat), FlatClipping(ClipNorm(1)));
  EXPECT_EQ(sum.gradients[0].scalar_type(), at::kDouble);
  EXPECT_EQ(sum.noised_types[0], at::kFloat);
}

TEST(WideSums, SmallBatchesHaveSumsOfTheTypeOfTheirParameters) {
  at::manual_seed(7);
  const ExactModel model = ExactModels().front();
  const TestModel own = MakeModel(model.function, at::kFloat);
  for (const std::int64_t largest : {std::int64_t{4096}, kUnitsOfPart}) {
    Clipper clipper(own.parameters, {}, {.largest_batch = largest});
    const BoundedSum sum = clipper.ClippedSum(own.loss, InType(model.inputs(100), at::kFloat),
                                              FlatClipping(ClipNorm(1)));
    EXPECT_EQ(sum.gradients[0].scalar_type(), at::kFloat);
  }
}

// 60,001 clipped examples that all point the same way. The sum of a batch is that of its examples,
// each as it is clipped alone, and one more moves it by no more than the bound: far within the
// share that is declared. A float32 sum of the same numbers moves by more.
TEST(WideSums, OneOfSixtyThousandMovesTheSumByItsBound) {
  constexpr double kBound = 0.7;
  constexpr std::int64_t kExamples = 60'001;
  const ExactModel model = ExactModels().front();
  const TestModel own = MakeModel(model.function, at::kFloat);
  const Batch one = {at::tensor({0.3F, 0.7F, 1.1F, 0.9F}).unsqueeze(0),
                     at::tensor({1.3F, 0.1F, 0.77F}).unsqueeze(0)};
  const auto copies = [&](std::int64_t count) {
    return Batch{one[0].expand({count, -1}).contiguous(), one[1].expand({count, -1}).contiguous()};
  };
  Clipper clipper(own.parameters, {}, {.largest_batch = 2 * kExamples});
  const FlatClipping policy{ClipNorm(kBound)};
  const BoundedSum alone = clipper.ClippedSum(own.loss, copies(1), policy);
  const BoundedSum all = clipper.ClippedSum(own.loss, copies(kExamples), policy);
  const BoundedSum fewer = clipper.ClippedSum(own.loss, copies(kExamples - 1), policy);
  EXPECT_EQ(all.sensitivity.value(), fewer.sensitivity.value());
  EXPECT_LE(all.sensitivity.value(), 1.0100001 * kBound);

  EXPECT_NEAR(NormOf(alone.gradients), kBound, 1e-6 * kBound);
  EXPECT_NEAR(Distance(all.gradients, fewer.gradients), kBound, 1e-6 * kBound);
  double rest = 0;
  double in_float32 = 0;
  for (std::size_t k = 0; k < all.gradients.size(); ++k) {
    const at::Tensor exact = alone.gradients[k] * static_cast<double>(kExamples);
    rest += (all.gradients[k] - exact).square().sum().item<double>();
    const at::Tensor term = alone.gradients[k].to(at::kFloat);
    at::Tensor running = at::zeros_like(term);
    for (std::int64_t i = 0; i < kExamples; ++i) running.add_(term);
    in_float32 += (running.to(at::kDouble) - term.to(at::kDouble) * static_cast<double>(kExamples))
                      .square()
                      .sum()
                      .item<double>();
  }
  EXPECT_LE(std::sqrt(rest), 1e-6 * kBound);
  EXPECT_GT(std::sqrt(in_float32), 0.05 * kBound);
}

// Rows of one example that cancel: its gradient is small and is not clipped, and the rows must not
// reach the sum of the others one by one, which would be lost under them.
TEST(LookupWeightedSum, RowsThatCancelLeaveTheSumOfOthersAlone) {
  LookupRows lookup;
  lookup.index = at::zeros({6}, at::TensorOptions(at::kLong));
  lookup.gradient = at::tensor({0.1F, 0.2F, 1e30F, -1e30F, 0.3F, 0.4F}).unsqueeze(1);
  lookup.vocabulary = 1;
  const at::Tensor factors = at::ones({3}, at::TensorOptions(at::kDouble));
  const auto expect = [&](const LookupRows& rows) {
    for (const bool wide : {false, true}) {
      const at::Tensor sum = LookupWeightedSum(rows, factors, wide);
      EXPECT_EQ(sum.scalar_type(), wide ? at::kDouble : at::kFloat);
      EXPECT_NEAR(sum.item<double>(), 1.0, 1e-6);
    }
  };
  lookup.layout = {1, 3, 2};
  expect(lookup);
  lookup.owners = at::tensor({0, 0, 1, 1, 2, 2}, at::TensorOptions(at::kLong));
  expect(lookup);
  LookupRows interleaved = lookup;
  interleaved.owners = at::Tensor();
  interleaved.layout = {2, 3, 1};
  interleaved.gradient = at::tensor({0.1F, 1e30F, 0.3F, 0.2F, -1e30F, 0.4F}).unsqueeze(1);
  expect(interleaved);
}

}  // namespace
}  // namespace sordino
