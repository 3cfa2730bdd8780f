#include "sordino/gradients/example_loop.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Flat clipping (one group) or one group for each parameter, all with the same bound.
class BoundPolicy : public ClippingPolicy {
 public:
  explicit BoundPolicy(double bound, bool layerwise = false,
                       const CoordinateTransform* transform = nullptr)
      : bound_(bound), layerwise_(layerwise), transform_(transform) {}
  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override {
    std::vector<std::int64_t> groups(parameters.size(), 0);
    for (std::size_t p = 0; layerwise_ && p < groups.size(); ++p) {
      groups[p] = static_cast<std::int64_t>(p);
    }
    return groups;
  }
  at::Tensor Factors(const at::Tensor& norms) const override {
    return (bound_ / norms).clamp_max(1);
  }
  std::vector<double> Bounds() const override { return {bound_}; }
  const CoordinateTransform* transform() const override { return transform_; }

 private:
  double bound_;
  bool layerwise_;
  const CoordinateTransform* transform_;
};

// Least squares, whose gradients are known: (x w + b - y) times x, and times 1.
struct LeastSquares {
  explicit LeastSquares(std::int64_t examples, at::ScalarType type = at::kDouble) {
    at::Generator generator = at::detail::createCPUGenerator(11);
    x = at::randn({examples, 3}, generator).to(type);
    y = at::randn({examples}, generator).to(type);
    w = at::randn({3}, generator).to(type).requires_grad_();
    b = at::randn({1}, generator).to(type).requires_grad_();
  }
  Batch batch() const { return {x, y}; }
  std::vector<NamedParameter> parameters() const { return {{"w", w}, {"b", b}}; }
  LossFunction loss() const {
    return [this](const Batch& part) { return 0.5 * (part[0].mv(w) + b - part[1]).square(); };
  }
  // Row i is the gradient of example i, weight and bias, in float64.
  at::Tensor Gradients() const {
    const at::Tensor residual = (x.mv(w.detach()) + b.detach() - y).to(at::kDouble).unsqueeze(1);
    return residual * at::cat({x.to(at::kDouble), at::ones({x.size(0), 1}, at::kDouble)}, 1);
  }
  at::Tensor x, y, w, b;
};

double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(GradientOfExamples, IsTheGradientOfTheMean) {
  const LeastSquares model(5);
  const at::Tensor expected = model.Gradients().narrow(0, 1, 3).mean(0);
  const auto gradient =
      GradientOfExamples(model.loss(), Slice(model.batch(), 1, 4), model.parameters());
  ASSERT_EQ(gradient.size(), 2u);
  EXPECT_LT(Distance(gradient[0], expected.narrow(0, 0, 3)), 1e-14);
  EXPECT_LT(Distance(gradient[1], expected.narrow(0, 3, 1)), 1e-14);
  EXPECT_FALSE(gradient[0].requires_grad());
}

TEST(GradientOfExamples, IsZeroForWhatTheLossDoesNotReach) {
  const LeastSquares model(2);
  auto parameters = model.parameters();
  parameters.push_back({"unused", at::ones({4}, at::kDouble).requires_grad_()});
  const auto gradient = GradientOfExamples(model.loss(), model.batch(), parameters);
  EXPECT_TRUE(gradient[2].equal(at::zeros({4}, at::kDouble)));
  const auto constant =
      GradientOfExamples([](const Batch& part) { return part[1] * 2; }, model.batch(), parameters);
  EXPECT_TRUE(constant[0].equal(at::zeros({3}, at::kDouble)));
}

TEST(GradientOfExamples, IsAtLeastSinglePrecisionAndDense) {
  const LeastSquares model(2, at::kBFloat16);
  for (const at::Tensor& gradient :
       GradientOfExamples(model.loss(), model.batch(), model.parameters())) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat);
  }
  const at::Tensor table = at::ones({5, 2}).requires_grad_();
  const auto sparse = GradientOfExamples(
      [&](const Batch& part) {
        return at::embedding(table, part[0], -1, false, /*sparse=*/true).sum({1, 2});
      },
      {at::tensor({1, 1, 3}).reshape({1, 3})}, {{"table", table}});
  EXPECT_TRUE(sparse[0].equal(at::tensor({0., 2., 0., 1., 0.}).unsqueeze(1).expand({5, 2})));
}

