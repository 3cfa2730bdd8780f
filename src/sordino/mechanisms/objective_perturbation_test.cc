#include "sordino/mechanisms/objective_perturbation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// An objective whose log-determinant bound is J, whatever formula it comes from.
PerturbedObjective WithBound(double lipschitz, double log_ratio) {
  return {.gradient_bound = lipschitz,
          .trace_bound = std::expm1(log_ratio),
          .regularisation = 1,
          .directions = 1,
          .adjacency = Adjacency::kAddRemove};
}

// arXiv 2401.00583, with its own J = -log(1 - beta / lambda).
TEST(ObjectivePerturbation, HasTheProfileOfThePaperForItsJacobian) {
  const struct {
    double epsilon, lipschitz, sigma, beta, lambda, delta;
  } rows[] = {{1, 1, 5, .25, 2, 9.558800e-7},
              {.1, 1, 60, .25, 25, 2.059596e-10},
              {.05, 1, 2, .25, 5, .3837225}};
  for (const auto& row : rows) {
    const double published = -std::log1p(-row.beta / row.lambda);
    const double delta =
        ObjectiveDelta(WithBound(row.lipschitz, published), row.sigma, Epsilon(row.epsilon));
    EXPECT_NEAR(delta / row.delta, 1, 1e-6);
  }
}

TEST(ObjectivePerturbation, NeedsTheReferenceNoise) {
  const struct {
    double epsilon, lambda_factor, published, ours;
  } rows[] = {{1, 2, 11.541, 6.266}, {1, 5, 4.898, 4.672}, {1, 10, 4.302, 4.258}, {8, 2, 0, .7449}};
  for (const auto& row : rows) {
    const double lambda = row.lambda_factor * 0.25 / row.epsilon;
    const PerturbedObjective ours = PerturbedObjective::Logistic(1, lambda, Adjacency::kAddRemove);
    EXPECT_NEAR(*ObjectiveNoise(ours, Epsilon(row.epsilon), Delta(1e-5)), row.ours, 5e-4);
    if (row.published == 0) continue;
    const PerturbedObjective published = WithBound(1, -std::log1p(-0.25 / lambda));
    EXPECT_NEAR(*ObjectiveNoise(published, Epsilon(row.epsilon), Delta(1e-5)), row.published, 5e-4);
  }
}

// One record, one dimension: theta is a function of b alone, and its density is known. The
// hockey-stick divergence of the two outputs, by quadrature, is never above the bound.
struct OneRecord {
  double lambda;
  double sigma;
  // Losses log(1 + e^{-theta}) for the records of either side.
  double LogDensity(double theta, int records) const {
    const double p = 1 / (1 + std::exp(theta));
    const double b = records * p - lambda * theta;
    const double hessian = records * p * (1 - p) + lambda;
    return -0.5 * b * b / (sigma * sigma) + std::log(hessian) -
           0.5 * std::log(2 * M_PI * sigma * sigma);
  }
  double Divergence(int from, int to, double epsilon) const {
    const double reach = 14 * sigma / lambda + 2 / lambda;
    const int cells = 400000;
    const double width = 2 * reach / cells;
    double sum = 0;
    for (int i = 0; i < cells; ++i) {
      const double theta = -reach + (i + 0.5) * width;
      const double p = LogDensity(theta, from);
      const double q = LogDensity(theta, to);
      sum += std::max(0.0, std::exp(p) - std::exp(epsilon + q));
    }
    return sum * width;
  }
};

TEST(ObjectivePerturbation, BoundsTheTrueDivergenceOfAOneDimensionalFit) {
  for (const double lambda : {0.05, 0.3, 2.0}) {
    for (const double sigma : {0.4, 1.0, 3.0}) {
      const OneRecord fit{lambda, sigma};
      const PerturbedObjective objective =
          PerturbedObjective::Logistic(1, lambda, Adjacency::kAddRemove);
      for (const double epsilon : {0.1, 0.5, 1.0, 2.0, 4.0}) {
        const double bound = ObjectiveDelta(objective, sigma, Epsilon(epsilon));
        for (const int records : {0, 1, 3}) {
          EXPECT_LE(fit.Divergence(records, records + 1, epsilon), bound + 1e-9);
          EXPECT_LE(fit.Divergence(records + 1, records, epsilon), bound + 1e-9);
        }
      }
    }
  }
}

