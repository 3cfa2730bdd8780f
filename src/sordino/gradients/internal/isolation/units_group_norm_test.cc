// Beside libtorch's group norm in float64. Skipped without a GPU.
#include "sordino/gradients/internal/isolation/units_group_norm.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "sordino/gradients/testing/derivatives.h"

namespace sordino {
namespace {

constexpr double kEps = 1e-5;

struct GroupedNorm {
  std::vector<std::int64_t> sizes;
  std::int64_t groups;
};

struct Inputs {
  at::Tensor input, scale, shift;

  std::vector<at::Tensor> All() const { return {input, scale, shift}; }
  Inputs InFloat64() const {
    const auto wide = [](const at::Tensor& tensor) {
      return tensor.detach().to(at::kDouble).set_requires_grad(true);
    };
    return {wide(input), wide(scale), wide(shift)};
  }
};

class UnitsGroupNormCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
    if (!HasGroupNorm(at::zeros({1, 1}, options_), 1, at::zeros({1}, options_),
                      at::zeros({1}, options_))) {
      GTEST_SKIP() << "built without nvcc";
    }
    at::manual_seed(4);
  }

  Inputs Make(const GroupedNorm& norm) const {
    const auto leaf = [](const at::Tensor& tensor) { return tensor.set_requires_grad(true); };
    // Far from the mean 0, where a variance from sums of squares would lose its digits.
    return {leaf(at::randn(norm.sizes, options_) + 30), leaf(at::randn({norm.sizes[1]}, options_)),
            leaf(at::randn({norm.sizes[1]}, options_))};
  }

  // Positions that are a multiple of four and not, one channel a group, one group, no positions.
  const std::vector<GroupedNorm> norms_ = {
      {{5, 8, 6, 6}, 4},  {{3, 6, 3, 3}, 3}, {{4, 64, 32, 32}, 16}, {{2, 16, 8, 8}, 16},
      {{2, 32, 2, 2}, 1}, {{7, 12}, 4},      {{2, 40, 5}, 2}};
  const at::TensorOptions options_ = at::TensorOptions(at::Device(at::kCUDA, 0)).dtype(at::kFloat);
};

bool Near(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  const at::Tensor wide = expected.to(at::kDouble);
  const double largest = wide.abs().max().item<double>() + 1e-3;
  return found.sizes() == expected.sizes() &&
         (found.to(at::kDouble) - wide).abs().max().item<double>() <= tolerance * largest;
}

TEST_F(UnitsGroupNormCuda, HasTheValuesAndTheFirstAndSecondDerivatives) {
  for (const GroupedNorm& norm : norms_) {
    const Inputs own = Make(norm);
    const Inputs wide = own.InFloat64();
    ASSERT_TRUE(HasUnitsGroupNorm(own.input, norm.groups, own.scale, own.shift));
    const auto seen = WithDerivatives(
        UnitsGroupNorm(own.input, norm.groups, own.scale, own.shift, kEps), own.All());
    const auto wanted = WithDerivatives(
        at::group_norm(wide.input, norm.groups, wide.scale, wide.shift, kEps), wide.All());
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      EXPECT_TRUE(Near(seen[k], wanted[k], 2e-3)) << k << " of " << at::IntArrayRef(norm.sizes);
    }
    // What the kernels compute, without derivatives of derivatives.
    const at::Tensor weights = at::randn_like(own.input);
    const auto found = torch::autograd::grad(
        {UnitsGroupNorm(own.input, norm.groups, own.scale, own.shift, kEps)}, own.All(), {weights});
    const auto expected = torch::autograd::grad(
        {at::group_norm(wide.input, norm.groups, wide.scale, wide.shift, kEps)}, wide.All(),
        {weights.to(at::kDouble)});
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(Near(found[k], expected[k], 1e-4)) << k << " of " << at::IntArrayRef(norm.sizes);
    }
  }
}

TEST_F(UnitsGroupNormCuda, AnImageHasTheBitsThatItHasAlone) {
  const at::NoGradGuard no_grad;
  for (const GroupedNorm& norm : norms_) {
    const Inputs all = Make(norm);
    const at::Tensor gradient = at::randn_like(all.input);
    const auto run = [&](const at::Tensor& input, const at::Tensor& arriving) {
      const GroupNormResult result =
          DeviceGroupNorm(input, norm.groups, all.scale, all.shift, kEps);
      const GroupNormGradients found =
          DeviceGroupNormGradients(arriving, input, result.mean, result.deviation, all.scale);
      return std::vector<at::Tensor>{result.output, found.input, found.scale, found.shift};
    };
    const auto together = run(all.input, gradient);
    for (std::int64_t image = 0; image < norm.sizes[0]; ++image) {
      const auto alone =
          run(all.input.narrow(0, image, 1).clone(), gradient.narrow(0, image, 1).clone());
      for (std::size_t k = 0; k < alone.size(); ++k) {
        EXPECT_TRUE(together[k].narrow(0, image, 1).equal(alone[k]))
            << k << " of " << at::IntArrayRef(norm.sizes);
      }
    }
  }
}

