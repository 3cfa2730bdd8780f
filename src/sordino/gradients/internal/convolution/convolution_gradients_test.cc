#include "sordino/gradients/internal/convolution/convolution_gradients.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_cpu.h"
#include "sordino/gradients/internal/convolution/convolution_device.h"
#include "sordino/gradients/internal/convolution/convolution_gram.h"
#include "sordino/gradients/internal/convolution/convolution_products.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Case {
  std::string name;
  Convolution convolution;
  Sizes input;  // spatial sizes
  Sizes output_padding = {};
  ExampleLayout layout = {1, 3, 1};
};

enum class Strides { kContiguous, kChannelsLast, kEverySecond, kExpanded };

struct Operands {
  Case test;
  at::Tensor input;
  at::Tensor output_gradient;
};

std::int64_t InputChannels(const Convolution& c) {
  return c.transposed ? c.weight[0] : c.weight[1] * c.groups;
}

// Random values in the given memory order.
at::Tensor Random(Sizes sizes, at::ScalarType type, Strides strides, at::Generator& generator) {
  if (strides == Strides::kEverySecond) sizes.back() *= 2;
  if (strides == Strides::kExpanded) sizes[0] = 1;
  at::Tensor values = at::randn(sizes, generator, at::kDouble).to(type);
  if (strides == Strides::kEverySecond) values = values.slice(-1, 0, sizes.back(), 2);
  if (strides == Strides::kChannelsLast) {
    values = values.movedim(1, -1).contiguous().movedim(-1, 1);
  }
  return values;
}

Operands Make(const Case& test, at::ScalarType type, Strides strides = Strides::kContiguous) {
  // A copy is made: the same case gives the same values.
  at::Generator generator = at::detail::createCPUGenerator(7);
  const Convolution& c = test.convolution;
  Sizes sizes = {std::max<std::int64_t>(1, test.layout.rows()), InputChannels(c)};
  sizes.insert(sizes.end(), test.input.begin(), test.input.end());
  const Sizes padding =
      test.output_padding.empty() ? Sizes(test.input.size(), 0) : test.output_padding;
  const at::Tensor output = at::convolution(at::zeros(sizes), at::zeros(c.weight), {}, c.stride,
                                            c.padding, c.dilation, c.transposed, padding, c.groups);
  Operands operands{test, Random(sizes, type, strides, generator),
                    Random(output.sizes().vec(), type, strides, generator)};
  const std::int64_t images = test.layout.rows();
  if (strides == Strides::kExpanded) {
    sizes[0] = images;
    operands.input = operands.input.expand(sizes);
    Sizes output_sizes = output.sizes().vec();
    output_sizes[0] = images;
    operands.output_gradient = operands.output_gradient.expand(output_sizes);
  } else {
    operands.input = operands.input.narrow(0, 0, images);
    operands.output_gradient = operands.output_gradient.narrow(0, 0, images);
  }
  return operands;
}

// The gradient of one example by libtorch, in float64.
at::Tensor ExampleGradient(const Operands& operands, std::int64_t example) {
  const Convolution& c = operands.test.convolution;
  const ExampleLayout& layout = operands.test.layout;
  const auto of_example = [&](const at::Tensor& all) {
    return all.unflatten(0, {layout.outer, layout.examples, layout.inner})
        .select(1, example)
        .flatten(0, 1)
        .to(at::kDouble)
        .contiguous();
  };
  const Sizes padding = operands.test.output_padding.empty() ? Sizes(operands.test.input.size(), 0)
                                                             : operands.test.output_padding;
  return std::get<1>(at::convolution_backward(
      of_example(operands.output_gradient), of_example(operands.input),
      at::zeros(c.weight, at::kDouble), at::OptionalIntArrayRef(), c.stride, c.padding, c.dilation,
      c.transposed, padding, c.groups, {false, true, false}));
}

at::Tensor ReferenceGradients(const Operands& operands) {
  Sizes sizes = operands.test.convolution.weight;
  sizes.insert(sizes.begin(), 0);
  std::vector<at::Tensor> gradients = {at::empty(sizes, at::kDouble)};
  for (std::int64_t i = 0; i < operands.test.layout.examples; ++i) {
    gradients.push_back(ExampleGradient(operands, i).unsqueeze(0));
  }
  return at::cat(gradients);
}

double Tolerance(at::ScalarType type) { return type == at::kDouble ? 1e-12 : 1e-5; }

at::Tensor SquaredNormsOf(const at::Tensor& gradients) {
  return gradients.to(at::kDouble).flatten(1).square().sum(1);
}