// The quadrature against draws, for several directions and both kinds of neighbours.
TEST(ObjectivePerturbation, ProfileIsTheExpectationOverChi) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (const std::int64_t classes : {3, 10}) {
    for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
      const PerturbedObjective o = PerturbedObjective::Softmax(classes, 1, 4, adjacency);
      const double sigma = 3;
      const double twice = adjacency == Adjacency::kReplaceOne ? 2 : 1;
      const double l = twice * std::sqrt(2.0);
      const double j = LogDeterminantBound(o);
      const double epsilon = j + 1.2;
      double sum = 0;
      double squares = 0;
      const int draws = 200000;
      for (int i = 0; i < draws; ++i) {
        double r2 = 0;
        for (int k = 0; k < twice * static_cast<double>(classes - 1); ++k) {
          const double z = normal(random);
          r2 += z * z;
        }
        const double loss = j + (2 * l * sigma * std::sqrt(r2) + l * l) / (2 * sigma * sigma);
        const double value = std::max(0.0, 1 - std::exp(epsilon - loss));
        sum += value;
        squares += value * value;
      }
      const double mean = sum / draws;
      const double error = std::sqrt((squares / draws - mean * mean) / draws);
      const double delta = ObjectiveDelta(o, sigma, Epsilon(epsilon));
      EXPECT_NEAR(delta, mean, 5 * error + 2e-3 * mean) << classes;
    }
  }
}

// For two degrees of freedom the expectation has a closed form: with c = epsilon - J - L^2 / (2
// sigma^2) and s = L / sigma it is e^{-r^2/2} - e^{c + s^2/2} (e^{-(r+s)^2/2} - s sqrt(2 pi) Q(r +
// s)) at the r where the loss is epsilon.
TEST(ObjectivePerturbation, QuadratureAgreesWithTheClosedFormOfTwoDegrees) {
  const PerturbedObjective o = PerturbedObjective::Logistic(1, 2, Adjacency::kReplaceOne);
  for (const double sigma : {0.7, 2.0, 8.0}) {
    for (const double epsilon : {0.2, 1.0, 3.0, 6.0}) {
      const double s = 2 / sigma;
      const double c = epsilon - LogDeterminantBound(o) - 0.5 * s * s;
      const double r = std::max(0.0, c / s);
      const double tail = 0.5 * std::erfc((r + s) / std::sqrt(2.0));
      const double closed =
          std::exp(-0.5 * r * r) - std::exp(c + 0.5 * s * s) * (std::exp(-0.5 * (r + s) * (r + s)) -
                                                                s * std::sqrt(2 * M_PI) * tail);
      const double delta = ObjectiveDelta(o, sigma, Epsilon(epsilon));
      EXPECT_GE(delta, closed * (1 - 1e-9)) << sigma << " " << epsilon;
      EXPECT_LE(delta, closed * (1 + 2e-3)) << sigma << " " << epsilon;
    }
  }
}

TEST(ObjectivePerturbation, NoiseMeetsItsBudgetAndLessDoesNot) {
  for (const std::int64_t classes : {2, 4}) {
    const PerturbedObjective o =
        PerturbedObjective::Softmax(classes, 1, 10, Adjacency::kReplaceOne);
    const double sigma = *ObjectiveNoise(o, Epsilon(1), Delta(1e-6));
    EXPECT_LE(ObjectiveDelta(o, sigma, Epsilon(1)), 1e-6);
    EXPECT_GT(ObjectiveDelta(o, sigma * 0.999, Epsilon(1)), 1e-6);
  }
}

TEST(ObjectivePerturbation, IsImpossibleWithoutRegularisationOrDelta) {
  const PerturbedObjective weak = PerturbedObjective::Logistic(1, 0.01, Adjacency::kAddRemove);
  EXPECT_FALSE(ObjectiveNoise(weak, Epsilon(1), Delta(1e-5)).has_value());
  EXPECT_FALSE(PureObjectiveRate(weak, Epsilon(1)).has_value());
  const PerturbedObjective strong = PerturbedObjective::Logistic(1, 10, Adjacency::kAddRemove);
  EXPECT_FALSE(ObjectiveNoise(strong, Epsilon(1), Delta(0)).has_value());
  EXPECT_THROW(LogDeterminantBound({.regularisation = 0}), Error);
  EXPECT_THROW(ObjectiveDelta(strong, 0, Epsilon(1)), Error);
}

TEST(ObjectivePerturbation, PureNoiseIsNoLargerThanThePublishedOne) {
  const PublishedObjectiveSplit first = PublishedPureObjective(Epsilon(1), 1000, .01, .25);
  EXPECT_NEAR(first.epsilon, .9506148, 5e-8);
  EXPECT_EQ(first.added_regularisation, 0);
  const PublishedObjectiveSplit second = PublishedPureObjective(Epsilon(.1), 45222, 1e-4, .25);
  EXPECT_NEAR(second.epsilon, .05, 1e-12);
  EXPECT_NEAR(second.added_regularisation, 1.183787e-4, 5e-11);
  // Their Lambda of the mean is lambda / n; their noise has the rate epsilon' / 2 with L = 1.
  const PerturbedObjective same =
      PerturbedObjective::Logistic(1, 1000 * .01, Adjacency::kReplaceOne);
  EXPECT_GT(*PureObjectiveRate(same, Epsilon(1)), first.epsilon / 2);
}

}  // namespace
}  // namespace sordino
