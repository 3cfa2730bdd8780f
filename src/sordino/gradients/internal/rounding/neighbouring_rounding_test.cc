// Batches that differ by one record, with data that is chosen to round badly: nothing that a record
// does to the arithmetic may move the sum by more than the sensitivity.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/internal/convolution/convolution_gradients.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/terms/broadcast.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"
#include "sordino/gradients/testing/test_policies.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

double NormOfFirst(const BoundedSum& sum) {
  return sum.gradients[0].to(at::kDouble).norm().item<double>();
}

// Numbers whose sum is lost in that of their absolute values: in another order it is another one.
at::Tensor NumbersThatCancel(std::int64_t count, std::uint64_t seed) {
  at::manual_seed(seed);
  at::Tensor numbers = at::randn({count}) * 1e6;
  numbers[count - 1] = 0;
  numbers[count - 1] = -numbers.sum(at::kDouble).to(at::kFloat);
  return numbers;
}

// A batch that is stored step by step, so that the examples lie after each other in memory: a
// reduction of libtorch adds up its last columns in another order.
TEST(NeighbouringRounding, SumsOfOthersDoNotChangeWithTheBatch) {
  constexpr std::int64_t kSteps = 64;
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor bias = m.Parameter("bias", {1}, 0, 0);
        return [=](const Batch& b) { return ((b[0] + bias) * b[1]).sum(1); };
      },
      at::kFloat);
  for (const std::int64_t examples : {3, 15, 31}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const at::Tensor numbers = NumbersThatCancel(kSteps, seed);
      const auto sum = [&](std::int64_t count) {
        const at::Tensor steps = numbers.unsqueeze(1).expand({kSteps, count}).contiguous();
        Clipper clipper(model.parameters, {.checked_examples = 0}, {});
        return clipper.ClippedSum(model.loss, {at::zeros({kSteps, count}).t(), steps.t()},
                                  FlatClipping(ClipNorm(1)));
      };
      const BoundedSum many = sum(examples + 1);
      const at::Tensor difference = many.gradients[0] - sum(examples).gradients[0];
      EXPECT_LE(difference.norm().item<double>(), many.sensitivity.value())
          << examples << " examples, seed " << seed;
    }
  }
}

TEST(NeighbouringRounding, TheSumOfAnExampleIsThatOfItsRowsAlone) {
  constexpr std::int64_t kSteps = 50;
  for (const std::int64_t width : {1, 3, 16}) {
    const at::Tensor own = NumbersThatCancel(kSteps * width, 7).view({kSteps, width});
    const at::Tensor exact = own.sum(0, /*keepdim=*/false, at::kDouble);
    at::Tensor first;
    for (const std::int64_t examples : {2, 3, 15, 16, 33}) {
      const at::Tensor all = own.unsqueeze(0).expand({examples, kSteps, width});
      const std::vector<at::Tensor> found = {
          ExampleSums(all.reshape({-1, width}), {1, examples, kSteps}),
          ReducePerExample(all, {examples, kSteps, width}, {1, width},
                           {1, examples, kSteps * width}),
          ReducePerExample(all.transpose(0, 1).contiguous().transpose(0, 1),
                           {examples, kSteps, width}, {1, width}, {1, examples, kSteps * width})};
      for (const at::Tensor& sums : found) {
        ASSERT_EQ(sums.sizes(), at::IntArrayRef({examples, width}));
        if (!first.defined()) first = sums[0].clone();
        for (std::int64_t k = 0; k < examples; ++k) EXPECT_TRUE(at::equal(sums[k], first));
      }
      // Rows step by step: the same order, if not the lanes of a single column.
      const at::Tensor by_step =
          ExampleSums(all.transpose(0, 1).reshape({-1, width}), {kSteps, examples, 1});
      for (std::int64_t k = 1; k < examples; ++k) {
        EXPECT_TRUE(at::equal(by_step[k], by_step[0]));
      }
      EXPECT_TRUE(at::allclose(by_step[0].to(at::kDouble), exact, 1e-7, 1e-6));
    }
    EXPECT_TRUE(at::allclose(first.to(at::kDouble), exact, 1e-7, 1e-6));
  }
}

// What is computed in float32 is planned as such, whatever the parameter is.
TEST(NeighbouringRounding, Float64ParametersMayBeUsedInFloat32) {
  constexpr std::int64_t kWidth = 64;
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {kWidth, kWidth});
        return [=](const Batch& b) {
          return (at::linear(b[0], w.to(at::kFloat)) * b[1]).sum(at::IntArrayRef{1, 2});
        };
      },
      at::kDouble);
  at::manual_seed(5);
  const auto direction = [](double length) {
    const at::Tensor vector = at::randn({kWidth});
    return vector / vector.norm() * length;
  };
  for (int trial = 0; trial < 20; ++trial) {
    // Two rows that cancel but for a small part.
    constexpr double kLength = 724;
    at::Tensor a = at::zeros({2, 2, kWidth});
    at::Tensor b = at::zeros({2, 2, kWidth});
    a[0][0] = direction(kLength);
    b[0][0] = direction(kLength);
    a[0][1] = -a[0][0];
    b[0][1] = b[0][0] + direction(100 / kLength);
    Clipper clipper(model.parameters, {.norms = NormMethod::kGhost, .checked_examples = 0}, {});
    const BoundedSum sum = clipper.ClippedSum(model.loss, {a, b}, FlatClipping(ClipNorm(1)));
    EXPECT_LE(NormOfFirst(sum), sum.sensitivity.value());
  }
}

