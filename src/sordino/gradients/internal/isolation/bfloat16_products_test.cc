// Private steps whose products are those of bfloat16 numbers.
#include "sordino/gradients/internal/isolation/bfloat16_products.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sordino/device/precision.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/jl_clipping.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"
#include "sordino/gradients/testing/seeded_directions.h"

namespace sordino {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

at::Tensor Bf16(const at::Tensor& tensor) { return tensor.to(at::kBFloat16); }

// A product of an example [3, 8] with parameters, as the model writes it and as it is meant in
// bfloat16.
struct ProductCase {
  std::string name;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b)> given;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b)> meant;
};

std::vector<ProductCase> Products() {
  std::vector<ProductCase> products;
  const auto add = [&](const std::string& name, const auto& product) {
    products.push_back(
        {name, product, [=](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
           return product(Bf16(x), Bf16(w), Bf16(b)).to(at::kFloat);
         }});
  };
  add("linear", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::linear(x, w, b);
  });
  add("addmm", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::addmm(b, x.flatten(0, 1), w.t());
  });
  add("matmul", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
    return at::matmul(x, w.t());
  });
  add("bmm", [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
    return at::bmm(x, x.transpose(1, 2));
  });
  add("einsum", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
    return at::einsum("btd,od->bto", {x, w});
  });
  add("convolution", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::conv1d(x, w.view({5, 1, 8}).expand({5, 3, 8}), b, 1, 2);
  });
  add("transposed convolution", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
    return at::conv_transpose1d(x.slice(2, 0, 5), w.slice(0, 0, 3).view({3, 2, 4}));
  });
  add("attention", [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
    return at::scaled_dot_product_attention(x, x, x);
  });
  return products;
}

TEST(Bfloat16Products, AreThoseOfConvertedFactors) {
  at::manual_seed(3);
  const at::Tensor w = at::randn({5, 8}).requires_grad_();
  const at::Tensor b = at::randn({5}).requires_grad_();
  const Batch batch = {at::randn({6, 3, 8})};
  for (const ProductCase& product : Products()) {
    const auto losses = [&](const auto& model, Precision precision) {
      const ScopedPrecision scope(precision);
      return IsolatedLosses(
          [&](const Batch& x) {
            const at::Tensor result = model(x[0], w, b);
            EXPECT_EQ(result.scalar_type(), at::kFloat) << product.name;
            return result.square().sum().view({1});
          },
          batch, 6);
    };
    const at::Tensor found = losses(product.given, Precision::kBfloat16);
    EXPECT_TRUE(found.equal(losses(product.meant, Precision::kFloat32))) << product.name;
    EXPECT_FALSE(found.equal(losses(product.given, Precision::kFloat32))) << product.name;
  }
}

TEST(Bfloat16Products, LeaveOthersAsTheyAre) {
  const ScopedPrecision scope(Precision::kBfloat16);
  at::manual_seed(3);
  const at::Tensor w = at::randn({8, 8});
  const Batch batch = {at::randn({6, 3, 8})};
  const auto same = [&](const auto& model, const Batch& of) {
    at::Tensor alone;
    {
      const ScopedPrecision float32(Precision::kFloat32);
      alone = IsolatedLosses(model, of, 6);
    }
    return IsolatedLosses(model, of, 6).equal(alone);
  };
  // Parameters alone, float64, sums.
  EXPECT_TRUE(same([&](const Batch& x) { return (x[0] * w.mm(w)[0]).sum().view({1}); }, batch));
  EXPECT_TRUE(
      same([&](const Batch& x) { return at::linear(x[0], w.to(at::kDouble)).sum().view({1}); },
           {batch[0].to(at::kDouble)}));
  EXPECT_TRUE(same([&](const Batch& x) { return (x[0] + w[0]).relu().mean().view({1}); }, batch));
  const Batch tokens = {at::randint(8, {6, 4})};
  const at::Tensor offsets = at::zeros({1}, at::kLong);
  EXPECT_TRUE(same(
      [&](const Batch& x) {
        return std::get<0>(at::embedding_bag(w, x[0].view({-1}), offsets)).square().sum().view({1});
      },
      tokens));
}

