// laplace(noise): Laplace noise, its scale over the L1 sensitivity.
#include <algorithm>
#include <cmath>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/attained_pairs.h"

namespace sordino {
namespace {

// Below this scale the loss is so large that resolving it makes no sense.
constexpr double kMinScale = 1e-3;
// Beyond it the atoms of a loss would fill memory; the pure bound takes over.
constexpr double kMaxLaplaceLambda = 2000;

// The pair of one direction of sampling with rate q.
LossPair LaplacePair(double scale, double q, LaplaceDensity::Direction direction) {
  auto density = std::make_shared<LaplaceDensity>(scale, q, direction);
  LossPair pair;
  pair.atoms = density->Ends();
  pair.pieces.push_back({std::move(density)});
  return pair;
}

// (1-q) Lap(0) + q Lap(1) against (1-q) Lap(0) + q Lap(-1). Between 0 and 1 the first is that of
// "remove" and the second Lap(0) times a constant e^k; between -1 and 0 it is the mirror image.
LossPair LaplaceReplaceOne(double scale, double q) {
  const double k = q == 1 ? -1 / scale : std::log1p(q * std::expm1(-1 / scale));
  const double top = SampledLoss(q, 1 / scale) - k;
  const double end = std::exp(-1 / scale);
  LossPair pair;
  pair.atoms = {{top, 0.5 * ((1 - q) * end + q)}, {-top, 0.5 * ((1 - q) * end + q * end * end)}};
  pair.pieces.push_back({std::make_shared<ShiftedDensity>(
      std::make_shared<LaplaceDensity>(scale, q, LaplaceDensity::Direction::kRemove), -k)});
  pair.pieces.push_back(
      {std::make_shared<ShiftedDensity>(
           std::make_shared<LaplaceDensity>(scale, q, LaplaceDensity::Direction::kAdd), k),
       std::exp(k)});
  return pair;
}

class LaplaceKind final : public NoiseFamily {
 public:
  LaplaceKind() : NoiseFamily("laplace", {FieldOf<NoiseMultiplier>("noise")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event DoubledReach(const Event& event) const override {
    return Event::Laplace(NoiseMultiplier(event.number("noise") / 2), event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid& grid) const override {
    return Event::Laplace(grid.Noise(event.number("noise")), event.adjacency());
  }
  // It has no contour, however dense the schedule.
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return 0;
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    const double noise = event.number("noise");
    if (noise < kMinScale) {
      DominatingPairs pairs;
      pairs.upper = {FromOutcomes(ApproximateOutcomes(1 / noise, 0))};
      return pairs;
    }
    return Same({LaplacePair(noise, 1, LaplaceDensity::Direction::kRemove)});
  }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event& event) const override {
    return event.number("noise") < kMinScale;
  }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse&) const override {
    if (event.adjacency() != Adjacency::kReplaceOne) return {};
    return Same({LaplaceReplaceOne(event.number("noise"), q)});
  }
  std::optional<TwoPairs> SampledDirections(const Event& event, double q) const override {
    const double scale = event.number("noise");
    return std::pair(LaplacePair(scale, q, LaplaceDensity::Direction::kRemove),
                     LaplacePair(scale, q, LaplaceDensity::Direction::kAdd));
  }
  std::optional<LossPair> Triangle(const Event& event, double rate) const override {
    return TriangleOfLaplace(event.number("noise"), rate);
  }
  RenyiFunction Renyi(const Event& event) const override {
    return FromAtoms(SymmetricAtoms(event));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event& event) const override {
    const double lambda = 1 / event.number("noise");
    return lambda <= kMaxLaplaceLambda ? LaplaceAtoms(lambda) : PureAtoms(lambda);
  }
  RenyiFunction PoissonRenyi(const Event& event, double q) const override {
    const double lambda = 1 / event.number("noise");
    if (event.adjacency() != Adjacency::kReplaceOne || lambda > kMaxLaplaceLambda) return {};
    return FromNodes(ReplacedLaplaceNodes(lambda, q));
  }
  ZcdpResult Zcdp(const Event& event) const override {
    return ZcdpOfPure(sordino::StepEpsilon(event, -kInfinity));
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>&) const override {
    const double epsilon = 1 / event.number("noise") + 2 * std::log1p(-std::exp(log_delta));
    return std::max(0.0, epsilon * (1 + kAdvancedMargin));
  }
};

}  // namespace

const EventKind& LaplaceEvent() { return OneOfKind<LaplaceKind>(); }

Event Event::Laplace(NoiseMultiplier noise, Adjacency adjacency) {
  return LaplaceEvent().New({adjacency, {noise.value()}});
}

}  // namespace sordino
