#include "sordino/accounting/internal/pairs/profile_pair.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/gaussian.h"

namespace sordino {
namespace {

double DeltaOf(const LossPair& pair, double epsilon) {
  double delta = pair.infinite_mass;
  for (const LossAtom& atom : pair.atoms) {
    if (atom.loss > epsilon) delta += atom.mass * -std::expm1(epsilon - atom.loss);
  }
  return delta;
}

std::vector<ProfilePoint> GaussianPoints(double mu, double spacing) {
  std::vector<ProfilePoint> points;
  for (double epsilon = 0; epsilon < 12; epsilon += spacing) {
    points.push_back({std::expm1(epsilon), std::exp(GaussianLogDelta(mu, epsilon))});
  }
  return points;
}

TEST(SymmetricPair, LiesCloselyAboveTheProfileToBothSides) {
  for (const double mu : {0.1, 1.0, 2.5}) {
    const LossPair pair = SymmetricPair(GaussianPoints(mu, 0.01));
    double p = pair.infinite_mass;
    double q = pair.absent_q;
    for (const LossAtom& atom : pair.atoms) {
      p += atom.mass;
      q += atom.mass * std::exp(-atom.loss);
    }
    EXPECT_NEAR(p, 1, 1e-12);
    EXPECT_NEAR(q, 1, 1e-12);
    for (double epsilon = -4; epsilon < 6; epsilon += 0.173) {
      const double other = std::exp(GaussianLogDelta(mu, std::abs(epsilon)));
      const double truth = epsilon >= 0 ? other : -std::expm1(epsilon) + std::exp(epsilon) * other;
      EXPECT_GE(DeltaOf(pair, epsilon), truth * (1 - 1e-9)) << mu << ' ' << epsilon;
      EXPECT_LE(DeltaOf(pair, epsilon), truth * 1.01 + 1e-4) << mu << ' ' << epsilon;
    }
  }
}

// A profile that says 1 at epsilon 0 and little elsewhere is not one: the other points bound it.
TEST(SymmetricPair, LowersWhatNoPairHasAtZero) {
  const LossPair pair = SymmetricPair({{0, 1}, {1, 0}});
  // (0 + 1/2) / (1 + 1/2): losses of log 2 to both sides, which is pure privacy of log 2.
  EXPECT_NEAR(DeltaOf(pair, 0), 1.0 / 3, 1e-15);
  EXPECT_NEAR(pair.atoms[0].loss, std::log(2), 1e-15);
  EXPECT_NEAR(pair.atoms[0].mass, 2.0 / 3, 1e-15);
  EXPECT_NEAR(pair.atoms[2].mass, 0, 1e-15);
}

}  // namespace
}  // namespace sordino
