#include "sordino/accounting/loss_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <functional>
#include <memory>

#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Add;
using testing::LaplacePair;
using testing::Remove;
using testing::Replace;

struct NamedDensity {
  std::string name;
  std::shared_ptr<const GaussianMixtureDensity> density;
};

std::vector<NamedDensity> Mixtures() {
  std::vector<NamedDensity> all;
  for (const double sigma : {0.05, 0.7, 3.0, 1000.0}) {
    for (const double rate : {1e-9, 0.01, 0.9}) {
      const std::string text = " sigma " + std::to_string(sigma) + " rate " + std::to_string(rate);
      all.push_back({"remove" + text, Remove(rate, sigma)});
      all.push_back({"add" + text, Add(rate, sigma)});
      all.push_back({"replace" + text, Replace(rate, sigma)});
    }
  }
  return all;
}

// Integral over [a, b] in pieces of the density's own scale.
double Integral(const std::function<double(double)>& f, double a, double b, double scale) {
  const auto pieces = static_cast<int>(std::ceil((b - a) / (2 * scale)));
  double sum = 0;
  for (int i = 0; i < pieces; ++i) {
    const double low = a + (b - a) * i / pieces;
    const double high = a + (b - a) * (i + 1) / pieces;
    sum += boost::math::quadrature::gauss_kronrod<double, 31>::integrate(f, low, high, 0);
  }
  return sum;
}

TEST(GaussianMixtureDensity, BothDistributionsHaveMassOne) {
  for (const auto& mixture : Mixtures()) {
    const auto& name = mixture.name;
    const auto& d = mixture.density;
    const double low = -1 - 10 * d->sigma();
    const double high = 1 + 10 * d->sigma();
    const double p =
        Integral([&](double x) { return std::exp(d->LogDensity(x)); }, low, high, d->Scale());
    const double q = Integral([&](double x) { return std::exp(d->LogDensity(x) - d->Loss(x)); },
                              low, high, d->Scale());
    EXPECT_NEAR(p, 1, 1e-12) << name;
    EXPECT_NEAR(q, 1, 1e-12) << name;
  }
}

TEST(GaussianMixtureDensity, LossIncreasesAndCoordinateInvertsIt) {
  for (const auto& [name, d] : Mixtures()) {
    double previous = -1e300;
    for (double z = -8; z <= 8; z += 0.25) {
      const double x = z * d->sigma();
      const double loss = d->Loss(x);
      EXPECT_GE(loss, previous) << name << " at " << x;
      previous = loss;
      const double back = d->CoordinateOf(loss);
      if (!std::isfinite(back)) continue;  // the loss is at its bound to the last digit
      // Where the loss is flat its rounding moves the coordinate: compare losses.
      EXPECT_NEAR(d->Loss(back), loss, 1e-13 * std::max(1.0, std::abs(loss)))
          << name << " at " << x;
    }
  }
}

TEST(GaussianMixtureDensity, MassesAreThoseOfTheNumerator) {
  for (const auto& mixture : Mixtures()) {
    const auto& name = mixture.name;
    const auto& d = mixture.density;
    for (const double z : {-3.0, -0.5, 0.0, 1.0, 4.0}) {
      const double x = z * d->sigma();
      EXPECT_NEAR(d->MassBelow(x) + d->MassAbove(x), 1, 1e-14) << name;
    }
    const double low = 2 * d->sigma();
    const double tail = Integral([&](double x) { return std::exp(d->LogDensity(x)); }, low,
                                 low + 1 + 10 * d->sigma(), d->Scale());
    EXPECT_NEAR(d->MassAbove(low), tail, 1e-13) << name;
  }
}

TEST(GaussianMixtureDensity, SidesAgreeWithTheLoss) {
  for (const auto& [name, d] : Mixtures()) {
    for (double z = -30; z <= 30; z += 1.7) {
      const double x = z * d->sigma();
      const auto numerator = d->Numerator(x);
      const auto denominator = d->Denominator(x);
      const double loss = d->Loss(x);
      EXPECT_NEAR(numerator.log_ratio - denominator.log_ratio, loss,
                  1e-14 * (1 + std::abs(numerator.log_ratio) + std::abs(denominator.log_ratio)))
          << name;
      EXPECT_GE(numerator.hit, 0) << name;
      EXPECT_LE(numerator.hit, 1) << name;
      EXPECT_LE(denominator.hit, 1) << name;
    }
  }
}

TEST(GaussianMixtureDensity, LossIsBoundedOnlyWhenTheRecordMayBeMissing) {
  EXPECT_TRUE(std::isinf(Remove(0.1, 1)->LargestLoss()));
  EXPECT_TRUE(std::isinf(Replace(0.1, 1)->LargestLoss()));
  EXPECT_NEAR(Add(0.1, 1)->LargestLoss(), -std::log1p(-0.1), 1e-15);
}

TEST(LaplaceDensity, AtomsAndPieceHaveMassOneUnderBothDistributions) {
  for (const double scale : {0.05, 0.7, 3.0, 1000.0}) {
    for (const double rate : {1e-9, 0.01, 0.9, 1.0}) {
      for (const auto direction :
           {LaplaceDensity::Direction::kRemove, LaplaceDensity::Direction::kAdd}) {
        const LossPair pair = LaplacePair(scale, rate, direction);
        const LossDensity& d = *pair.pieces[0].density;
        double p = Integral([&](double x) { return std::exp(d.LogDensity(x)); }, 0, 1, d.Scale());
        double q = Integral([&](double x) { return std::exp(d.LogDensity(x) - d.Loss(x)); }, 0, 1,
                            d.Scale());
        for (const LossAtom& atom : pair.atoms) {
          p += atom.mass;
          q += atom.mass * std::exp(-atom.loss);
        }
        EXPECT_NEAR(p, 1, 1e-12) << scale << " " << rate;
        EXPECT_NEAR(q, 1, 1e-12) << scale << " " << rate;
      }
    }
  }
}

TEST(LaplaceDensity, MassesOfThePieceAreThoseOfItsDensity) {
  for (const double scale : {0.3, 2.0}) {
    for (const double rate : {0.01, 0.7}) {
      for (const auto direction :
           {LaplaceDensity::Direction::kRemove, LaplaceDensity::Direction::kAdd}) {
        const LaplaceDensity d(scale, rate, direction);
        for (const double x : {0.0, 0.3, 0.8, 1.0}) {
          const auto density = [&](double t) { return std::exp(d.LogDensity(t)); };
          EXPECT_NEAR(d.MassBelow(x), Integral(density, 0, x, 0.1), 1e-13) << scale << " " << rate;
          EXPECT_NEAR(d.MassAbove(x), Integral(density, x, 1, 0.1), 1e-13) << scale << " " << rate;
        }
      }
    }
  }
}

TEST(LaplaceDensity, CoordinateInvertsTheLoss) {
  for (const double scale : {0.05, 0.7, 1000.0}) {
    for (const double rate : {1e-9, 0.01, 1.0}) {
      for (const auto direction :
           {LaplaceDensity::Direction::kRemove, LaplaceDensity::Direction::kAdd}) {
        const LaplaceDensity d(scale, rate, direction);
        for (double x = 0; x <= 1; x += 0.0625) {
          const double loss = d.Loss(x);
          EXPECT_NEAR(d.Loss(d.CoordinateOf(loss)), loss, 1e-13 * std::max(1.0, std::abs(loss)))
              << scale << " " << rate << " " << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sordino
