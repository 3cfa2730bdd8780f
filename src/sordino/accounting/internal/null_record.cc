#include "sordino/accounting/internal/null_record.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr int kLosses = 1500;
// Losses reach so many standard deviations beyond the mean of the larger shift.
constexpr double kNullReach = 14;
// e^loss must stay in the range of a double.
constexpr double kLargestLoss = 600;
// Closed forms are exact to about 1e-13.
constexpr double kRaised = 1e-12;

double ProfileAt(double mu, double epsilon) {
  return std::exp(GaussianLogDelta(mu, epsilon) + GaussianLogDeltaError(mu, epsilon));
}

struct ProfilePoint {
  double more;  // e^loss - 1
  double delta;
};

}  // namespace

LossPair LossesAgainstNull(double sigma, double rate) {
  const double mu = 2 / sigma;
  const double reach = std::min(kLargestLoss, mu * (0.5 * mu + kNullReach));
  // Lower convex hull of the bound: a profile is convex, so it lies below that as well.
  std::vector<ProfilePoint> hull;
  for (int i = 0; i <= kLosses; ++i) {
    const double epsilon = reach * i / kLosses;
    const double growth = std::expm1(epsilon);
    const double beta = (1 + rate * growth) / (1 + growth);
    const double bound =
        rate * ((1 - beta) * ProfileAt(mu, epsilon) + beta * ProfileAt(mu / 2, epsilon));
    const ProfilePoint point{rate * growth, bound * (1 + kRaised)};
    while (hull.size() > 1) {
      const ProfilePoint& a = hull[hull.size() - 2];
      const ProfilePoint& b = hull.back();
      if ((b.delta - a.delta) * (point.more - a.more) <=
          (point.delta - a.delta) * (b.more - a.more))
        break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  LossPair pair;
  pair.infinite_mass = hull.back().delta;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const auto slope = [&](std::size_t k) {
      return (hull[k - 1].delta - hull[k].delta) / (hull[k].more - hull[k - 1].more);
    };
    const double fall = slope(i) - (i + 1 < hull.size() ? slope(i + 1) : 0);
    if (fall > 0) pair.atoms.push_back({std::log1p(hull[i].more), fall * (1 + hull[i].more)});
  }
  return pair;
}

LossPair MirroredLosses(const LossPair& pair) {
  LossPair mirrored;
  mirrored.absent_q = pair.infinite_mass;
  for (const LossAtom& atom : pair.atoms) {
    mirrored.atoms.push_back({-atom.loss, atom.mass * std::exp(-atom.loss)});
  }
  return mirrored;
}

}  // namespace sordino
