#include "sordino/accounting/renyi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "sordino/accounting/internal/renyi/renyi_bounds.h"
#include "sordino/accounting/internal/renyi/renyi_gaussian.h"
#include "sordino/accounting/testing/published_renyi.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr double kOfExact = 1e-11;

double Rdp(const Event& event, double order) {
  RenyiCurve curve(event);
  return curve(order);
}

Event Sampled(double rate, double noise, Adjacency adjacency = Adjacency::kAddRemove) {
  return Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise), adjacency));
}

// The binomial expansion of the moment at integer orders (Mironov, Talwar and Zhang 2019).
double IntegerOrder(double q, double sigma, int order) {
  double top = -kInfinity;
  std::vector<double> terms;
  for (int k = 0; k <= order; ++k) {
    const double term = std::lgamma(order + 1.0) - std::lgamma(k + 1.0) -
                        std::lgamma(order - k + 1.0) + k * std::log(q) +
                        (order - k) * std::log1p(-q) + k * (k - 1.0) / (2 * sigma * sigma);
    terms.push_back(term);
    top = std::max(top, term);
  }
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - top);
  return (top + std::log(sum)) / (order - 1);
}

TEST(SampledGaussianRenyi, AgreesWithTheBinomialSumAtIntegerOrders) {
  for (const double q : {1e-3, 0.01, 0.3, 0.9}) {
    for (const double sigma : {0.3, 0.8, 2.0, 10.0}) {
      for (const int order : {2, 3, 7, 32, 200}) {
        const double expected = IntegerOrder(q, sigma, order);
        // The sum itself loses digits where the answer is small.
        ASSERT_NEAR(Rdp(Sampled(q, sigma), order), expected, 1e-10 * expected + 1e-12)
            << q << " " << sigma << " " << order;
      }
    }
  }
}

TEST(SampledGaussianRenyi, OrderTwoHasItsClosedFormAtEverySize) {
  // log(1 + q^2 (e^(1/sigma^2) - 1))
  for (const double q : {1e-9, 1e-5, 0.1, 0.999}) {
    for (const double sigma : {0.05, 0.3, 1.0, 30.0, 1000.0}) {
      const double inverse = 1 / (sigma * sigma);
      const double expected =
          inverse > 100 ? 2 * std::log(q) + inverse : std::log1p(q * q * std::expm1(inverse));
      ASSERT_NEAR(Rdp(Sampled(q, sigma), 2) / expected, 1, kOfExact) << q << " " << sigma;
    }
  }
}

TEST(SampledGaussianRenyi, TendsToTheGaussianAndToNothing) {
  EXPECT_NEAR(Rdp(Sampled(1, 2), 3.5), 3.5 / 8, 1e-12);
  EXPECT_NEAR(Rdp(Sampled(1 - 1e-9, 2), 3.5), 3.5 / 8, 1e-7);
  EXPECT_EQ(Rdp(Sampled(0, 2), 3.5), 0);
}

TEST(SampledGaussianRenyi, IsMonotoneInOrderRateAndNoise) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 400; ++i) {
    const double q = std::pow(10, -9 * uniform(random));
    const double sigma = std::pow(10, -1.3 + 4.3 * uniform(random));
    const double order = 1 + std::pow(10, -8 + 14 * uniform(random));
    const double value = Rdp(Sampled(q, sigma), order);
    ASSERT_TRUE(value > 0 && value < kInfinity) << q << " " << sigma << " " << order;
    ASSERT_LE(value, order / (2 * sigma * sigma) * (1 + 1e-9));
    const double slack = 1 + 1e-9;
    ASSERT_LE(value, Rdp(Sampled(q, sigma), 1 + (order - 1) * 1.1) * slack);
    ASSERT_LE(value, Rdp(Sampled(std::min(1.0, q * 1.1), sigma), order) * slack);
    ASSERT_LE(value, Rdp(Sampled(q, sigma / 1.1), order) * slack);
  }
}

