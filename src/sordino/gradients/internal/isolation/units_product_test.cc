#include "sordino/gradients/internal/isolation/units_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "sordino/gradients/testing/derivatives.h"

namespace sordino {
namespace {

struct ProductFactors {
  at::Tensor input, matrix, bias;
};

ProductFactors Make(std::vector<std::int64_t> sizes, bool is_turned, bool with_bias) {
  const std::int64_t features = sizes.back();
  ProductFactors f;
  f.input = at::randn(sizes, at::kDouble).set_requires_grad(true);
  f.matrix =
      (is_turned ? at::randn({4, features}, at::kDouble) : at::randn({features, 4}, at::kDouble))
          .set_requires_grad(true);
  if (with_bias) f.bias = at::randn({4}, at::kDouble).set_requires_grad(true);
  return f;
}

at::Tensor Expected(const ProductFactors& f, bool is_turned) {
  const at::Tensor product = f.input.matmul(is_turned ? f.matrix.t() : f.matrix);
  return f.bias.defined() ? product + f.bias : product;
}

TEST(UnitsProduct, HasTheValuesAndTheFirstAndSecondDerivativesOfAProduct) {
  at::manual_seed(1);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{5, 3}, {5, 1, 3}, {5, 2, 6, 3}}) {
    for (const bool is_turned : {false, true}) {
      for (const bool with_bias : {false, true}) {
        const ProductFactors f = Make(sizes, is_turned, with_bias);
        ASSERT_TRUE(HasUnitsProduct(f.input, f.matrix, f.bias));
        std::vector<at::Tensor> inputs = {f.input, f.matrix};
        if (with_bias) inputs.push_back(f.bias);
        const auto seen =
            WithDerivatives(UnitsProduct(f.input, f.matrix, f.bias, is_turned), inputs);
        const auto wanted = WithDerivatives(Expected(f, is_turned), inputs);
        for (std::size_t k = 0; k < wanted.size(); ++k) {
          EXPECT_EQ(seen[k].sizes(), wanted[k].sizes());
          EXPECT_TRUE(at::allclose(seen[k], wanted[k], 1e-10, 1e-12));
        }
      }
    }
  }
}

TEST(UnitsProduct, RefusesABackwardPassAfterItsInputWasWrittenTo) {
  const ProductFactors f = Make({5, 1, 3}, true, true);
  const at::Tensor input = f.input * 1;
  const at::Tensor value = UnitsProduct(input, f.matrix, f.bias, true);
  input.add_(1);
  EXPECT_THROW(value.sum().backward(), c10::Error);
}

TEST(UnitsProduct, RecordsNothingWithoutGradients) {
  const ProductFactors f = Make({5, 1, 3}, true, true);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(UnitsProduct(f.input, f.matrix, f.bias, true).requires_grad());
}

TEST(UnitsProduct, IsNotForOtherNumbersNorForForwardDerivatives) {
  const ProductFactors f = Make({5, 3}, true, true);
  EXPECT_FALSE(HasUnitsProduct(f.input.to(at::kFloat), f.matrix, f.bias));
  EXPECT_FALSE(HasUnitsProduct(f.input.to(at::kComplexDouble), f.matrix.to(at::kComplexDouble),
                               f.bias.to(at::kComplexDouble)));
  EXPECT_FALSE(HasUnitsProduct(at::empty({0, 3}, at::kDouble), f.matrix, f.bias));
}

}  // namespace
}  // namespace sordino