// Weights that are normed, whose gradients differ from example to example.
TEST_F(UnitsGroupNormCuda, OneImageHasTheGradientsThatItHasInEachExample) {
  const at::NoGradGuard no_grad;
  for (const GroupedNorm& norm : norms_) {
    const Inputs all = Make(norm);
    const at::Tensor input = all.input.narrow(0, 0, 1).clone();
    const at::Tensor gradient = at::randn_like(all.input);
    const GroupNormResult result = DeviceGroupNorm(input, norm.groups, all.scale, all.shift, kEps);
    ASSERT_TRUE(HasGroupNormOfOne(gradient, input, result.mean, result.deviation, all.scale));
    EXPECT_FALSE(HasGroupNormOfOne(gradient, all.input, result.mean, result.deviation, all.scale));
    const GroupNormGradients together =
        DeviceGroupNormGradients(gradient, input, result.mean, result.deviation, all.scale);
    for (std::int64_t example = 0; example < norm.sizes[0]; ++example) {
      const GroupNormGradients own = DeviceGroupNormGradients(
          gradient.narrow(0, example, 1).clone(), input, result.mean, result.deviation, all.scale);
      EXPECT_TRUE(together.input.narrow(0, example, 1).equal(own.input));
      EXPECT_TRUE(together.scale.narrow(0, example, 1).equal(own.scale));
      EXPECT_TRUE(together.shift.narrow(0, example, 1).equal(own.shift));
    }
  }
}

TEST_F(UnitsGroupNormCuda, GradientsOfImagesAddUpToThoseOfAll) {
  for (const GroupedNorm& norm : norms_) {
    const Inputs own = Make(norm);
    const at::Tensor output = UnitsGroupNorm(own.input, norm.groups, own.scale, own.shift, kEps);
    auto& node = static_cast<UnitsGroupNormBackward&>(*output.grad_fn());
    const at::Tensor gradient = at::randn_like(output);
    const GroupNormGradients found = node.GradientsOfImages(gradient);
    // Turned in memory, as what arrives from a transposition.
    const at::Tensor turned = gradient.transpose(0, 1).contiguous().transpose(0, 1);
    const GroupNormGradients again = node.GradientsOfImages(turned);
    EXPECT_TRUE(again.scale.equal(found.scale));
    EXPECT_TRUE(again.input.equal(found.input));
    const Inputs wide = own.InFloat64();
    const auto expected = torch::autograd::grad(
        {at::group_norm(wide.input, norm.groups, wide.scale, wide.shift, kEps)}, wide.All(),
        {gradient.to(at::kDouble)});
    EXPECT_TRUE(Near(found.scale.sum(0), expected[1], 1e-4));
    EXPECT_TRUE(Near(found.shift.sum(0), expected[2], 1e-4));
  }
}

TEST_F(UnitsGroupNormCuda, OtherTensorsAreLeftToLibtorch) {
  const at::Tensor input = at::randn({2, 4, 3, 3}, options_);
  const at::Tensor scale = at::ones({4}, options_);
  EXPECT_TRUE(HasUnitsGroupNorm(input, 2, scale, scale));
  EXPECT_FALSE(HasUnitsGroupNorm(input, 3, scale, scale));
  EXPECT_FALSE(HasUnitsGroupNorm(input, 2, {}, {}));
  EXPECT_FALSE(HasUnitsGroupNorm(input.to(at::kDouble), 2, scale, scale));
  EXPECT_FALSE(HasUnitsGroupNorm(input.transpose(2, 3), 2, scale, scale));
  EXPECT_FALSE(HasUnitsGroupNorm(input.cpu(), 2, scale.cpu(), scale.cpu()));
  EXPECT_FALSE(HasUnitsGroupNorm(input, 2, scale.cpu(), scale));
  EXPECT_FALSE(HasUnitsGroupNorm(input.narrow(0, 0, 0), 2, scale, scale));
}

}  // namespace
}  // namespace sordino
