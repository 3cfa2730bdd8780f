#include "sordino/accounting/internal/engines/engine_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// The expected number of steps that a record takes part in, where all are sampled densities;
// infinity where that says nothing.
double ExpectedHits(const std::vector<CountedPair>& pairs) {
  double hits = 0;
  for (const CountedPair& p : pairs) {
    if (p.pair.pieces.size() != 1) return kInfinity;
    const auto* mixture =
        dynamic_cast<const GaussianMixtureDensity*>(p.pair.pieces.front().density.get());
    if (mixture == nullptr) return kInfinity;
    hits += static_cast<double>(p.count) * mixture->HitProbability();
  }
  return hits;
}

}  // namespace

PairShape ShapeOf(const std::vector<CountedPair>& pairs) {
  PairShape shape;
  for (const CountedPair& p : pairs) {
    const auto count = static_cast<double>(p.count);
    if (!p.pair.atoms.empty() || !p.pair.pieces.empty()) shape.only_gaussian = false;
    shape.mu2 += count * p.pair.gaussian_mu * p.pair.gaussian_mu;
    shape.log_survival += count * std::log1p(-p.pair.infinite_mass);
    shape.largest_loss += count * LargestLoss(p.pair);
  }
  shape.single = pairs.size() == 1 && pairs[0].count == 1 && shape.mu2 == 0;
  return shape;
}

double FinitePart(double log_delta, double log_survival) {
  if (log_survival == 0) return log_delta;
  const double share = -std::expm1(log_survival) * std::exp(-log_delta);
  return share < 1 ? log_delta + std::log1p(-share) : -kInfinity;
}

bool IsShort(const std::vector<CountedPair>& pairs) {
  constexpr double kMaxGridSteps = 64;
  double steps = 0;
  for (const CountedPair& p : pairs) steps += static_cast<double>(p.count);
  return pairs.size() <= kMaxGridPairs && steps <= kMaxGridSteps;
}

bool HasDensity(const std::vector<CountedPair>& pairs) {
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const CountedPair& p) { return !p.pair.pieces.empty(); });
}

bool HasLattice(const std::vector<CountedPair>& pairs) {
  constexpr std::size_t kMaxBeside = 4;
  if (pairs.size() > kMaxBeside) return false;
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const CountedPair& p) { return p.pair.on_lattice; });
}

bool HasLongLattice(const std::vector<CountedPair>& pairs) {
  constexpr std::uint64_t kOften = 30;
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const CountedPair& p) { return p.pair.on_lattice && p.count > kOften; });
}

bool FitsContour(const std::vector<CountedPair>& pairs) {
  constexpr std::size_t kFewPairs = 16;
  constexpr double kFewHits = 15;
  return pairs.size() <= kFewPairs || ExpectedHits(pairs) >= kFewHits;
}

}  // namespace sordino
