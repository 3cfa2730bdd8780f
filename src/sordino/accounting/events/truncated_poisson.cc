// truncated-poisson(dataset, rate, cap, gaussian): Poisson batches, of which a uniform subset of
// `cap` records stays where there are more (internal/pairs/dominating_pair.h).
#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/attained_pairs.h"
#include "sordino/accounting/internal/pairs/full_batch.h"
#include "sordino/accounting/internal/renyi/renyi_gaussian.h"

namespace sordino {
namespace {

FullBatch FullBatchOf(double others, double q, double cap) {
  using boost::math::binomial_distribution;
  using boost::math::cdf;
  using boost::math::complement;
  FullBatch result;
  if (others < cap) return result;
  result.full = cdf(complement(binomial_distribution<>(others, q), cap - 1));
  if (!(result.full > 0)) return result;
  result.open = cdf(binomial_distribution<>(others, q), cap - 1);
  const double n = others + 1;
  const double over = cdf(complement(binomial_distribution<>(n, q), cap));
  // Both tails come out of one incomplete beta function, good to about 1e-12.
  result.enter = std::min({1.0, q, over * cap / (n * result.full) * (1 + 1e-9)});
  return result;
}

// The chance that one record is missing to a full batch.
double ShortByOne(double others, double q, double cap) {
  if (others < cap) return 0;
  return boost::math::pdf(boost::math::binomial_distribution<>(others, q), cap - 1);
}

// Both directions of one pair of neighbours whose other records number `others`.
DominatingPairs TruncatedWith(double others, const Event& event, double sigma, const PairUse& use) {
  const double q = event.number("rate");
  const FullBatch batch = FullBatchOf(others, q, event.number("cap"));
  const double entered = batch.open * q + batch.full * batch.enter;
  const bool replace = event.adjacency() == Adjacency::kReplaceOne;
  const bool known_place = event.adjacency() != Adjacency::kAddRemove;
  const NearlyFull nearly{ShortByOne(others, q, event.number("cap")), batch.full, q, batch.enter};
  const bool closely = batch.full > 0 && batch.enter > 0 && !use.one_of_many &&
                       sigma >= kMinNearlyFullNoise && use.log_delta > -kInfinity;
  const double log_lost = use.log_delta - std::log(static_cast<double>(use.count)) - 12;
  DominatingPairs pairs;
  for (const bool remove : {true, false}) {
    const auto density = [&](double rate, double shift) -> std::shared_ptr<const LossDensity> {
      if (replace) return ReplaceDensity(sigma, rate, shift);
      return remove ? RemoveDensity(sigma, rate, shift) : AddDensity(sigma, rate, shift);
    };
    LossPair pair;
    if (closely) {
      pair = NearlyFullLosses(nearly, sigma, event.adjacency(), remove, log_lost, use.effort);
    }
    const double open = closely ? batch.open - nearly.short_by_one : batch.open;
    if (open > 0) pair.pieces.push_back({density(q, 1), open});
    if (batch.full > 0 && batch.enter == 0) pair.atoms.push_back({0.0, batch.full});
    if (batch.full > 0 && batch.enter > 0 && !closely) {
      // Two units, under every adjacency, told that the batch is full.
      const LossPair glued = known_place ? Glue(FromDensity(RemoveDensity(sigma, batch.enter, 2)),
                                                FromDensity(AddDensity(sigma, batch.enter, 2)))
                                         : FromDensity(density(batch.enter, 2));
      for (LossAtom atom : glued.atoms) pair.atoms.push_back({atom.loss, atom.mass * batch.full});
      for (DensityPiece piece : glued.pieces) {
        piece.weight *= batch.full;
        pair.pieces.push_back(std::move(piece));
      }
    }
    pairs.upper.push_back(std::move(pair));
    // Nobody tells whether the batch was full, so the upper pairs need not be attained; all other
    // records contributing nothing is a case with a shift of one.
    pairs.lower.push_back(FromDensity(density(entered * (1 - 1e-9), 1)));
    if (replace) break;
  }
  if (use.Closely() && batch.full > 0 && batch.enter > 0) {
    if (auto pushed =
            PushedOutPair(others, q, event.number("cap"), sigma, batch, event.adjacency())) {
      pairs.lower.push_back(std::move(pushed->first));
      pairs.lower.push_back(std::move(pushed->second));
    }
  }
  return pairs;
}

// Poisson batches cut to `cap` records, as dominating_pair.h describes them. Whether the others
// fill the batch is drawn alike for both neighbours, and the moment E_Q[(P/Q)^alpha] is jointly
// convex, so it is at most its mean over both cases. A batch that is not full is one without a cap.
// In a full one the record pushes another one out: two units, at a rate that is no larger than q.
RenyiFunction MakeTruncatedPoisson(const Event& event) {
  const double dataset = event.number("dataset");
  const double q = event.number("rate");
  const double cap = event.number("cap");
  const double sigma = ChildOf(event).number("noise");
  if (q == 0) return Linear(0);
  const auto poisson = [&](double noise) {
    return RenyiOf(Event::Poisson(SamplingRate(q),
                                  Event::Gaussian(NoiseMultiplier(noise), event.adjacency())));
  };
  RenyiFunction one = poisson(sigma);
  RenyiFunction two;
  if (event.adjacency() == Adjacency::kAddRemove) {
    two = poisson(sigma / 2);
  } else if (q == 1 || sigma / 2 < kMinSampledNoise) {
    two = Linear(4 / (2 * sigma * sigma));
  } else {
    two = FromMoments<HalfProfileGaussian>(q, sigma / 2);
  }
  const double full = cap > dataset ? 0 : boost::math::ibeta(cap, dataset - cap + 1, q);
  if (full == 0) return one;
  const double log_full = std::min(0.0, std::log(full) + 1e-9);
  return [one, two, log_full](double order) {
    const double a = order - 1;
    const double small = one(order);
    const double large = std::max(small, two(order));
    if (a == 0) return small + std::exp(log_full) * (large - small);
    // log((1 - f) e^(a small) + f e^(a large)) / a.
    const double gap = a * (large - small);
    const double mixed =
        gap > 600 ? log_full + gap : std::log1p(std::exp(log_full) * std::expm1(gap));
    return std::min(large, small + std::max(0.0, mixed) / a * (1 + 1e-12));
  };
}

class TruncatedPoissonKind final : public WholeSamplerFamily {
 public:
  TruncatedPoissonKind()
      : WholeSamplerFamily("truncated-poisson", {WholeField("dataset", "the size of the dataset"),
                                                 FieldOf<SamplingRate>("rate"),
                                                 WholeField("cap", "the cap on the batch")}) {}
  // Under every adjacency.
  void Check(const EventArguments&, const Event& child) const override {
    if (&child.kind() == &GaussianEvent()) return;
    throw Error(
        fmt::format("a truncated Poisson batch was given the mechanism '{}'; it must be "
                    "'gaussian'.",
                    child.name()));
  }
  void AddNoiseUnits(const Event& event, bool NoiseUnits::*, NoiseUnits& units) const override {
    AddUnitsOfChildren(event, &NoiseUnits::poisson, units);
  }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    const double n = event.number("dataset");
    const double q = event.number("rate");
    const std::optional<double> sigma = EquivalentGaussian(ChildOf(event));
    if (!sigma) return Missing("truncated Poisson batches are known for Gaussian noise only");
    if (q == 0) return Same({LossPair{}});
    if (*sigma < kMinSigma) return Missing(kTooLittleNoise);
    DominatingPairs pairs = TruncatedWith(n - 1, event, *sigma, use);
    if (event.adjacency() == Adjacency::kAddRemove) {
      // One record more instead of one less.
      const DominatingPairs more = TruncatedWith(n, event, *sigma, use);
      pairs.upper.insert(pairs.upper.end(), more.upper.begin(), more.upper.end());
      pairs.lower.insert(pairs.lower.begin(), more.lower.begin(), more.lower.end());
    }
    return pairs;
  }
  RenyiFunction Renyi(const Event& event) const override { return MakeTruncatedPoisson(event); }
  ZcdpResult Zcdp(const Event& event) const override {
    if (event.number("rate") == 0) return {0, ""};
    const Event& child = ChildOf(event);
    return ZcdpOf(event.adjacency() == Adjacency::kZeroOut ? child : sordino::DoubledReach(child));
  }
  // In a full batch a record pushes another one out.
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override {
    return SampledStepEpsilon(sordino::DoubledReach(ChildOf(event)), event.number("rate"),
                              log_delta, curve);
  }
};

}  // namespace

const EventKind& TruncatedPoissonEvent() { return OneOfKind<TruncatedPoissonKind>(); }

Event Event::TruncatedPoisson(std::uint64_t dataset, SamplingRate rate, std::uint64_t cap,
                              Event gaussian) {
  return TruncatedPoissonEvent().New({gaussian.adjacency(),
                                      {WholeNumber(dataset), rate.value(), WholeNumber(cap)},
                                      {{std::move(gaussian), 1}}});
}

}  // namespace sordino
