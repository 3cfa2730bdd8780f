#include "sordino/accounting/gdp.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sordino {
namespace {

TEST(Gdp, GaussiansAddInSquaresAndAreSound) {
  const GdpResult result = GdpOf(Event::Compose(
      {{Event::Gaussian(NoiseMultiplier(10)), 50}, {Event::Gaussian(NoiseMultiplier(5)), 50}}));
  EXPECT_TRUE(result.sound);
  EXPECT_NEAR(result.mu, std::sqrt(50 / 100.0 + 50 / 25.0), 1e-12);
}

TEST(Gdp, SampledGaussiansGiveAnEstimateThatIsMarked) {
  const Event sgd =
      Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1))), 10000);
  const GdpResult result = GdpOf(sgd);
  EXPECT_FALSE(result.sound);
  EXPECT_NEAR(result.mu, 0.01 * std::sqrt(1e4 * (std::exp(1.0) - 1)), 1e-12);
  EXPECT_TRUE(GdpOf(Event::Poisson(SamplingRate(1), Event::Gaussian(NoiseMultiplier(2)))).sound);
}

TEST(Gdp, OtherEventsAndTinyNoiseHaveAReason) {
  EXPECT_FALSE(GdpOf(Event::Laplace(NoiseMultiplier(1))).reason.empty());
  EXPECT_FALSE(GdpOf(Event::Poisson(SamplingRate(0.1), Event::Gaussian(NoiseMultiplier(0.01))))
                   .reason.empty());
  EXPECT_EQ(GdpOf(Event::None()).mu, 0);
}

}  // namespace
}  // namespace sordino