TEST(GradientOfExamples, WorksWhereGradientsAreOff) {
  const LeastSquares model(2);
  const at::NoGradGuard no_grad;
  const auto gradient = GradientOfExamples(model.loss(), model.batch(), model.parameters());
  EXPECT_LT(Distance(gradient[1], model.Gradients().mean(0).narrow(0, 3, 1)), 1e-14);
}

TEST(GradientOfExamples, RefusesALossThatIsNotOneValueAnExample) {
  const LeastSquares model(4);
  const auto run = [&](const std::function<at::Tensor(at::Tensor)>& reduce) {
    GradientOfExamples([&](const Batch& part) { return reduce(model.loss()(part)); }, model.batch(),
                       model.parameters());
  };
  EXPECT_THAT([&] { run([](const at::Tensor& losses) { return losses.mean(); }); },
              ThrowsMessage<Error>(HasSubstr("shape [] for a batch of 4 examples")));
  EXPECT_THAT([&] { run([](const at::Tensor& losses) { return losses.unsqueeze(1); }); },
              ThrowsMessage<Error>(HasSubstr("reduction none")));
  EXPECT_THAT([&] { run([](const at::Tensor& losses) { return losses.to(at::kLong); }); },
              ThrowsMessage<Error>(HasSubstr("floating-point")));
}

TEST(LoopClippedSum, ClipsEachExampleToTheBound) {
  const LeastSquares model(6);
  const at::Tensor gradients = model.Gradients();
  const at::Tensor norms = gradients.square().sum(1).sqrt();
  const double bound = norms.median().item<double>();
  const LoopResult result =
      LoopClippedSum(model.loss(), model.batch(), model.parameters(), BoundPolicy(bound));
  const at::Tensor factors = (bound / norms).clamp_max(1);
  const at::Tensor expected = (gradients * factors.unsqueeze(1)).sum(0);
  EXPECT_EQ(result.norms.sizes(), (std::vector<std::int64_t>{1, 6}));
  EXPECT_LT(Distance(result.norms[0], norms), 1e-13);
  EXPECT_LT(Distance(result.factors[0], factors), 1e-13);
  EXPECT_LT(Distance(result.sum[0], expected.narrow(0, 0, 3)), 1e-13);
  EXPECT_LT(Distance(result.sum[1], expected.narrow(0, 3, 1)), 1e-13);
  EXPECT_EQ((factors < 1).sum().item<std::int64_t>(), 3);
}

TEST(LoopClippedSum, ClipsEachGroupByItsOwnNorm) {
  const LeastSquares model(6);
  const at::Tensor weights = model.Gradients().narrow(1, 0, 3);
  const at::Tensor biases = model.Gradients().narrow(1, 3, 1);
  const LoopResult result = LoopClippedSum(model.loss(), model.batch(), model.parameters(),
                                           BoundPolicy(0.5, /*layerwise=*/true));
  const auto clipped = [](const at::Tensor& rows) {
    return (rows * (0.5 / rows.square().sum(1, true).sqrt()).clamp_max(1)).sum(0);
  };
  EXPECT_EQ(result.norms.sizes(), (std::vector<std::int64_t>{2, 6}));
  EXPECT_LT(Distance(result.sum[0], clipped(weights)), 1e-13);
  EXPECT_LT(Distance(result.sum[1], clipped(biases)), 1e-13);
}

TEST(LoopClippedSum, DividesAShortMicroBatchByTheFullSize) {
  const LeastSquares model(5);
  const at::Tensor gradients = model.Gradients();
  const LoopResult result = LoopClippedSum(model.loss(), model.batch(), model.parameters(),
                                           BoundPolicy(1e9), /*micro_batch=*/2);
  const at::Tensor units = at::stack({gradients.narrow(0, 0, 2).sum(0),
                                      gradients.narrow(0, 2, 2).sum(0), gradients[4]}) /
                           2;
  EXPECT_LT(Distance(result.norms[0], units.square().sum(1).sqrt()), 1e-13);
  EXPECT_LT(Distance(result.sum[0], units.sum(0).narrow(0, 0, 3)), 1e-13);
  EXPECT_THROW(LoopClippedSum(model.loss(), model.batch(), model.parameters(), BoundPolicy(1), 0),
               Error);
}

