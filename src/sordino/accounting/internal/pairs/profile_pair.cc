#include "sordino/accounting/internal/pairs/profile_pair.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/base/check.h"

namespace sordino {
namespace {

double ProfileFall(const ProfilePoint& a, const ProfilePoint& b) {
  return (a.delta - b.delta) / (b.growth - a.growth);
}

}  // namespace

LossPair LossesOf(std::vector<ProfilePoint> points) {
  std::sort(points.begin(), points.end(),
            [](const ProfilePoint& a, const ProfilePoint& b) { return a.growth < b.growth; });
  std::vector<ProfilePoint> hull;
  for (const ProfilePoint& point : points) {
    if (!hull.empty() && point.growth <= hull.back().growth) {
      hull.back().delta = std::max(hull.back().delta, point.delta);
      continue;
    }
    // By the slopes that the masses are made of, so that no mass is below zero.
    while (hull.size() > 1 &&
           ProfileFall(hull[hull.size() - 2], hull.back()) < ProfileFall(hull.back(), point)) {
      hull.pop_back();
    }
    hull.push_back(point);
  }
  LossPair pair;
  // Beyond its least value the profile counts as constant.
  while (hull.size() > 1 && hull.back().delta >= hull[hull.size() - 2].delta) hull.pop_back();
  pair.infinite_mass = hull.back().delta;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const double fall = ProfileFall(hull[i - 1], hull[i]) -
                        (i + 1 < hull.size() ? ProfileFall(hull[i], hull[i + 1]) : 0);
    if (fall > 0) pair.atoms.push_back({std::log1p(hull[i].growth), fall * (1 + hull[i].growth)});
  }
  return pair;
}

LossPair SymmetricPair(std::vector<ProfilePoint> points) {
  double at_zero = 1;
  for (const ProfilePoint& point : points) {
    at_zero = std::min(at_zero, (point.delta + point.growth / 2) / (1 + point.growth / 2));
  }
  bool found = false;
  for (ProfilePoint& point : points) {
    if (point.growth != 0) continue;
    point.delta = at_zero;
    found = true;
  }
  SORDINO_CHECK(found, "a profile without its point at epsilon 0");
  LossPair pair = LossesOf(std::move(points));
  pair.absent_q = pair.infinite_mass;
  double rest = 1 - pair.infinite_mass;
  const std::size_t above = pair.atoms.size();
  for (std::size_t i = 0; i < above; ++i) {
    const LossAtom atom = pair.atoms[i];
    pair.atoms.push_back({-atom.loss, atom.mass * std::exp(-atom.loss)});
    rest -= atom.mass + pair.atoms.back().mass;
  }
  pair.atoms.push_back({0.0, std::max(0.0, rest)});
  // Sums of as many masses, each rounded to 2^-52 of itself.
  pair.q_rounding = 0x1p-46;
  return pair;
}

}  // namespace sordino