// Example by example, || ours - reference || <= tolerance * || reference ||.
void ExpectNear(const at::Tensor& ours, const at::Tensor& reference, double tolerance) {
  ASSERT_EQ(ours.sizes(), reference.sizes());
  for (std::int64_t i = 0; i < reference.size(0); ++i) {
    const double error = (ours[i].to(at::kDouble) - reference[i]).norm().item<double>();
    EXPECT_LE(error, tolerance * reference[i].norm().item<double>()) << "example " << i;
  }
}

// Entry by entry, relative.
void ExpectNormsNear(const at::Tensor& ours, const at::Tensor& reference, double tolerance) {
  ASSERT_EQ(ours.sizes(), reference.sizes());
  for (std::int64_t i = 0; i < reference.size(0); ++i) {
    const double expected = reference[i].item<double>();
    EXPECT_NEAR(ours[i].item<double>(), expected, 2 * tolerance * expected) << "example " << i;
  }
}

ConvolutionOperands Internal(const Operands& operands) {
  return MakeOperands(operands.test.convolution, operands.input, operands.output_gradient,
                      operands.test.layout);
}

at::Tensor Factors(std::int64_t examples) {
  at::Generator generator = at::detail::createCPUGenerator(11);
  at::Tensor factors = at::rand({examples}, generator, at::kDouble);
  if (examples > 1) factors[1].zero_();
  return factors;
}

at::Tensor WeightedReference(const at::Tensor& gradients, const at::Tensor& factors) {
  Sizes sizes(static_cast<std::size_t>(gradients.dim()), 1);
  sizes[0] = gradients.size(0);
  return (gradients * factors.view(sizes)).sum({0});
}

// All that this module computes, on both paths, against the loop.
void ExpectAllMatchTheLoop(const Operands& operands) {
  const at::ScalarType type = operands.input.scalar_type();
  const double tolerance = Tolerance(type);
  const Convolution& c = operands.test.convolution;
  const ExampleLayout& layout = operands.test.layout;
  const at::Tensor reference = ReferenceGradients(operands);
  const at::Tensor norms = SquaredNormsOf(reference);
  const at::Tensor factors = Factors(layout.examples);
  const at::Tensor sum = WeightedReference(reference, factors);
  const at::ScalarType result_type = type == at::kDouble ? at::kDouble : at::kFloat;
  {
    SCOPED_TRACE("CPU path");
    const at::Tensor squared = at::zeros({layout.examples}, at::kDouble);
    const at::Tensor gradients =
        ConvolutionGradients(c, operands.input, operands.output_gradient, layout, squared);
    EXPECT_EQ(gradients.scalar_type(), result_type);
    ExpectNear(gradients, reference, tolerance);
    ExpectNormsNear(squared, norms, tolerance);
    AddConvolutionSquaredNorms(c, operands.input, operands.output_gradient, layout, squared);
    ExpectNormsNear(squared, 2 * norms, tolerance);
    const at::Tensor ours =
        WeightedConvolutionGradient(c, operands.input, operands.output_gradient, layout, factors);
    EXPECT_EQ(ours.scalar_type(), result_type);
    ExpectNear(ours.unsqueeze(0), sum.unsqueeze(0), tolerance);
  }
  {
    SCOPED_TRACE("path of other devices");
    const ConvolutionOperands internal = Internal(operands);
    // As small as to cut the batch into slices.
    for (const std::int64_t bytes : {std::int64_t{1} << 12, kDeviceBytes}) {
      const at::Tensor squared = at::zeros({layout.examples}, at::kDouble);
      const at::Tensor gradients = DeviceConvolutionGradients(internal, squared, bytes);
      EXPECT_EQ(gradients.scalar_type(), result_type);
      ExpectNear(gradients, reference, tolerance);
      ExpectNormsNear(squared, norms, tolerance);
      DeviceAddSquaredNorms(internal, squared, bytes);
      ExpectNormsNear(squared, 2 * norms, tolerance);
      const at::Tensor ours = DeviceWeightedGradient(internal, factors, /*wide=*/false, bytes);
      EXPECT_EQ(ours.scalar_type(), result_type);
      ExpectNear(ours.unsqueeze(0), sum.unsqueeze(0), tolerance);
    }
  }
  if (Internal(operands).shape.rows_per_example() <= 512) {
    SCOPED_TRACE("Gram matrices");
    const at::Tensor device = DeviceGramSquaredNorms(Internal(operands), 0, layout.examples);
    ExpectNormsNear(device, norms, 1e-11);
    GramNorm gram(Internal(operands));
    for (std::int64_t i = 0; i < layout.examples; ++i) {
      const double expected = norms[i].item<double>();
      EXPECT_NEAR(gram.SquaredNorm(i), expected, 1e-11 * expected);
    }
  }
}

