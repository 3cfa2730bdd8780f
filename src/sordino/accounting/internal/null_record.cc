#include "sordino/accounting/internal/null_record.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr int kLosses = 1500;
constexpr int kQuickLosses = 200;
// Losses reach so many standard deviations beyond the mean of the larger shift.
constexpr double kNullReach = 14;
// e^loss must stay in the range of a double.
constexpr double kLargestLoss = 600;
// Closed forms are exact to about 1e-13.
constexpr double kRaised = 1e-12;

double ProfileAt(double mu, double epsilon) {
  return std::exp(GaussianLogDelta(mu, epsilon) + GaussianLogDeltaError(mu, epsilon));
}

// The least of the bounds on delta at e^epsilon = u = 1 + growth, over r.
double LeastBound(double mu, double rate, double growth, Effort effort) {
  const double u = 1 + growth;
  const double beta = (1 + rate * growth) / u;
  double least = 1;
  const auto try_share = [&](double share) {
    double bound = 0;
    for (const auto& [part, mixed, shift] :
         {std::tuple(share, beta, mu / 2), std::tuple(1 - share, 1 - beta, mu)}) {
      if (part <= 0) continue;
      const double ratio = u * mixed / part;
      if (!(ratio >= 1)) return;
      bound += part * ProfileAt(shift, std::log(ratio));
    }
    least = std::min(least, bound);
  };
  for (const double share : {0.0, beta, 1.0}) try_share(share);
  if (effort == Effort::kFull) {
    for (double share = 0.05; share < 1; share += 0.1) try_share(share);
  }
  return least;
}

struct ProfilePoint {
  double more;  // e^loss - 1
  double delta;
};

}  // namespace

LossPair LossesAgainstNull(double sigma, double rate, Effort effort) {
  const int losses = effort == Effort::kFull ? kLosses : kQuickLosses;
  const double mu = 2 / sigma;
  const double reach = std::min(kLargestLoss, mu * (0.5 * mu + kNullReach));
  // Lower convex hull of the bound: a profile is convex, so it lies below that as well.
  std::vector<ProfilePoint> hull;
  for (int i = 0; i <= losses; ++i) {
    const double epsilon = reach * i / losses;
    const double growth = std::expm1(epsilon);
    const ProfilePoint point{rate * growth,
                             rate * LeastBound(mu, rate, growth, effort) * (1 + kRaised)};
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