// Of one linear layer whose output gradient is given, the gradients of examples are known exactly.
TEST(Bfloat16Products, HaveExactNormsAndSums) {
  const ScopedPrecision scope(Precision::kBfloat16);
  at::manual_seed(4);
  constexpr std::int64_t kExamples = 7;
  for (const std::int64_t rows : {1, 4}) {
    const at::Tensor w = at::randn({5, 8}).requires_grad_();
    const Batch batch = {at::randn({kExamples, rows, 8}), at::randn({kExamples, rows, 5})};
    const LossFunction loss = [&](const Batch& x) {
      return (at::linear(x[0], w) * x[1]).sum({1, 2});
    };
    const auto rounded = [](const at::Tensor& x) { return Bf16(x).to(at::kDouble); };
    const at::Tensor exact = rounded(batch[1]).transpose(1, 2).bmm(rounded(batch[0]));
    const at::Tensor norms = exact.flatten(1).norm(2, 1);
    const double bound = norms.median().item<double>();
    const at::Tensor sum = (exact * (bound / norms).clamp_max(1).view({kExamples, 1, 1})).sum(0);
    for (const NormMethod method :
         {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
      Clipper clipper({{"w", w}}, {.norms = method});
      const FlatClipping policy{ClipNorm(bound)};
      const BoundedSum found = clipper.ClippedSum(loss, batch, policy);
      EXPECT_EQ(found.gradients[0].scalar_type(), at::kFloat);
      EXPECT_LE(RelativeError(found.gradients, {sum}), 1e-6);
      EXPECT_LE(
          ((clipper.Norms(loss, batch, policy)[0] - norms) / norms).abs().max().item<double>(),
          1e-6);
    }
  }
}

// What a wide residual network is made of: convolutions with standardised weights, group norms, a
// residual, a mean over positions, a linear layer.
ModelFunction ResidualModel() {
  return [](ModelMaker& m) -> LossFunction {
    const at::Tensor first = m.Parameter("first.weight", {4, 3, 3, 3});
    const at::Tensor scale = m.Parameter("norm.weight", {4}, 0.3, 1);
    const at::Tensor shift = m.Parameter("norm.bias", {4});
    const at::Tensor second = m.Parameter("second.weight", {4, 4, 3, 3});
    const at::Tensor gain = m.Parameter("second.gain", {4, 1, 1, 1}, 0.3, 1);
    const at::Tensor shortcut = m.Parameter("shortcut.weight", {4, 4, 1, 1});
    const at::Tensor w = m.Parameter("classifier.weight", {3, 4});
    const at::Tensor b = m.Parameter("classifier.bias", {3});
    m.Input({3, 6, 6});
    return [=](const Batch& x) {
      const auto standardised = [](const at::Tensor& weight) {
        const at::Tensor centred = weight - weight.mean({1, 2, 3}, true);
        return centred / centred.square().mean({1, 2, 3}, true).add(1e-4).sqrt();
      };
      const at::Tensor y = at::conv2d(x[0], standardised(first), {}, 1, 1);
      const at::Tensor active = at::group_norm(y, 2, scale, shift).relu();
      const at::Tensor deep = at::conv2d(active, standardised(second) * gain, {}, 1, 1);
      const at::Tensor sum = deep + at::conv2d(active, shortcut);
      return LossOf(at::linear(sum.relu().mean({2, 3}), w, b));
    };
  };
}

TEST(Bfloat16Networks, EqualTheLoop) {
  const ScopedPrecision scope(Precision::kBfloat16);
  const LoopComparison comparison = {.batches = {2, 5}, .types = {at::kFloat}, .options = {}};
  ExpectAgreesWithLoop("residual", ResidualModel(), comparison);
  ExpectAgreesWithLoop("convolutional", ConvolutionalModel(), comparison);
  ExpectAgreesWithLoop("transformer", TransformerModel(/*batch_first_input=*/false), comparison);
  ExpectAgreesWithLoop("attention", MultiHeadAttentionModel(false, false), comparison);
  ExpectAgreesWithLoop("lstm", RecurrentModel("lstm", true, 1, false), comparison);
  ExpectAgreesWithLoop(
      "tied",
      [](ModelMaker& m) -> LossFunction {
        const at::Tensor table = m.Parameter("table", {9, 6});
        const at::Tensor w = m.Parameter("w", {6, 6});
        m.Tokens(9, {4});
        return [=](const Batch& x) {
          const at::Tensor h = at::matmul(at::embedding(table, x[0]), w).tanh();
          return LossOf(at::linear(at::matmul(h, w.t()), table));
        };
      },
      comparison);
}

TEST(Bfloat16Networks, AreNotComputedInFloat32) {
  const TestModel model = MakeModel(ResidualModel(), at::kFloat);
  const Batch batch = model.batch(4);
  const auto sum = [&](Precision precision) {
    const ScopedPrecision scope(precision);
    return Clipper(model.parameters).ClippedSum(model.loss, batch, FlatClipping(ClipNorm(1)));
  };
  const double error =
      RelativeError(sum(Precision::kBfloat16).gradients, sum(Precision::kFloat32).gradients);
  EXPECT_GT(error, 1e-4);
  EXPECT_LT(error, 5e-2);
}

// Products of two bfloat16 numbers, and the numbers themselves, are exact in float32 and as factors
// of TF32: what rounding.h says of rows.
TEST(Bfloat16Numbers, AndTheirProductsAreExactInFloat32) {
  const at::Tensor significands = (at::arange(128, at::kDouble) / 128 + 1);
  EXPECT_TRUE(Bf16(significands).to(at::kDouble).equal(significands));
  const at::Tensor numbers = significands.to(at::kFloat);
  const at::Tensor products = numbers.unsqueeze(0) * numbers.unsqueeze(1);
  EXPECT_TRUE(
      products.to(at::kDouble).equal(significands.unsqueeze(0) * significands.unsqueeze(1)));
  // TF32 keeps 10 bits after the point.
  EXPECT_TRUE((significands * 1024).equal((significands * 1024).round()));
}

TEST(Bfloat16Products, HaveNoEstimatedNorms) {
  const ScopedPrecision scope(Precision::kBfloat16);
  const TestModel model = MakeModel(ConvolutionalModel(), at::kFloat);
  EXPECT_THAT(
      [&] {
        JlClippedSum(model.loss, model.batch(2), model.parameters, FlatClipping(ClipNorm(1)),
                     JlOptions{4, Delta(0.05)}, SeededDirections(1));
      },
      ThrowsMessage<Error>(HasSubstr("bfloat16")));
}

}  // namespace
}  // namespace sordino
