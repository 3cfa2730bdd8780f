#include "sordino/accounting/internal/allocation/allocation_knots.h"

#include <algorithm>
#include <cmath>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using Direction = AllocationDirection;

// The lattice of losses relative to the deviation of the loss.
constexpr double kKnotsPerDeviation = 256;
constexpr double kMaxKnots = 1 << 15;
constexpr double kMaxKnotsQuick = 1 << 9;

// The lower convex hull of points with increasing k.
std::vector<PotentialPoint> LowerHull(const std::vector<PotentialPoint>& points) {
  std::vector<PotentialPoint> hull;
  for (const PotentialPoint& p : points) {
    while (hull.size() > 1) {
      const PotentialPoint& a = hull[hull.size() - 2];
      const PotentialPoint& b = hull.back();
      if ((b.value - a.value) * (p.k - a.k) <= (p.value - a.value) * (b.k - a.k)) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
  return hull;
}

}  // namespace

Knots::Knots(double t, double low_loss, double high_loss, double deviation, Effort effort)
    : batches(t), spacing(std::exp2(std::floor(std::log2(deviation / kKnotsPerDeviation)))) {
  const double most = effort == Effort::kQuick ? kMaxKnotsQuick : kMaxKnots;
  while ((high_loss - low_loss) / spacing > most) spacing *= 2;
  first = std::floor(low_loss / spacing);
  const double last = std::max(first + 2, std::ceil(high_loss / spacing));
  for (double i = first; i <= last; ++i) values.push_back(t * std::exp(i * spacing));
}

KnotLaw SplitBetween(const Knots& knots, const std::vector<ValueMass>& values,
                     Direction direction) {
  const bool remove = direction == Direction::kRemove;
  const std::vector<double>& k = knots.values;
  KnotLaw law;
  law.mass.assign(k.size(), 0.0);
  std::size_t i = 0;
  for (const ValueMass& v : values) {
    if (v.value < k.front()) {
      if (remove) {
        law.mass[0] += v.mass * (v.value / k.front());
      } else {
        law.below += v.mass;
      }
      continue;
    }
    while (i + 1 < k.size() && k[i + 1] <= v.value) ++i;
    if (i + 1 == k.size()) {
      if (remove && v.value > k.back()) {
        law.beyond += v.mass * (v.value / knots.batches);
      } else {
        law.mass[i] += v.mass;
      }
      continue;
    }
    const double up = (v.value - k[i]) / (k[i + 1] - k[i]);
    law.mass[i] += v.mass * (1 - up);
    law.mass[i + 1] += v.mass * up;
  }
  return law;
}

std::vector<double> CallPotential(const Knots& knots, const std::vector<double>& mass,
                                  double constant) {
  std::vector<double> potential(knots.size());
  double above = 0;
  double value = constant;
  for (std::size_t j = knots.size(); j-- > 0;) {
    if (j + 1 < knots.size()) {
      above += mass[j + 1];
      value += above * (knots.values[j + 1] - knots.values[j]);
    }
    potential[j] = value;
  }
  return potential;
}

std::vector<double> PutPotential(const Knots& knots, const KnotLaw& law) {
  std::vector<double> potential(knots.size());
  double below = law.below;
  double value = law.below * knots.values[0];
  for (std::size_t j = 0; j < knots.size(); ++j) {
    if (j > 0) value += below * (knots.values[j] - knots.values[j - 1]);
    potential[j] = value;
    below += law.mass[j];
  }
  return potential;
}

std::vector<double> MassesOfHull(const Knots& knots, const std::vector<PotentialPoint>& points,
                                 double slope_after, double* slope_before) {
  const std::vector<PotentialPoint> hull = LowerHull(points);
  std::vector<double> mass(knots.size(), 0.0);
  std::vector<double> slopes;
  for (std::size_t i = 0; i + 1 < hull.size(); ++i) {
    slopes.push_back((hull[i + 1].value - hull[i].value) / (hull[i + 1].k - hull[i].k));
  }
  slopes.push_back(slope_after);
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const double width = hull[i].k - hull[i - 1].k;
    // Rounding of the two values that a slope is made of.
    const double slack = 4e-16 * hull[i - 1].value / width + 4e-16 * hull[i].value / width;
    mass[hull[i].knot] = std::max(0.0, slopes[i] - slopes[i - 1]) + slack;
  }
  *slope_before = slopes.front();
  return mass;
}

LossPair PairOf(const Knots& knots, const std::vector<double>& mass, Direction direction,
                double shift) {
  LossPair pair;
  pair.on_lattice = true;
  for (std::size_t i = 0; i < mass.size(); ++i) {
    if (!(mass[i] > 0)) continue;
    const double loss = knots.LossAt(i);
    if (direction == Direction::kRemove) {
      pair.atoms.push_back({loss + shift, mass[i] * std::exp(loss)});
    } else {
      pair.atoms.push_back({-loss + shift, mass[i]});
    }
  }
  return pair;
}

Spread SpreadOf(const std::vector<ValueMass>& values, double t, Direction direction,
                double low_mass, double high_mass) {
  const auto weight = [&](const ValueMass& v) {
    return direction == Direction::kRemove ? v.mass * (v.value / t) : v.mass;
  };
  double total = 0;
  double mean = 0;
  for (const ValueMass& v : values) {
    if (!(v.value > 0)) continue;
    total += weight(v);
    mean += weight(v) * std::log(v.value / t);
  }
  mean /= total;
  double variance = 0;
  for (const ValueMass& v : values) {
    if (v.value > 0) variance += weight(v) / total * std::pow(std::log(v.value / t) - mean, 2);
  }
  Spread spread{-kInfinity, -kInfinity, std::sqrt(std::max(variance, 1e-20))};
  double mass = 0;
  for (auto v = values.begin(); v != values.end() && mass <= low_mass; ++v) {
    if (v->value > 0) spread.low_loss = std::log(v->value / t);
    mass += weight(*v);
  }
  mass = 0;
  for (auto v = values.rbegin(); v != values.rend() && mass <= high_mass; ++v) {
    if (v->value > 0) spread.high_loss = std::log(v->value / t);
    mass += weight(*v);
  }
  return spread;
}

}  // namespace sordino