// A policy with larger factors may let more underflow through, and is planned for itself.
TEST(NeighbouringRounding, APlanIsOfItsPolicy) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {1, 4000});
        return [=](const Batch& b) { return (at::linear(b[0], w) * b[1]).sum(1); };
      },
      at::kFloat);
  // Squares of the inputs are 0 in float32.
  const Batch batch = {at::full({2, 4000}, 2e-23F), at::tensor({0x1p35F, 0.0F}).unsqueeze(1)};
  Clipper clipper(model.parameters, {.norms = NormMethod::kGhost, .checked_examples = 0}, {});
  EXPECT_NO_THROW(clipper.ClippedSum(model.loss, batch, FlatClipping(ClipNorm(1))));
  EXPECT_THROW(clipper.ClippedSum(model.loss, batch, SteepClipping(ClipNorm(1), 1e-12)), Error);
}

TEST(LargestFactor, IsThatOfANormOfZero) {
  EXPECT_EQ(FlatClipping(ClipNorm(3)).LargestFactor(), 1);
  EXPECT_NEAR(SteepClipping(ClipNorm(3), 0.01).LargestFactor(), 300, 1e-9);
}

// A record that does not pass a check ends the run; it does not change how others are clipped.
TEST(NeighbouringRounding, ARecordDoesNotChooseTheFallback) {
  constexpr std::int64_t kRowsOfRecord = 32;
  constexpr std::int64_t kWidth = 8;
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {kWidth, kWidth});
        return [=](const Batch& b) {
          return (at::linear(b[0], w) * b[1]).sum(at::IntArrayRef{1, 2});
        };
      },
      at::kFloat);
  at::manual_seed(4);
  at::Tensor a = at::ones({6, kRowsOfRecord, kWidth});
  at::Tensor b = at::zeros({6, kRowsOfRecord, kWidth});
  // Its rows cancel exactly, and what is left is what float32 products lose.
  a[0] = at::randn({kRowsOfRecord, kWidth}) * 1e4;
  b[0] = at::randn({kRowsOfRecord, kWidth}) * 1e4;
  const std::int64_t others = kRowsOfRecord - kWidth;
  const at::Tensor gradient = at::mm(a[0].to(at::kDouble).narrow(0, kWidth, others).t(),
                                     b[0].to(at::kDouble).narrow(0, kWidth, others));
  a[0].narrow(0, 0, kWidth).copy_(at::eye(kWidth));
  b[0].narrow(0, 0, kWidth).copy_(-gradient);
  Clipper clipper(model.parameters, {.norms = NormMethod::kGhost, .fallback = true}, {});
  EXPECT_THROW(clipper.ClippedSum(model.loss, {a, b}, FlatClipping(ClipNorm(1))), Error);
}

// A dilated kernel may meet one pixel in every entry.
TEST(AbsoluteMass, CountsTheColumnsOfADilatedConvolution) {
  for (const std::int64_t kernel : {2, 3, 7}) {
    for (const std::int64_t dilation : {std::int64_t{1}, std::int64_t{2}, kernel}) {
      for (const bool transposed : {false, true}) {
        constexpr std::int64_t kOutputs = 12;
        const std::int64_t stride = kernel;
        const std::int64_t side = (kOutputs - 1) * stride + (kernel - 1) * dilation + 1;
        // Pixels where the windows begin, which are those that most of them share.
        at::Tensor image = at::zeros({1, 1, side, side});
        image.slice(2, 0, side, stride).slice(3, 0, side, stride).fill_(1);
        const at::Tensor signal = at::ones({1, 1, kOutputs, kOutputs});
        Term term{.kind = TermKind::kConvolution,
                  .a = transposed ? signal : image,
                  .b = transposed ? image : signal,
                  .layout = {1, 1, 1},
                  .sizes = {1, 1, kernel, kernel}};
        term.convolution = {{1, 1, kernel, kernel}, {stride, stride}, {0, 0},
                            {dilation, dilation},   transposed,       1};
        const at::Tensor columns = image.unfold(2, (kernel - 1) * dilation + 1, stride)
                                       .unfold(3, (kernel - 1) * dilation + 1, stride)
                                       .slice(4, 0, std::nullopt, dilation)
                                       .slice(5, 0, std::nullopt, dilation);
        const double mass = columns.flatten(4).norm(2, {4}).sum().item<double>();
        EXPECT_GE(AbsoluteMass(term).item<double>() * (1 + 1e-5), mass)
            << kernel << " " << dilation << " " << transposed;
      }
    }
  }
}

// As many additions as sum_plan.h counts, also where float64 products of examples are not told
// apart.
TEST(WideSums, OfConvolutionsAreInShortRuns) {
  constexpr std::int64_t kImages = 8192;
  constexpr std::int64_t kSide = 16;
  const Convolution convolution{{2, 1, 1, 1}, {1, 1}, {0, 0}, {1, 1}, false, 2};
  const auto options = at::TensorOptions(at::kDouble);
  for (const double term : {1.0 / 3, 0.1, 1.0 + 1e-9}) {
    const std::vector<std::int64_t> sizes = {kImages, 2, kSide, kSide};
    const at::Tensor sum = WeightedConvolutionGradient(
        convolution, at::full({1, 2, kSide, kSide}, term, options).expand(sizes),
        at::ones({1, 2, kSide, kSide}, options).expand(sizes), {1, kImages, 1},
        at::ones({kImages}, options), /*wide=*/true);
    const double exact = term * static_cast<double>(kImages * kSide * kSide);
    EXPECT_NEAR(sum.flatten()[0].item<double>(), exact,
                Gamma(kSide * kSide + 1024 + 8192, kFloat64Roundoff) * exact)
        << term;
  }
}

}  // namespace
}  // namespace sordino