TEST(SampledGaussianRenyi, CumulantIsConvexAcrossTheJumpToLargeOrders) {
  // (alpha - 1) R is convex; a missed peak of the integrand would break it.
  for (const double q : {1e-6, 1e-3, 0.2}) {
    for (const double sigma : {0.1, 0.5, 2.0, 20.0}) {
      SampledGaussian moments(q, sigma);
      const auto cumulant = [&](double a) { return a * moments.Renyi(1 + a); };
      for (double a = 0.1; a < 1e4; a *= 1.15) {
        const double left = cumulant(a * 0.97);
        const double right = cumulant(a * 1.03);
        ASSERT_LE(cumulant(a), 0.5 * (left + right) * (1 + 1e-9)) << q << " " << sigma << " " << a;
      }
    }
  }
}

TEST(SampledGaussianRenyi, ReplaceOneLiesBetweenAddRemoveAndTwiceTheDistance) {
  for (const double q : {0.01, 0.3, 0.9}) {
    for (const double sigma : {0.5, 1.0, 4.0}) {
      for (const double order : {1.5, 4.0, 20.0}) {
        const double replaced = Rdp(Sampled(q, sigma, Adjacency::kReplaceOne), order);
        ASSERT_GE(replaced, Rdp(Sampled(q, sigma), order));
        const Event fixed = Event::Fixed(
            SamplingRate(q), Event::Gaussian(NoiseMultiplier(sigma / 2), Adjacency::kReplaceOne));
        ASSERT_LE(replaced, Rdp(fixed, order) * (1 + 1e-9)) << q << " " << sigma << " " << order;
      }
    }
  }
}

TEST(DiscreteGaussianRenyi, SampledSumEqualsTheIntegralForWideNoise) {
  for (const double sigma : {3.0, 20.0}) {
    const Event discrete = Event::Poisson(SamplingRate(0.1), Event::DiscreteGaussian(sigma, 1));
    ASSERT_NEAR(Rdp(discrete, 4.5) / Rdp(Sampled(0.1, sigma), 4.5), 1, 1e-9);
  }
  // Narrow noise: against the sum over integers, term by term.
  const double sigma = 0.4;
  const double q = 0.3;
  const double order = 2.5;
  double mass = 0;
  double moment = 0;
  for (int x = -30; x <= 30; ++x) {
    const double w = std::exp(-x * x / (2 * sigma * sigma));
    mass += w;
    moment += w * std::pow(1 - q + q * std::exp((2 * x - 1) / (2 * sigma * sigma)), order);
  }
  EXPECT_NEAR(Rdp(Event::Poisson(SamplingRate(q), Event::DiscreteGaussian(sigma, 1)), order),
              std::log(moment / mass) / (order - 1), 1e-10);
}

TEST(LaplaceRenyi, HasItsClosedForm) {
  for (const double scale : {0.05, 0.5, 1.0, 20.0, 1000.0}) {
    for (const double order : {1.001, 1.5, 2.0, 10.0, 300.0}) {
      const double lambda = 1 / scale;
      const double a = order - 1;
      const double log_up = std::log(order / (2 * order - 1)) + a * lambda;
      const double log_down = std::log(a / (2 * order - 1)) - order * lambda;
      const double expected = (log_up + std::log1p(std::exp(log_down - log_up))) / a;
      ASSERT_NEAR(Rdp(Event::Laplace(NoiseMultiplier(scale)), order), expected,
                  1e-9 * expected + 1e-13)
          << scale << " " << order;
    }
  }
}

TEST(LaplaceRenyi, SampledIsBelowUnsampledAndBelowAmplifiedPure) {
  for (const double scale : {0.05, 0.5, 3.0}) {
    for (const double q : {1e-4, 0.1, 0.9}) {
      for (const double order : {1.0, 1.5, 8.0, 1e6}) {
        const Event laplace = Event::Laplace(NoiseMultiplier(scale));
        const double value = Rdp(Event::Poisson(SamplingRate(q), laplace), order);
        ASSERT_GT(value, 0);
        ASSERT_LE(value, Rdp(laplace, order) * (1 + 1e-9));
        const double amplified = std::log1p(q * std::expm1(1 / scale));
        ASSERT_LE(value, amplified * (1 + 1e-9)) << scale << " " << q << " " << order;
      }
    }
  }
}

