#include "sordino/accounting/internal/pairs/envelope.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/accounting/internal/atoms/atom_list.h"
#include "sordino/base/check.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kLogLost = -120;
constexpr double kRaise = 1e-10;
constexpr std::size_t kCells = 400;
constexpr std::size_t kMaxPoints = 800;
constexpr std::size_t kMaxAtoms = 64;
// e^loss must stay in the range of a double.
constexpr double kMaxLoss = 600;

AtomList FromAbove(const LossPair& pair) {
  if (pair.gaussian_mu == 0) return ListAtoms(pair, kLogLost, kCells, Bound::kUpper);
  LossPair density = DensityOfGaussian(pair.gaussian_mu);
  density.infinite_mass = pair.infinite_mass;
  return ListAtoms(density, kLogLost, kCells, Bound::kUpper);
}

// The losses of all lists, thinned where there are many; those of short lists stay.
std::vector<double> LossesFor(std::span<const LossPair> pairs, std::span<const AtomList> lists) {
  std::vector<double> losses;
  for (const AtomList& list : lists) {
    losses.insert(losses.end(), list.loss.begin(), list.loss.end());
  }
  std::sort(losses.begin(), losses.end());
  const std::size_t stride = losses.size() / kMaxPoints + 1;
  std::vector<double> kept = {0};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (i % stride == 0 || i + 1 == losses.size()) kept.push_back(losses[i]);
  }
  for (const LossPair& pair : pairs) {
    if (pair.atoms.size() > kMaxAtoms) continue;
    for (const LossAtom& atom : pair.atoms) kept.push_back(atom.loss);
  }
  std::erase_if(kept, [](double loss) { return !(std::abs(loss) < kMaxLoss); });
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

// Raises `delta` at the losses (in rising order) to the profile of the list. From the top down:
// with all mass p above l, and delta(l) known, delta(l') = p (1 - r) + r delta(l), r = e^{l' - l}.
void RaiseTo(const AtomList& list, const std::vector<double>& losses, std::vector<double>& delta) {
  double p = list.infinite;
  double value = list.infinite;
  double at = kInfinity;
  std::size_t next = list.loss.size();
  const auto move_to = [&](double loss) {
    const double fall = std::isinf(at) ? 0 : std::expm1(loss - at);
    // Mass at an infinite loss stays whole.
    value = list.infinite - (p - list.infinite) * fall + (value - list.infinite) * (1 + fall);
    at = loss;
  };
  for (std::size_t i = losses.size(); i-- > 0;) {
    while (next > 0 && list.loss[next - 1] >= losses[i]) {
      --next;
      move_to(list.loss[next]);
      p += list.mass[next];
    }
    move_to(losses[i]);
    delta[i] = std::max(delta[i], value);
  }
}

struct Point {
  double loss;
  double u;  // e^loss
  double delta;
};

// How fast delta falls between two of them.
double FallFrom(const Point& a, const Point& b) { return (a.delta - b.delta) / (b.u - a.u); }

}  // namespace

LossPair EnvelopeOf(std::span<const LossPair> pairs) {
  SORDINO_CHECK(!pairs.empty(), "an envelope of nothing");
  if (pairs.size() == 1) return pairs[0];
  std::vector<AtomList> lists;
  for (const LossPair& pair : pairs) lists.push_back(FromAbove(pair));
  const std::vector<double> losses = LossesFor(pairs, lists);
  std::vector<double> delta(losses.size(), 0.0);
  for (const AtomList& list : lists) RaiseTo(list, losses, delta);
  // Lower convex hull of the points, from (0, 1) on.
  std::vector<Point> hull = {{-kInfinity, 0, 1}};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Point point{losses[i], std::exp(losses[i]), std::min(1.0, delta[i] * (1 + kRaise))};
    if (point.u == hull.back().u) continue;  // delta falls, so the first of both is the larger one
    // By the slopes that the masses are made of, so that no mass is below zero.
    while (hull.size() > 1 &&
           FallFrom(hull[hull.size() - 2], hull.back()) < FallFrom(hull.back(), point)) {
      hull.pop_back();
    }
    hull.push_back(point);
  }
  LossPair envelope;
  envelope.infinite_mass = hull.back().delta;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const double before = FallFrom(hull[i - 1], hull[i]);
    const double after = i + 1 < hull.size() ? FallFrom(hull[i], hull[i + 1]) : 0;
    const double mass = std::max(0.0, before - after) * hull[i].u;
    if (mass > 0) envelope.atoms.push_back({hull[i].loss, mass});
  }
  // The slope at zero is the sum of all Q-masses.
  envelope.absent_q = 1 - (1 - hull[1].delta) / hull[1].u;
  envelope.q_rounding = 0x1p-50 / hull[1].u;
  return envelope;
}

}  // namespace sordino
