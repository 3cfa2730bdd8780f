#include "sordino/gradients/jl_clipping.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <typeinfo>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/seeded_directions.h"
#include "sordino/gradients/testing/test_policies.h"

namespace sordino {
namespace {

namespace nn = torch::nn;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Generator SeededGenerator(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

SeededDirections Seeded(std::uint64_t seed) { return SeededDirections(seed); }

JlOptions Options(std::int64_t directions, double failure_probability = 0.05) {
  return {directions, Delta(failure_probability)};
}

std::vector<NamedParameter> ParametersOf(const nn::Module& module) {
  std::vector<NamedParameter> parameters;
  for (const auto& entry : module.named_parameters()) {
    parameters.push_back({entry.key(), entry.value()});
  }
  return parameters;
}

// A model with its data; the loss of example i is a mean of squares of the output.
struct Problem {
  std::string name;
  std::vector<NamedParameter> parameters;
  LossFunction loss;
  Batch batch;
};

Problem Linear(std::int64_t examples = 6) {
  torch::manual_seed(3);
  nn::Linear module(5, 3);
  module->to(at::kDouble);
  return {"linear",
          ParametersOf(*module),
          [module](const Batch& batch) mutable {
            return (module(batch[0]) - batch[1]).square().mean(1);
          },
          {at::randn({examples, 5}, at::kDouble), at::randn({examples, 3}, at::kDouble)}};
}

std::vector<Problem> Problems() {
  torch::manual_seed(4);
  std::vector<Problem> problems{Linear()};
  nn::Sequential convolution(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(1)), nn::GroupNorm(2, 4),
                             nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4 * 4 * 4, 3));
  convolution->to(at::kDouble);
  problems.push_back({"convolution",
                      ParametersOf(*convolution),
                      [=](const Batch& batch) mutable {
                        return nn::functional::cross_entropy(
                            convolution->forward(batch[0]), batch[1],
                            nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
                      },
                      {at::randn({5, 2, 8, 8}, at::kDouble), at::randint(0, 3, {5}, at::kLong)}});
  nn::Embedding embedding(11, 6);
  nn::LayerNorm norm(nn::LayerNormOptions({6}));
  embedding->to(at::kDouble);
  norm->to(at::kDouble);
  std::vector<NamedParameter> parameters = ParametersOf(*embedding);
  for (const NamedParameter& parameter : ParametersOf(*norm)) parameters.push_back(parameter);
  problems.push_back({"embedding",
                      parameters,
                      [=](const Batch& batch) mutable {
                        return norm(embedding(batch[0]).cumsum(1)).pow(3).mean({1, 2});
                      },
                      {at::randint(0, 11, {5, 4}, at::kLong)}});
  nn::LSTM lstm(nn::LSTMOptions(4, 5).batch_first(true));
  problems.push_back({"lstm",
                      ParametersOf(*lstm),
                      [=](const Batch& batch) mutable {
                        return std::get<0>(lstm(batch[0])).square().mean({1, 2});
                      },
                      {at::randn({5, 3, 4})}});
  return problems;
}

double Norm(const std::vector<at::Tensor>& tensors) {
  double squared = 0;
  for (const at::Tensor& tensor : tensors) {
    squared += tensor.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squared);
}

std::vector<at::Tensor> Difference(const std::vector<at::Tensor>& a,
                                   const std::vector<at::Tensor>& b) {
  std::vector<at::Tensor> result;
  for (std::size_t p = 0; p < a.size(); ++p) result.push_back(a[p] - b[p]);
  return result;
}

// Flat clipping of centred and scaled gradients.
class CentredClipping : public FlatClipping {
 public:
  CentredClipping(ClipNorm bound, const std::vector<NamedParameter>& parameters)
      : FlatClipping(bound) {
    at::Generator generator = SeededGenerator(14);
    for (const NamedParameter& parameter : parameters) {
      const auto sizes = parameter.value.sizes();
      transform_.centre.push_back(at::empty(sizes, at::kDouble).normal_(0, 1, generator));
      transform_.scale.push_back(at::empty(sizes, at::kDouble).uniform_(0.5, 2, generator));
    }
  }
  const CoordinateTransform* transform() const override { return &transform_; }