TEST(DiscreteLaplaceRenyi, TendsToPureAndToLaplace) {
  EXPECT_NEAR(Rdp(Event::DiscreteLaplace(1, 1), 1e8), 1, 1e-6);
  EXPECT_NEAR(Rdp(Event::DiscreteLaplace(1000, 1000), 3),
              Rdp(Event::Laplace(NoiseMultiplier(1)), 3), 2e-3);
  // Sensitivity 1 is randomised response with epsilon 1 / scale.
  EXPECT_NEAR(Rdp(Event::DiscreteLaplace(2, 1), 2.5), Rdp(Event::Pure(Epsilon(0.5)), 2.5), 1e-11);
}

TEST(PureRenyi, IsQuadraticForSmallEpsilonAndNeverAboveEpsilon) {
  for (const double order : {1.0, 2.0, 7.5}) {
    EXPECT_NEAR(Rdp(Event::Pure(Epsilon(1e-8)), order) / (order * 0.5e-16), 1, 1e-6);
    EXPECT_LE(Rdp(Event::Pure(Epsilon(3)), order), 3);
  }
  EXPECT_NEAR(Rdp(Event::Pure(Epsilon(3)), 1e9), 3, 1e-6);
}

TEST(FixedRenyi, IsBelowThePublishedBoundAndAbovePoisson) {
  for (const double q : {0.01, 0.2}) {
    for (const double sigma : {1.0, 2.5, 8.0}) {
      for (const int order : {2, 5, 20, 60}) {
        const double tight =
            Rdp(Event::Fixed(SamplingRate(q), Event::Gaussian(NoiseMultiplier(sigma))), order);
        ASSERT_LE(tight, testing::PublishedFixedGaussianRenyi(q, sigma, order) * (1 + 1e-9));
        ASSERT_GE(tight, Rdp(Sampled(q, sigma), order) * (1 - 1e-9)) << q << " " << sigma;
        ASSERT_LE(tight, order / (2 * sigma * sigma) * (1 + 1e-9));
      }
    }
  }
}

TEST(MixtureGaussianRenyi, TwoPartsAreTheSampledGaussian) {
  const Event mixture = Event::MixtureGaussian(NoiseMultiplier(1.5), {{0, 0.8}, {1, 0.2}});
  for (const double order : {1.5, 2.0, 9.0, 50.0}) {
    ASSERT_NEAR(Rdp(mixture, order) / Rdp(Sampled(0.2, 1.5), order), 1, 1e-9) << order;
  }
  const Event shift = Event::MixtureGaussian(NoiseMultiplier(2), {{3, 1}});
  EXPECT_NEAR(Rdp(shift, 2.5), 2.5 * 9 / 8, 1e-9);
}

TEST(TruncatedPoissonRenyi, LiesBetweenOneAndTwoUnits) {
  const Event gaussian = Event::Gaussian(NoiseMultiplier(2));
  const Event rarely = Event::TruncatedPoisson(1000, SamplingRate(0.01), 1000, gaussian);
  const Event often = Event::TruncatedPoisson(1000, SamplingRate(0.01), 1, gaussian);
  EXPECT_NEAR(Rdp(rarely, 8) / Rdp(Sampled(0.01, 2), 8), 1, 1e-9);
  EXPECT_GT(Rdp(often, 8), Rdp(Sampled(0.01, 2), 8));
  EXPECT_LE(Rdp(often, 8), Rdp(Sampled(0.01, 1), 8) * (1 + 1e-9));
}

TEST(RenyiCurve, AddsOverCompositionAndTakesTheWorstPart) {
  const Event a = Sampled(0.1, 1);
  const Event b = Event::Laplace(NoiseMultiplier(2));
  const double expected = 3 * Rdp(a, 4) + 5 * Rdp(b, 4);
  EXPECT_NEAR(Rdp(Event::Compose({{a, 3}, {b, 5}}), 4), expected, 1e-12 * expected);
  EXPECT_EQ(Rdp(Event::Parallel({a, b}), 4), std::max(Rdp(a, 4), Rdp(b, 4)));
  // Composing n times equals composing once with count n.
  EXPECT_EQ(Rdp(Event::Repeat(a, 100), 4), Rdp(Event::Compose(std::vector<Event>(100, a)), 4));
}