TEST(LoopClippedSum, AppliesTheCoordinateTransform) {
  const LeastSquares model(4);
  const CoordinateTransform transform{
      {at::full({3}, 0.25, at::kDouble), at::full({1}, -1.0, at::kDouble)},
      {at::tensor({1.0, 2.0, 4.0}, at::kDouble), at::full({1}, 0.5, at::kDouble)}};
  const at::Tensor moved =
      (model.Gradients() - at::cat({transform.centre[0], transform.centre[1]})) /
      at::cat({transform.scale[0], transform.scale[1]});
  const at::Tensor norms = moved.square().sum(1, true).sqrt();
  const LoopResult result = LoopClippedSum(model.loss(), model.batch(), model.parameters(),
                                           BoundPolicy(1.0, false, &transform));
  const at::Tensor expected = (moved * norms.reciprocal().clamp_max(1)).sum(0);
  EXPECT_LT(Distance(result.norms[0], norms.squeeze(1)), 1e-13);
  EXPECT_LT(Distance(result.sum[0], expected.narrow(0, 0, 3)), 1e-13);
  EXPECT_LT(Distance(result.sum[1], expected.narrow(0, 3, 1)), 1e-13);
}

TEST(LoopClippedSum, GivesNothingToExamplesThatAreNotFinite) {
  for (const bool layerwise : {false, true}) {
    LeastSquares model(5);
    const BoundPolicy policy(1.0, layerwise);
    const Batch kept{at::cat({model.x.narrow(0, 0, 1), model.x.narrow(0, 2, 2)}),
                     at::cat({model.y.narrow(0, 0, 1), model.y.narrow(0, 2, 2)})};
    const LoopResult expected = LoopClippedSum(model.loss(), kept, model.parameters(), policy);
    model.x[1][2] = std::numeric_limits<double>::quiet_NaN();
    model.y[4] = std::numeric_limits<double>::infinity();
    const LoopResult result =
        LoopClippedSum(model.loss(), model.batch(), model.parameters(), policy);
    EXPECT_TRUE(result.sum[0].equal(expected.sum[0]));
    EXPECT_TRUE(result.sum[1].equal(expected.sum[1]));
    EXPECT_EQ(result.factors.select(1, 1).abs().max().item<double>(), 0);
    EXPECT_EQ(result.factors.select(1, 4).abs().max().item<double>(), 0);
    EXPECT_GT(result.factors.select(1, 0).min().item<double>(), 0);
  }
}

TEST(LoopClippedSum, OfAnEmptyBatchIsZero) {
  const LeastSquares model(0, at::kFloat);
  const LoopResult result =
      LoopClippedSum(model.loss(), model.batch(), model.parameters(), BoundPolicy(1.0, true));
  EXPECT_TRUE(result.sum[0].equal(at::zeros({3})));
  EXPECT_TRUE(result.sum[1].equal(at::zeros({1})));
  EXPECT_EQ(result.norms.sizes(), (std::vector<std::int64_t>{2, 0}));
}

TEST(LoopClippedSum, LosesNothingOfSmallGradientsBesideALargeOne) {
  // One gradient of 2^30 and 1,000 of 1, not clipped: a float32 accumulator would keep none of the
  // small ones (half an ulp of 2^30 is 32).
  at::Tensor w = at::zeros({1}).requires_grad_();
  const at::Tensor x = at::ones({1001, 1});
  x[0] = std::ldexp(1.0, 30);
  const LoopResult result = LoopClippedSum([&](const Batch& part) { return part[0].mv(w); }, {x},
                                           {{"w", w}}, BoundPolicy(1e12));
  EXPECT_EQ(result.sum[0].item<float>(), static_cast<float>(std::ldexp(1.0, 30) + 1000));
}

}  // namespace
}  // namespace sordino