 private:
  CoordinateTransform transform_;
};

TEST(JlSensitivityFactor, MatchesPublishedChiSquareQuantiles) {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4, lower critical values.
  struct Row {
    std::int64_t directions;
    double probability;
    double quantile;
  };
  for (const Row& row : {Row{1, 0.05, 0.004}, Row{2, 0.05, 0.103}, Row{10, 0.1, 4.865},
                         Row{10, 0.05, 3.940}, Row{10, 0.01, 2.558}, Row{10, 0.001, 1.479},
                         Row{30, 0.01, 14.953}, Row{100, 0.001, 61.918}}) {
    const double phi = JlSensitivityFactor(row.directions, row.probability);
    EXPECT_NEAR(static_cast<double>(row.directions) / (phi * phi), row.quantile, 5.1e-4);
  }
}

TEST(JlSensitivityFactor, IsRoundedUpwards) {
  // With two directions the quantile is -2 log(1 - beta).
  for (const double beta : {0.4, 0.05, 1e-3, 1e-6, 1e-9, 1e-12}) {
    const double exact = std::sqrt(2 / (-2 * std::log1p(-beta)));
    EXPECT_GT(JlSensitivityFactor(2, beta), exact);
    EXPECT_LT(JlSensitivityFactor(2, beta), exact * (1 + 1e-9));
  }
}

TEST(JlSensitivityFactor, FallsWithMoreDirectionsAndALargerFailureProbability) {
  EXPECT_GT(JlSensitivityFactor(10, 1e-6), JlSensitivityFactor(20, 1e-6));
  EXPECT_GT(JlSensitivityFactor(10, 1e-7), JlSensitivityFactor(10, 1e-6));
  EXPECT_GT(JlSensitivityFactor(1'000'000, 1e-6), 1);
  EXPECT_LT(JlSensitivityFactor(1'000'000, 1e-6), 1.01);
}

TEST(JlSensitivityFactor, RefusesWhatHasNoBound) {
  EXPECT_THROW(JlSensitivityFactor(0, 0.1), Error);
  for (const double beta : {0.0, 0.6, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(JlSensitivityFactor(10, beta), Error);
  }
}

TEST(JlClippedSum, RefusesABoundThatRoundingReaches) {
  const Problem problem = Linear();
  EXPECT_THROW(JlClippedSum(problem.loss, problem.batch, problem.parameters,
                            FlatClipping(ClipNorm(1e-13)), Options(8), Seeded(1)),
               Error);
}

TEST(JlNorms, SquareIsUnbiased) {
  // The mean of 5,000 squares over the squared norm has the standard deviation 0.02; 5.5 of them
  // are exceeded with probability 4e-8, by one of 18 norms with less than 1e-6.
  const Problem problem = Linear();
  for (const bool layerwise : {false, true}) {
    const FlatClipping flat(ClipNorm(1));
    std::vector<NamedParameter> parameters = problem.parameters;
    parameters[0].name = "a.weight";
    parameters[1].name = "b.bias";
    const NormClipping layers = NormClipping::Layerwise(parameters, ClipNorm(1));
    const ClippingPolicy& policy = layerwise ? static_cast<const ClippingPolicy&>(layers) : flat;
    const at::Tensor exact = LoopClippedSum(problem.loss, problem.batch, parameters, policy).norms;
    const at::Tensor estimate =
        JlNorms(problem.loss, problem.batch, parameters, policy, 5'000, Seeded(1));
    ASSERT_EQ(estimate.sizes(), exact.sizes());
    EXPECT_LT(((estimate / exact).square() - 1).abs().max().item<double>(), 0.11);
  }
}

TEST(JlNorms, AreOfTheCentredAndScaledGradient) {
  // As above, for 6 norms: less than 1e-6.
  const Problem problem = Linear();
  const CentredClipping policy(ClipNorm(1), problem.parameters);
  const at::Tensor exact =
      LoopClippedSum(problem.loss, problem.batch, problem.parameters, policy).norms;
  const at::Tensor estimate =
      JlNorms(problem.loss, problem.batch, problem.parameters, policy, 2'000, Seeded(15));
  EXPECT_LT(((estimate / exact).square() - 1).abs().max().item<double>(), 5.5 * std::sqrt(2 / 2e3));
}

TEST(JlNorms, FollowTheChiSquareDistribution) {
  // 1,000 estimates from 10 directions, in the ten bins between the deciles of chi^2_10. The
  // statistic has 9 degrees of freedom and exceeds 50 with probability 1.1e-7.
  constexpr std::array<double, 9> kDeciles{4.865,  6.179,  7.267,  8.295, 9.342,
                                           10.473, 11.781, 13.442, 15.987};
  const Problem problem = Linear(1);
  const FlatClipping policy(ClipNorm(1));
  const double exact =
      LoopClippedSum(problem.loss, problem.batch, problem.parameters, policy).norms.item<double>();
  std::array<int, 10> counts{};
  int failures = 0;
  const double phi = JlSensitivityFactor(10, 0.05);
  for (int draw = 0; draw < 1000; ++draw) {
    const double estimate = JlNorms(problem.loss, problem.batch, problem.parameters, policy, 10,
                                    Seeded(2'000 + static_cast<std::uint64_t>(draw)))
                                .item<double>();
    const double statistic = 10 * (estimate / exact) * (estimate / exact);
    counts[static_cast<std::size_t>(std::upper_bound(kDeciles.begin(), kDeciles.end(), statistic) -
                                    kDeciles.begin())]++;
    failures += estimate * phi < exact;
  }
  double statistic = 0;
  for (const int count : counts) statistic += (count - 100) * (count - 100) / 100.0;
  EXPECT_LT(statistic, 50);
  // Binomial(1000, 0.05): 50 with standard deviation 6.9; 5.5 of them: 4e-8.
  EXPECT_NEAR(failures, 50, 38);
}

TEST(JlClippedSum, IsTheSumOfGradientsWithTheFactorsOfTheEstimates) {
  for (const Problem& problem : Problems()) {
    const bool single = problem.parameters[0].value.scalar_type() == at::kFloat;
    const NormClipping layerwise = NormClipping::Layerwise(problem.parameters, ClipNorm(0.1));
    const FlatClipping flat(ClipNorm(0.1));
    const SteepClipping steep(ClipNorm(0.1), 0.01);
    const CentredClipping centred(ClipNorm(0.1), problem.parameters);
    for (const ClippingPolicy* policy :
         std::initializer_list<const ClippingPolicy*>{&flat, &layerwise, &steep, &centred}) {
      SCOPED_TRACE(problem.name + ", " + typeid(*policy).name());
      const at::Tensor norms =
          JlNorms(problem.loss, problem.batch, problem.parameters, *policy, 8, Seeded(3));
      const at::Tensor factors = policy->Factors(norms);
      const auto groups = policy->Groups(problem.parameters);
      std::vector<at::Tensor> expected;
      for (const NamedParameter& parameter : problem.parameters) {
        expected.push_back(at::zeros(parameter.value.sizes(), at::kDouble));
      }
      for (std::int64_t i = 0; i < Examples(problem.batch); ++i) {
        const auto gradient =
            GradientOfExamples(problem.loss, Slice(problem.batch, i, i + 1), problem.parameters);
        for (std::size_t p = 0; p < expected.size(); ++p) {
          at::Tensor value = gradient[p].to(at::kDouble);
          if (const CoordinateTransform* transform = policy->transform()) {
            value = (value - transform->centre[p]) / transform->scale[p];
          }
          expected[p] += factors[groups[p]][i] * value;
        }
      }
      const JlResult result = JlClippedSum(problem.loss, problem.batch, problem.parameters, *policy,
                                           Options(8), Seeded(3));
      EXPECT_LT(Norm(Difference(result.sum.gradients, expected)),
                (single ? 1e-5 : 1e-12) * (Norm(expected) + 1e-3));
      EXPECT_EQ(result.sum.gradients[0].scalar_type(), problem.parameters[0].value.scalar_type());
      EXPECT_TRUE(result.sum.clipped.RevealForAudit().equal((factors < 1).sum(1).to(at::kDouble)));
    }
  }
}

TEST(JlClippedSum, ApproachesTheExactSumWithManyDirections) {
  // A factor is off by 1 / sqrt(2 r) = 0.9 % (standard deviation) with 6,000 directions, the sum
  // by at most that times the number of examples times the bound; 6 of them: 2e-9 an example.
  const Problem problem = Linear();
  const FlatClipping policy(ClipNorm(0.1));
  const LoopResult exact = LoopClippedSum(problem.loss, problem.batch, problem.parameters, policy);
  EXPECT_EQ((exact.factors < 1).sum().item<std::int64_t>(), 6);
  const JlResult result = JlClippedSum(problem.loss, problem.batch, problem.parameters, policy,
                                       Options(6000), Seeded(4));
  EXPECT_LT(Norm(Difference(result.sum.gradients, exact.sum)), 6 * 0.1 * 6 / std::sqrt(12000));
}

// How often, in `draws` steps on one record with a large gradient, the record moves the sum by more
// than `limit`.
int Violations(int draws, std::int64_t directions, double limit) {
  const Problem problem = Linear(1);
  const FlatClipping policy(ClipNorm(0.01));
  JlOptions options = Options(directions);
  int violations = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const JlResult result = JlClippedSum(problem.loss, problem.batch, problem.parameters, policy,
                                         options, Seeded(5'000 + static_cast<std::uint64_t>(draw)));
    violations += Norm(result.sum.gradients) > limit;
  }
  return violations;
}

TEST(JlClippedSum, KeepsItsSensitivityButForTheFailureProbability) {
  const Problem problem = Linear(1);
  const JlResult result = JlClippedSum(problem.loss, problem.batch, problem.parameters,
                                       FlatClipping(ClipNorm(0.01)), Options(10, 0.05), Seeded(6));
  EXPECT_EQ(result.failure_probability, 0.05);
  // Binomial(1000, 0.05): 50 with standard deviation 6.9; 5.5 of them above: 2e-8.
  EXPECT_LT(Violations(1000, 10, result.sum.sensitivity.value()), 88);
}

TEST(JlClippedSum, WouldBreakASensitivityWithoutTheFactor) {
  // With the bound itself as the sensitivity, the record exceeds it whenever chi^2_10 < 10:
  // probability 0.5595, standard deviation of the count of 1,000 draws 15.7; 5.5 of them: 4e-8.
  EXPECT_NEAR(Violations(1000, 10, 0.01), 559.5, 87);
}

TEST(JlClippedSum, SharesTheFailureProbabilityAmongGroupsAndRecords) {
  const Problem problem = Linear();
  std::vector<NamedParameter> parameters = problem.parameters;
  parameters[0].name = "a.w";
  parameters[1].name = "b.w";
  const NormClipping policy(ClippingGroups::ByLayer(parameters), {ClipNorm(3), ClipNorm(4)});
  JlOptions options = Options(20, 1e-3);
  const auto sensitivity = [&](Adjacency adjacency) {
    options.adjacency = adjacency;
    const JlResult result =
        JlClippedSum(problem.loss, problem.batch, parameters, policy, options, Seeded(1));
    EXPECT_EQ(result.sum.adjacency, adjacency);
    EXPECT_EQ(result.failure_probability, 1e-3);
    return result.sum.sensitivity.value();
  };
  options.rounding = 0;
  const auto expect_just_above = [](double value, double exact) {
    EXPECT_GT(value, exact);
    EXPECT_LT(value, exact * (1 + 1e-8));
  };
  expect_just_above(sensitivity(Adjacency::kAddRemove), 5 * JlSensitivityFactor(20, 1e-3 / 2));
  expect_just_above(sensitivity(Adjacency::kZeroOut), 5 * JlSensitivityFactor(20, 1e-3 / 2));
  expect_just_above(sensitivity(Adjacency::kReplaceOne), 10 * JlSensitivityFactor(20, 1e-3 / 4));
}

TEST(JlClippedSum, GivesNothingToExamplesThatAreNotFinite) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e300}) {
    Problem problem = Linear();
    const FlatClipping policy(ClipNorm(1e6));
    const Batch rest{at::cat({problem.batch[0].narrow(0, 0, 2), problem.batch[0].narrow(0, 3, 3)}),
                     at::cat({problem.batch[1].narrow(0, 0, 2), problem.batch[1].narrow(0, 3, 3)})};
    const LoopResult expected = LoopClippedSum(problem.loss, rest, problem.parameters, policy);
    problem.batch[0][2][1] = bad;
    int passes = 0;
    const LossFunction counted = [&](const Batch& batch) {
      ++passes;
      return problem.loss(batch);
    };
    const JlResult result =
        JlClippedSum(counted, problem.batch, problem.parameters, policy, Options(4), Seeded(7));
    // The 4 directions, two passes for the check and the one that is differentiated.
    EXPECT_EQ(passes, 7);
    EXPECT_LT(Norm(Difference(result.sum.gradients, expected.sum)), 1e-12);
    EXPECT_EQ(result.sum.clipped.RevealForAudit().item<double>(), 1);
  }
}

TEST(JlClippedSum, GivesNothingToExamplesWithANotFiniteGradientAndAFiniteEstimate) {
  // where() keeps the infinite w / 0 out of the loss and of its forward derivative, but in reverse
  // mode 0 meets 1 / 0.
  const at::Tensor w = at::ones({1}, at::kDouble).requires_grad_();
  const auto loss = [&](const Batch& batch) {
    return at::where(batch[0] > 0, w / batch[0], at::zeros_like(batch[0]));
  };
  const std::vector<NamedParameter> parameters{{"w", w}};
  const Batch batch{at::tensor({1.0, 0.0, 2.0, 4.0, 0.0}, at::kDouble)};
  EXPECT_TRUE(
      at::isfinite(JlNorms(loss, batch, parameters, FlatClipping(ClipNorm(1)), 4, Seeded(1)))
          .all()
          .item<bool>());
  const JlResult result =
      JlClippedSum(loss, batch, parameters, FlatClipping(ClipNorm(1e6)), Options(4), Seeded(8));
  EXPECT_NEAR(result.sum.gradients[0].item<double>(), 1.75, 1e-12);
  EXPECT_EQ(result.sum.clipped.RevealForAudit().item<double>(), 2);
}

TEST(JlClippedSum, HandsOnTheCountsOfAPolicy) {
  Problem problem = Linear();
  const double middle =
      LoopClippedSum(problem.loss, problem.batch, problem.parameters, FlatClipping(ClipNorm(1)))
          .norms.median()
          .item<double>();
  const CountingClipping policy{ClipNorm(middle)};
  problem.batch[0][2][1] = std::numeric_limits<double>::infinity();
  const JlResult result =
      JlClippedSum(problem.loss, problem.batch, problem.parameters, policy, Options(8), Seeded(12));
  // clipped counts the examples above the bound; each is half an example below and above.
  const double clipped = result.sum.clipped.RevealForAudit().item<double>();
  EXPECT_GE(clipped, 1);
  EXPECT_LE(clipped, 5);
  EXPECT_EQ(result.sum.counts.RevealForAudit().item<double>(), 3 - clipped);
  EXPECT_EQ(result.sum.count_sensitivity.value(), 0.5);
  const JlResult plain = JlClippedSum(problem.loss, problem.batch, problem.parameters,
                                      FlatClipping(ClipNorm(1)), Options(8), Seeded(12));
  EXPECT_FALSE(plain.sum.counts.RevealForAudit().defined());
}

TEST(JlClippedSum, OnAGpuIsThatOfTheCpu) {
  if (!at::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  const Problem problem = Linear();
  std::vector<NamedParameter> there;
  for (const NamedParameter& parameter : problem.parameters) {
    there.push_back({parameter.name, parameter.value.detach().to(at::kCUDA).requires_grad_()});
  }
  const LossFunction loss = [&](const Batch& batch) {
    return (at::linear(batch[0], there[0].value, there[1].value) - batch[1]).square().mean(1);
  };
  const Batch batch{problem.batch[0].to(at::kCUDA), problem.batch[1].to(at::kCUDA)};
  const FlatClipping policy(ClipNorm(0.1));
  const JlResult here =
      JlClippedSum(problem.loss, problem.batch, problem.parameters, policy, Options(8), Seeded(13));
  const JlResult gpu = JlClippedSum(loss, batch, there, policy, Options(8), Seeded(13));
  EXPECT_LT(Norm(Difference({gpu.sum.gradients[0].cpu(), gpu.sum.gradients[1].cpu()},
                            here.sum.gradients)),
            1e-12);
}

TEST(JlClippedSum, CutIntoPhysicalBatchesGivesTheSameSum) {
  const Problem problem = Linear(7);
  const FlatClipping policy(ClipNorm(1e6));
  JlOptions options = Options(3);
  const auto whole =
      JlClippedSum(problem.loss, problem.batch, problem.parameters, policy, options, Seeded(1));
  options.physical_batch = 3;
  const auto cut =
      JlClippedSum(problem.loss, problem.batch, problem.parameters, policy, options, Seeded(1));
  EXPECT_LT(Norm(Difference(whole.sum.gradients, cut.sum.gradients)), 1e-12);
  EXPECT_EQ(whole.sum.sensitivity, cut.sum.sensitivity);
}

TEST(JlClippedSum, OfAnEmptyBatchIsZeroWithTheSameSensitivity) {
  const Problem problem = Linear();
  const FlatClipping policy(ClipNorm(1));
  const auto full =
      JlClippedSum(problem.loss, problem.batch, problem.parameters, policy, Options(3), Seeded(1));
  const auto empty = JlClippedSum(problem.loss, Slice(problem.batch, 0, 0), problem.parameters,
                                  policy, Options(3), Seeded(1));
  EXPECT_EQ(Norm(empty.sum.gradients), 0);
  EXPECT_EQ(empty.sum.sensitivity, full.sum.sensitivity);
}

TEST(JlClippedSum, RefusesModelsThatMixExamples) {
  torch::manual_seed(9);
  nn::Linear linear(4, 4);
  nn::BatchNorm1d norm(4);
  auto parameters = ParametersOf(*linear);
  const LossFunction loss = [&](const Batch& batch) {
    return norm(linear(batch[0])).square().select(1, 0);
  };
  const Batch batch{at::randn({8, 4})};
  EXPECT_THAT(
      [&] {
        JlClippedSum(loss, batch, parameters, FlatClipping(ClipNorm(1)), Options(2), Seeded(1));
      },
      ThrowsMessage<Error>(HasSubstr("batch norm")));
  norm->eval();
  JlClippedSum(loss, batch, parameters, FlatClipping(ClipNorm(1)), Options(2), Seeded(1));
}

TEST(JlClippedSum, RefusesModelsThatDrawRandomNumbers) {
  torch::manual_seed(10);
  nn::Linear linear(4, 8);
  const auto parameters = ParametersOf(*linear);
  const Batch batch{at::randn({8, 4})};
  const auto run = [&](const LossFunction& loss, bool check) {
    JlOptions options = Options(2);
    options.compare = check;
    JlClippedSum(loss, batch, parameters, FlatClipping(ClipNorm(1)), options, Seeded(1));
  };
  for (const bool check : {true, false}) {
    EXPECT_THAT(
        [&] {
          run(
              [&](const Batch& b) {
                return torch::dropout(linear(b[0]), 0.5, true).square().mean(1);
              },
              check);
        },
        ThrowsMessage<Error>(HasSubstr("take dropout out of the model")));
  }
  at::Generator own = SeededGenerator(11);
  const LossFunction unrepeatable = [&](const Batch& b) {
    const at::Tensor mask = at::empty_like(linear(b[0])).uniform_(0, 1, own) < 0.5;
    return (linear(b[0]) * mask).square().mean(1);
  };
  EXPECT_THROW(run(unrepeatable, true), Error);
  EXPECT_THAT([&] { run(unrepeatable, false); },
              ThrowsMessage<Error>(HasSubstr("forward and reverse mode disagree")));
}

TEST(JlClippedSum, KeepsTheBitsOfOthersWhateverIsNotFinite) {
  Problem problem = Linear();
  const FlatClipping policy(ClipNorm(0.5));
  const auto sum_with = [&](double value) {
    problem.batch[0][2][1] = value;
    return JlClippedSum(problem.loss, problem.batch, problem.parameters, policy, Options(4),
                        Seeded(7))
        .sum.gradients;
  };
  const auto nan = sum_with(std::numeric_limits<double>::quiet_NaN());
  const auto infinite = sum_with(std::numeric_limits<double>::infinity());
  for (std::size_t p = 0; p < nan.size(); ++p) EXPECT_TRUE(nan[p].equal(infinite[p]));
}

TEST(JlClippedSum, RefusesWhatItCannotBound) {
  const Problem problem = Linear();
  const FlatClipping policy(ClipNorm(1));
  const auto run = [&](const std::vector<NamedParameter>& parameters, const JlOptions& options,
                       const JlDirections& directions) {
    JlClippedSum(problem.loss, problem.batch, parameters, policy, options, directions);
  };
  EXPECT_THROW(run(problem.parameters, Options(0), Seeded(1)), Error);
  EXPECT_THROW(run(problem.parameters, Options(4, 0), Seeded(1)), Error);
  EXPECT_THROW(run({}, Options(4), Seeded(1)), Error);
  EXPECT_THAT(
      [&] {
        run({{"half", at::ones({2}, at::kBFloat16).requires_grad_()}}, Options(4), Seeded(1));
      },
      ThrowsMessage<Error>(HasSubstr("'half' has type BFloat16")));
  // In float32 an estimate from one direction, at 1e-6, may be 800,000 times too small.
  const at::Tensor w = at::ones({1}).requires_grad_();
  EXPECT_THAT(
      [&] {
        run({{"w", w}}, Options(1, 1e-6), Seeded(1));
      },
      ThrowsMessage<Error>(HasSubstr("use more directions")));
}

}  // namespace
}  // namespace sordino