TEST(RenyiCurve, GenericSamplingIsNeverAboveTheMechanismItself) {
  const Event inner =
      Event::Compose({{Event::Zcdp(Rho(0.05)), 1}, {Event::Laplace(NoiseMultiplier(3)), 1}});
  for (const double order : {1.0, 1.5, 2.0, 2.5, 17.3, 5000.0}) {
    for (const double q : {0.001, 0.3, 1.0}) {
      const double whole = Rdp(inner, order);
      const double poisson = Rdp(Event::Poisson(SamplingRate(q), inner), order);
      const double fixed = Rdp(Event::Fixed(SamplingRate(q), inner), order);
      ASSERT_GT(poisson, 0);
      ASSERT_LE(poisson, whole * (1 + 1e-9));
      ASSERT_LE(fixed, whole * (1 + 1e-9));
    }
  }
  // The general bound loses against the exact answer but keeps the amplification.
  const Event zcdp = Event::Zcdp(Rho(0.125));
  const double bound = Rdp(Event::Poisson(SamplingRate(0.01), zcdp), 8);
  EXPECT_GE(bound, Rdp(Sampled(0.01, 2), 8));
  EXPECT_LT(bound, 0.01 * Rdp(zcdp, 8));
}

TEST(RenyiCurve, ApproximateEventsHaveAReasonInsteadOfACurve) {
  RenyiCurve curve(Event::Compose(
      {Event::Gaussian(NoiseMultiplier(1)), Event::Approximate(Epsilon(1), Delta(1e-9))}));
  EXPECT_FALSE(curve.reason().empty());
  EXPECT_EQ(curve(2), kInfinity);
  EXPECT_EQ(curve.ToEpsilon(std::log(1e-5)).epsilon, kInfinity);
  EXPECT_THROW(Rdp(Sampled(0.1, 1), 0.5), Error);
  EXPECT_THROW(Rdp(Sampled(0.1, 1), std::nan("")), Error);
}

// Replace-one, Poisson-sampled: the divergence of (1-q) f(x) + q f(x-k) against (1-q) f(x) + q
// f(x+k) summed over the integers, or over a fine lattice for continuous noise.
TEST(ReplacedNoiseRenyi, EqualsTheSumOverAllOutcomes) {
  const auto summed = [](const std::function<double(double)>& f, double shift, double q,
                         double order, double step, double reach) {
    double mass = 0;
    double excess = 0;  // of the moment over the mass, without cancellation
    const double first = step < 1 ? 0.5 * step - std::floor(reach) : -std::floor(reach);
    for (double x = first; x <= reach; x += step) {
      const double q_mass = (1 - q) * f(x) + q * f(x + shift);
      const double loss = std::log1p(q * (f(x - shift) - f(x + shift)) / q_mass);
      mass += q_mass;
      excess += q_mass * (std::expm1(order * loss) - order * std::expm1(loss));
    }
    return std::log1p(excess / mass) / (order - 1);
  };
  for (const double q : {1e-4, 0.03, 0.6}) {
    for (const double order : {1.5, 8.0, 40.0}) {
      for (const auto& [sigma, k] : {std::pair{0.7, 1.0}, {3.0, 2.0}, {9.0, 1.0}}) {
        const Event event = Event::Poisson(
            SamplingRate(q),
            Event::DiscreteGaussian(sigma, static_cast<std::uint64_t>(k), Adjacency::kReplaceOne));
        // Where the peak of the moment is further out, the sum underflows.
        if (2 * order * k + 8 * sigma > 26 * sigma) continue;
        const double z = 2 * sigma * sigma;
        const auto f = [z](double x) { return std::exp(-x * x / z); };
        const double exact = summed(f, k, q, order, 1, 26 * sigma);
        ASSERT_NEAR(Rdp(event, order) / exact, 1, 1e-7) << event.ToString() << " " << order;
      }
      for (const auto& [scale, k] : {std::pair{0.5, 1.0}, {2.0, 3.0}, {20.0, 7.0}}) {
        const Event event = Event::Poisson(
            SamplingRate(q),
            Event::DiscreteLaplace(scale, static_cast<std::uint64_t>(k), Adjacency::kReplaceOne));
        const auto f = [b = scale](double x) { return std::exp(-std::abs(x) / b); };
        const double exact = summed(f, k, q, order, 1, 45 * scale);
        ASSERT_NEAR(Rdp(event, order) / exact, 1, 1e-7) << event.ToString() << " " << order;
      }
      for (const double scale : {0.4, 3.0}) {
        const Event event = Event::Poisson(
            SamplingRate(q), Event::Laplace(NoiseMultiplier(scale), Adjacency::kReplaceOne));
        const auto f = [scale](double x) { return std::exp(-std::abs(x) / scale); };
        const double exact = summed(f, 1, q, order, 0x1p-11, 40 * scale);
        ASSERT_NEAR(Rdp(event, order) / exact, 1, 1e-3) << event.ToString() << " " << order;
      }
    }
  }
}

