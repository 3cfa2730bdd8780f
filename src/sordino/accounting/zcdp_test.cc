#include "sordino/accounting/zcdp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/moments.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

TEST(Zcdp, RhoBoundsTheRenyiCurveOfEveryEvent) {
  const Event events[] = {
      Event::Gaussian(NoiseMultiplier(2)),
      Event::Laplace(NoiseMultiplier(0.7)),
      Event::DiscreteGaussian(3, 2),
      Event::DiscreteLaplace(2, 3),
      Event::Pure(Epsilon(1.5)),
      Event::Zcdp(Rho(0.3)),
      Event::RandomizedResponse(0.4, 5, Adjacency::kReplaceOne),
      Event::RandomizedResponse(0.4, 5, Adjacency::kZeroOut),
      Event::Exponential(Epsilon(2)),
      Event::Tree(NoiseMultiplier(3), 100),
      Event::MixtureGaussian(NoiseMultiplier(1), {{0, 0.5}, {2, 0.5}}),
      Event::Poisson(SamplingRate(0.2), Event::Gaussian(NoiseMultiplier(1))),
      Event::Poisson(SamplingRate(0.9),
                     Event::Gaussian(NoiseMultiplier(1), Adjacency::kReplaceOne)),
      Event::Fixed(SamplingRate(0.2), Event::Laplace(NoiseMultiplier(1))),
      Event::TruncatedPoisson(100, SamplingRate(0.1), 3, Event::Gaussian(NoiseMultiplier(1))),
      Event::Compose({{Event::Gaussian(NoiseMultiplier(2)), 3}, {Event::Pure(Epsilon(0.1)), 9}}),
      Event::Parallel({Event::Gaussian(NoiseMultiplier(2)), Event::Pure(Epsilon(0.1))}),
      Event::None(),
  };
  for (const Event& event : events) {
    const ZcdpResult result = ZcdpOf(event);
    ASSERT_TRUE(result.reason.empty()) << event.ToString();
    RenyiCurve curve(event);
    for (const double order : {1.0, 1.01, 2.0, 7.3, 100.0, 1e5}) {
      ASSERT_LE(curve(order), result.rho * order * (1 + 1e-9) + 1e-15)
          << event.ToString() << " at " << order;
    }
  }
}

TEST(Zcdp, ApproximateEventsHaveAReason) {
  EXPECT_FALSE(ZcdpOf(Event::Approximate(Epsilon(1), Delta(1e-5))).reason.empty());
  EXPECT_TRUE(ZcdpOf(Event::Approximate(Epsilon(1), Delta(0))).reason.empty());
}

TEST(Zcdp, TightConversionIsBelowBunSteinke) {
  for (const double rho : {1e-8, 1e-3, 1.0, 100.0}) {
    for (const double log_delta : {-1.0, -11.5, -690.0}) {
      ASSERT_LE(ZcdpEpsilon(rho, log_delta).epsilon,
                (rho + 2 * std::sqrt(-rho * log_delta)) * (1 + 1e-9));
    }
  }
}

TEST(MomentsAccountant, IsAboveTheContinuousRenyiAnswerAndSkipsOtherEvents) {
  const Event sgd =
      Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(4))), 10000);
  const MomentsResult moments = MomentsAccountant(sgd, std::log(1e-5));
  RenyiCurve curve(sgd);
  EXPECT_GE(moments.epsilon, curve.ToEpsilon(std::log(1e-5), RenyiConversion::kOld).epsilon);
  EXPECT_LE(moments.epsilon, curve.ToEpsilon(std::log(1e-5), RenyiConversion::kOld).epsilon * 1.01);
  EXPECT_FALSE(MomentsAccountant(Event::Laplace(NoiseMultiplier(1)), -5).reason.empty());
  EXPECT_FALSE(MomentsAccountant(sgd, -kInfinity).reason.empty());
  EXPECT_EQ(MomentsAccountant(Event::None(), -5).epsilon, 0);
}

}  // namespace
}  // namespace sordino