// {weight, stride, padding, dilation, transposed, groups}
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"Plain1d", {{4, 3, 3}, {1}, {1}, {1}}, {9}},
      {"EvenKernelStrideAndDilation1d", {{4, 3, 4}, {3}, {2}, {2}}, {17}},
      {"Plain2d", {{5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {6, 7}},
      {"Pointwise2d", {{6, 5, 1, 1}, {1, 1}, {0, 0}, {1, 1}}, {4, 5}},
      {"EvenKernel2d", {{5, 3, 4, 2}, {1, 1}, {1, 1}, {1, 1}}, {6, 7}},
      {"KernelLargerThanTheUnpaddedImage", {{3, 2, 5, 7}, {1, 1}, {2, 3}, {1, 1}}, {3, 4}},
      {"StrideThatLeavesARemainder", {{3, 2, 3, 3}, {3, 2}, {1, 0}, {1, 1}}, {9, 8}},
      {"StrideLargerThanTheKernel", {{3, 2, 2, 1}, {3, 3}, {0, 0}, {1, 1}}, {9, 8}},
      {"DilationWithStride", {{3, 2, 3, 2}, {2, 3}, {2, 1}, {2, 3}}, {9, 10}},
      {"Groups", {{6, 2, 3, 3}, {1, 2}, {1, 1}, {1, 1}, false, 3}, {6, 7}},
      {"DilatedGroups", {{4, 17, 3, 3}, {1, 1}, {2, 2}, {2, 2}, false, 2}, {6, 7}},
      {"Depthwise", {{5, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, 5}, {6, 7}},
      {"DepthwiseWithMultiplier", {{8, 1, 3, 2}, {2, 1}, {1, 1}, {1, 2}, false, 4}, {6, 7}},
      {"MnistFirst", {{16, 1, 8, 8}, {2, 2}, {3, 3}, {1, 1}}, {28, 28}},
      {"MnistSecond", {{32, 16, 4, 4}, {2, 2}, {0, 0}, {1, 1}}, {13, 13}},
      {"MorePositionsThanOneSumTakes", {{4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {41, 43}},
      {"ManyBlocks", {{8, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {25, 23}},
      {"SmallImagesWithManyChannels", {{64, 48, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {4, 4}},
      {"Transposed1d", {{4, 3, 4}, {2}, {1}, {1}, true}, {5}, {1}},
      {"Transposed2d", {{4, 3, 3, 2}, {2, 3}, {1, 0}, {1, 1}, true}, {5, 4}, {1, 2}},
      {"TransposedGroupsWithDilation",
       {{6, 2, 3, 3}, {2, 1}, {1, 2}, {2, 2}, true, 3},
       {5, 4},
       {1, 0}},
      {"Plain3d", {{4, 3, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}}, {4, 6, 5}},
      {"Groups3d", {{4, 2, 3, 2, 1}, {2, 1, 2}, {1, 1, 0}, {1, 2, 1}, false, 2}, {5, 4, 5}},
      {"Transposed3d",
       {{4, 3, 2, 3, 2}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, true},
       {3, 4, 3},
       {0, 1, 1}},
  };
  return cases;
}

class EveryConvolution : public testing::TestWithParam<Case> {};

TEST_P(EveryConvolution, MatchesTheLoopInFloat64) {
  ExpectAllMatchTheLoop(Make(GetParam(), at::kDouble));
}

TEST_P(EveryConvolution, MatchesTheLoopInFloat32) {
  ExpectAllMatchTheLoop(Make(GetParam(), at::kFloat));
}

TEST_P(EveryConvolution, ComputesHalfPrecisionOperandsInFloat32) {
  ExpectAllMatchTheLoop(Make(GetParam(), at::kBFloat16));
  ExpectAllMatchTheLoop(Make(GetParam(), at::kHalf));
}

TEST_P(EveryConvolution, MatchesTheLoopForAnyStrides) {
  for (const Strides strides :
       {Strides::kChannelsLast, Strides::kEverySecond, Strides::kExpanded}) {
    ExpectAllMatchTheLoop(Make(GetParam(), at::kFloat, strides));
    ExpectAllMatchTheLoop(Make(GetParam(), at::kBFloat16, strides));
  }
}

TEST_P(EveryConvolution, MatchesTheLoopForAnyLayout) {
  for (const ExampleLayout layout :
       {ExampleLayout{1, 0, 1}, ExampleLayout{1, 1, 1}, ExampleLayout{3, 2, 1},
        ExampleLayout{1, 2, 3}, ExampleLayout{2, 3, 2}, ExampleLayout{2, 0, 3}}) {
    Case test = GetParam();
    test.layout = layout;
    ExpectAllMatchTheLoop(Make(test, at::kDouble));
  }
}

INSTANTIATE_TEST_SUITE_P(Convolutions, EveryConvolution, testing::ValuesIn(Cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(ConvolutionGradients, MatchTheLoopForRandomConvolutions) {
  std::mt19937 random(5);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 100; ++trial) {
    Case test;
    const std::int64_t spatial = draw(1, 3);
    Convolution& c = test.convolution;
    c.groups = draw(1, 3);
    c.transposed = draw(0, 1) == 1;
    c.weight = {c.groups * draw(1, 5), draw(1, 5)};
    if (c.transposed) test.output_padding = {};
    for (std::int64_t i = 0; i < spatial; ++i) {
      const std::int64_t kernel = draw(1, 4);
      const std::int64_t stride = draw(1, 3);
      const std::int64_t dilation = draw(1, 3);
      const std::int64_t reach = (kernel - 1) * dilation + 1;
      const std::int64_t padding = draw(0, std::min<std::int64_t>(3, reach / 2));
      c.weight.push_back(kernel);
      c.stride.push_back(stride);
      c.dilation.push_back(dilation);
      c.padding.push_back(padding);
      test.input.push_back(
          c.transposed ? draw(2, 5) : std::max<std::int64_t>(1, reach - 2 * padding) + draw(0, 5));
      if (c.transposed) test.output_padding.push_back(draw(0, std::max(stride, dilation) - 1));
    }
    test.layout = {draw(1, 2), draw(1, 4), draw(1, 2)};
    SCOPED_TRACE("trial " + std::to_string(trial));
    ExpectAllMatchTheLoop(Make(test, at::kDouble, static_cast<Strides>(draw(0, 3))));
  }
}

Case SmallCase() {
  return {"Small", {{5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {6, 7}, {}, {1, 6, 1}};
}

TEST(WeightedConvolutionGradient, FactorZeroWinsOverValuesThatAreNotFinite) {
  Operands operands = Make(SmallCase(), at::kFloat);
  const at::Tensor factors = at::full({6}, 0.5, at::kDouble);
  factors[1].zero_();
  factors[4].zero_();
  const at::Tensor expected = WeightedReference(ReferenceGradients(operands), factors);
  operands.input[1].fill_(std::numeric_limits<float>::infinity());
  operands.output_gradient[4].fill_(std::numeric_limits<float>::quiet_NaN());
  operands.input[4].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor ours =
      WeightedConvolutionGradient(operands.test.convolution, operands.input,
                                  operands.output_gradient, operands.test.layout, factors);
  ExpectNear(ours.unsqueeze(0), expected.unsqueeze(0), 1e-5);
  const at::Tensor device = DeviceWeightedGradient(Internal(operands), factors, /*wide=*/false);
  ExpectNear(device.unsqueeze(0), expected.unsqueeze(0), 1e-5);
}

TEST(ConvolutionGradients, OneExampleHasNoEffectOnAnother) {
  Operands operands = Make(SmallCase(), at::kFloat);
  const auto compute = [&](at::Tensor& squared, at::Tensor& norms) {
    squared = at::zeros({6}, at::kDouble);
    norms = at::zeros({6}, at::kDouble);
    at::Tensor gradients =
        ConvolutionGradients(operands.test.convolution, operands.input, operands.output_gradient,
                             operands.test.layout, squared);
    AddConvolutionSquaredNorms(operands.test.convolution, operands.input, operands.output_gradient,
                               operands.test.layout, norms);
    return gradients;
  };
  at::Tensor squared, norms, squared_after, norms_after;
  const at::Tensor before = compute(squared, norms);
  operands.input[2].fill_(std::numeric_limits<float>::infinity());
  operands.output_gradient[2].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor after = compute(squared_after, norms_after);
  for (const std::int64_t i : {0, 1, 3, 4, 5}) {
    EXPECT_TRUE(before[i].equal(after[i])) << "example " << i;
    EXPECT_EQ(squared[i].item<double>(), squared_after[i].item<double>()) << "example " << i;
    EXPECT_EQ(norms[i].item<double>(), norms_after[i].item<double>()) << "example " << i;
  }
  EXPECT_FALSE(std::isfinite(squared_after[2].item<double>()));
  EXPECT_FALSE(std::isfinite(norms_after[2].item<double>()));
}

TEST(ConvolutionGradients, NormsAreOptional) {
  const Operands operands = Make(SmallCase(), at::kFloat);
  const at::Tensor gradients =
      ConvolutionGradients(operands.test.convolution, operands.input, operands.output_gradient,
                           operands.test.layout, at::Tensor());
  ExpectNear(gradients, ReferenceGradients(operands), 1e-5);
}

TEST(ConvolutionGradients, ResultsDoNotDependOnTheNumberOfThreads) {
  Case test = SmallCase();
  test.layout.examples = 7;
  const Operands operands = Make(test, at::kFloat);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor squared = at::zeros({7}, at::kDouble);
  const at::Tensor one = ConvolutionGradients(test.convolution, operands.input,
                                              operands.output_gradient, test.layout, squared);
  at::set_num_threads(3);
  const at::Tensor squared_of_three = at::zeros({7}, at::kDouble);
  const at::Tensor three = ConvolutionGradients(
      test.convolution, operands.input, operands.output_gradient, test.layout, squared_of_three);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(three));
  EXPECT_TRUE(squared.equal(squared_of_three));
}

// 2^24, and from then on 1/2 once in every kRowsPerSum rows: a float32 sum of all would stay at
// 2^24, where its values are 2 apart. The exact sum, 2^24 + 31.5, rounds to 2^24 + 32.
Operands LargeThenSmall(std::int64_t examples, std::int64_t rows_per_example) {
  Operands operands =
      Make({"", {{1, 1, 1}, {1}, {0}, {1}}, {rows_per_example}, {}, {1, examples, 1}}, at::kFloat);
  operands.input.fill_(1);
  operands.output_gradient.zero_();
  at::Tensor rows = operands.output_gradient.view({examples * rows_per_example});
  rows.slice(0, 0, std::nullopt, kRowsPerSum).fill_(0.5);
  rows[0].fill_(std::ldexp(1.0, 24));
  return operands;
}
constexpr std::int64_t kSums = 64;
const double kLargeThenSmallSum = std::ldexp(1.0, 24) + 0.5 * kSums;

// The one in the middle is lost in any float32 sum of the three.
TEST(WeightedConvolutionGradient, SumsFewPositionsOfManyWeightsInFloat64) {
  const Convolution c{{128, 256, 1, 1}, {1, 1}, {0, 0}, {1, 1}, false, 1};
  ASSERT_TRUE(SumIsFloat64(3, std::int64_t{128} * 256));
  const at::Tensor input = at::ones({3, 256, 1, 3});
  const at::Tensor signal = at::tensor({1e8F, 1.0F, -1e8F}).expand({3, 128, 1, 3});
  const at::Tensor factors = at::tensor({0.5, 0.0, 0.25}, at::kDouble);
  for (const bool wide : {false, true}) {
    const at::Tensor sum = WeightedConvolutionGradient(c, input, signal, {1, 3, 1}, factors, wide);
    EXPECT_EQ(sum.scalar_type(), wide ? at::kDouble : at::kFloat);
    EXPECT_TRUE(sum.eq(0.75).all().item<bool>());
  }
}

TEST(WeightedConvolutionGradient, SumsNoMoreThanItsBlockOfRowsInFloat32) {
  const Operands operands = LargeThenSmall(kSums, kRowsPerSum);
  const at::Tensor factors = at::full({kSums}, 1.0, at::kDouble);
  EXPECT_EQ(WeightedConvolutionGradient(operands.test.convolution, operands.input,
                                        operands.output_gradient, operands.test.layout, factors)
                .item<double>(),
            kLargeThenSmallSum);
  EXPECT_EQ(DeviceWeightedGradient(Internal(operands), factors, /*wide=*/false).item<double>(),
            kLargeThenSmallSum);
}

TEST(ConvolutionGradients, SumNoMoreThanTheirBlockOfRowsInFloat32) {
  const Operands operands = LargeThenSmall(1, kSums * kRowsPerSum);
  const at::Tensor gradients =
      ConvolutionGradients(operands.test.convolution, operands.input, operands.output_gradient,
                           operands.test.layout, at::Tensor());
  EXPECT_EQ(gradients.item<double>(), kLargeThenSmallSum);
}

TEST(GramIsCheaper, ForFewPositionsAndManyChannelsOnly) {
  const Operands small = Make({"", {{64, 48, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {4, 4}}, at::kFloat);
  EXPECT_TRUE(GramIsCheaper(Internal(small).shape, 16, 2));
  const Operands large = Make({"", {{8, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {32, 32}}, at::kFloat);
  EXPECT_FALSE(GramIsCheaper(Internal(large).shape, 1024, 2));
}

}  // namespace
}  // namespace sordino