TEST(RenyiCurve, AbsurdNoiseGivesAReasonOrANumber) {
  for (const double noise : {1e-300, 1e-90, 1e-3, 1e9, 1e90}) {
    for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
      for (const Event& leaf : {Event::Gaussian(NoiseMultiplier(noise), adjacency),
                                Event::Laplace(NoiseMultiplier(noise), adjacency),
                                Event::DiscreteGaussian(noise, 1, adjacency),
                                Event::DiscreteLaplace(noise, 3, adjacency)}) {
        for (const double q : {1e-9, 0.5, 1.0}) {
          for (const Event& event :
               {leaf, Event::Poisson(SamplingRate(q), leaf), Event::Fixed(SamplingRate(q), leaf)}) {
            RenyiCurve curve(event);
            for (const double order : {1.0, 1 + 1e-9, 2.0, 37.5, 1e6}) {
              ASSERT_TRUE(curve(order) >= 0) << event.ToString() << " " << order;
            }
            const double epsilon = curve.ToEpsilon(-20).epsilon;
            ASSERT_TRUE(epsilon >= 0) << event.ToString();
            ASSERT_TRUE(epsilon < kInfinity || !curve.reason().empty()) << event.ToString();
          }
        }
      }
    }
  }
}

TEST(RenyiCurve, ManyDifferentStepsStayCloseToTheSumOfAll) {
  std::vector<Event> steps;
  double expected = 0;
  for (int i = 0; i < 3000; ++i) {
    const double noise = 1 + i / 3000.0;
    steps.push_back(Sampled(0.01, noise));
    if (i % 10 == 0) expected += 10 * Rdp(Sampled(0.01, 1 + (i + 4.5) / 3000.0), 6);
  }
  RenyiCurve curve(Event::Compose(steps));
  EXPECT_NEAR(curve(6) / expected, 1, 3e-3);
  // Rounded noise is never larger than the noise.
  EXPECT_GE(
      curve(6),
      Rdp(Event::Compose(std::vector<Event>(steps.begin(), steps.begin() + 1000)), 6) +
          Rdp(Event::Compose(std::vector<Event>(steps.begin() + 1000, steps.begin() + 2000)), 6) +
          Rdp(Event::Compose(std::vector<Event>(steps.begin() + 2000, steps.end())), 6));
}

TEST(RenyiCurve, RandomQuestionsGiveFiniteAnswers) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 500; ++i) {
    const double q = std::pow(10, -9 * uniform(random));
    const double sigma = std::pow(10, -1.3 + 4.3 * uniform(random));
    const auto steps = static_cast<std::uint64_t>(std::pow(10, 8 * uniform(random)));
    const double log_delta = std::log(0.5) - 690 * uniform(random);
    RenyiCurve curve(Event::Repeat(Sampled(q, sigma), steps));
    const RenyiEpsilonResult result = curve.ToEpsilon(log_delta);
    ASSERT_TRUE(result.epsilon >= 0 && result.epsilon < kInfinity)
        << q << " " << sigma << " " << steps << " " << log_delta;
    const RenyiDeltaResult back = curve.ToDelta(result.epsilon);
    // Rounding of epsilon counts (order - 1) times in log delta.
    const double rounding = 1e-10 * result.order * result.epsilon;
    ASSERT_LE(back.log_delta, log_delta + 1e-6 * std::abs(log_delta) + rounding)
        << q << " " << sigma << " " << steps << " " << result.order << " " << back.order << " "
        << result.epsilon << " excess " << back.log_delta - log_delta;
  }
}

}  // namespace
}  // namespace sordino
