#include "sordino/accounting/internal/dominating_pair.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "sordino/accounting/allocation.h"
#include "sordino/accounting/internal/attained_pairs.h"
#include "sordino/accounting/internal/bounded_range.h"
#include "sordino/accounting/internal/enumerated.h"
#include "sordino/accounting/internal/exact_release.h"
#include "sordino/accounting/internal/null_record.h"
#include "sordino/accounting/internal/outcomes.h"
#include "sordino/accounting/internal/poisson_guarantees.h"
#include "sordino/accounting/internal/renyi_moments.h"
#include "sordino/accounting/internal/tree.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

using Mixture = GaussianMixtureDensity;

// Below these the loss is so large that resolving it makes no sense; Renyi and basic composition
// serve there.
constexpr double kMinSigma = 0.01;
constexpr double kMinScale = 1e-3;
// Above this range an exponential mechanism counts as a pure one.
constexpr double kMaxRange = 100;

LossPair FromDensity(std::shared_ptr<const LossDensity> density) {
  LossPair pair;
  pair.pieces.push_back({std::move(density)});
  return pair;
}

LossPair FromGaussian(double mu) {
  LossPair pair;
  pair.gaussian_mu = mu;
  return pair;
}

DominatingPairs Same(std::vector<LossPair> pairs) { return {std::move(pairs), {}, "", true, 1, 1}; }
DominatingPairs Missing(std::string reason) { return {{}, {}, std::move(reason), false, 1, 1}; }

// The mixture {(0, 1-q), (shift, q)}, or (shift, 1) alone when q is 1.
Mixture::Parts SampledParts(double q, double shift) {
  if (q == 1) return {{shift, 1.0}};
  return {{0.0, 1 - q}, {shift, q}};
}

std::shared_ptr<const LossDensity> RemoveDensity(double sigma, double q, double shift) {
  return std::make_shared<Mixture>(sigma, SampledParts(q, shift), Mixture::Parts{{0.0, 1.0}});
}
std::shared_ptr<const LossDensity> AddDensity(double sigma, double q, double shift) {
  return std::make_shared<Mixture>(sigma, Mixture::Parts{{0.0, 1.0}}, SampledParts(q, -shift));
}

bool IsSymmetric(Event::Kind kind) { return kind != Event::Kind::kRandomizedResponse; }

DominatingPairs DiscretePairs(const Event& event) {
  const std::optional<Outcomes> outcomes = OutcomesOf(event);
  if (!outcomes) return Missing("the noise has too many values for a table of them");
  std::vector<LossPair> pairs = {FromOutcomes(*outcomes)};
  pairs[0].given_losses =
      event.kind() == Event::Kind::kPure || event.kind() == Event::Kind::kApproximate;
  if (!IsSymmetric(event.kind()) && event.adjacency() != Adjacency::kReplaceOne) {
    pairs.push_back(FromOutcomes(Swapped(*outcomes)));
  }
  return Same(pairs);
}

// ---- Sampling ----------------------------------------------------------------------------------

// The two directions of sampling `child` with rate q, in units of the child's own sensitivity.
std::optional<std::pair<LossPair, LossPair>> SampledDirections(const Event& child, double q) {
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    return std::pair(FromDensity(RemoveDensity(*sigma, q, 1)),
                     FromDensity(AddDensity(*sigma, q, 1)));
  }
  if (child.kind() == Event::Kind::kLaplace) {
    const double scale = child.numbers()[0];
    std::pair<LossPair, LossPair> directions;
    for (const auto direction :
         {LaplaceDensity::Direction::kRemove, LaplaceDensity::Direction::kAdd}) {
      auto density = std::make_shared<LaplaceDensity>(scale, q, direction);
      LossPair& pair =
          direction == LaplaceDensity::Direction::kRemove ? directions.first : directions.second;
      pair.atoms = density->Ends();
      pair.pieces.push_back({std::move(density)});
    }
    return directions;
  }
  if (const std::optional<Outcomes> outcomes = OutcomesOf(child)) {
    const Outcomes sampled = SampleOutcomes(*outcomes, q);
    return std::pair(FromOutcomes(sampled), FromOutcomes(Swapped(sampled)));
  }
  return std::nullopt;
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

DominatingPairs PoissonReplaceOne(const Event& child, double q) {
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    if (q == 1) return Same({FromGaussian(2 / *sigma)});
    return Same(
        {FromDensity(std::make_shared<Mixture>(*sigma, SampledParts(q, 1), SampledParts(q, -1)))});
  }
  std::optional<Outcomes> outcomes;
  if (child.kind() == Event::Kind::kDiscreteGaussian) {
    outcomes = DiscreteGaussianOutcomes(child.numbers()[0], child.numbers()[1], q, q);
  } else if (child.kind() == Event::Kind::kDiscreteLaplace) {
    outcomes = DiscreteLaplaceOutcomes(child.numbers()[0], child.numbers()[1], q, q);
  }
  if (outcomes) return Same({FromOutcomes(*outcomes)});
  if (child.kind() == Event::Kind::kLaplace) {
    return Same({LaplaceReplaceOne(child.numbers()[0], q)});
  }
  return Missing(
      "no dominating pair is known for this mechanism under Poisson sampling and "
      "replace-one");
}

// A mixture-gaussian event with these numbers, sampled with rate q.
DominatingPairs MixturePairs(const std::vector<double>& n, double q) {
  if (n[0] < kMinSigma) return Missing("the noise is too small to resolve the loss");
  Mixture::Parts parts;
  Mixture::Parts mirrored;
  bool moves = false;
  const auto add = [&](double shift, double probability) {
    parts.emplace_back(shift, probability);
    mirrored.emplace_back(-shift, probability);
    moves = moves || (shift > 0 && probability > 0);
  };
  for (std::size_t i = 1; i + 1 < n.size(); i += 2) add(n[i], q * n[i + 1]);
  if (q < 1) add(0, 1 - q);
  if (!moves) return Same({LossPair{}});
  return Same({FromDensity(std::make_shared<Mixture>(n[0], parts, Mixture::Parts{{0.0, 1.0}})),
               FromDensity(std::make_shared<Mixture>(n[0], Mixture::Parts{{0.0, 1.0}}, mirrored))});
}

bool TooLittleNoise(const Event& child) {
  if (child.kind() == Event::Kind::kLaplace) return child.numbers()[0] < kMinScale;
  const std::optional<double> sigma = EquivalentGaussian(child);
  return sigma && *sigma < kMinSigma;
}

DominatingPairs SampledPairs(const Event& event, const PairUse& use) {
  const double q = event.numbers()[0];
  const bool fixed = event.kind() == Event::Kind::kFixed;
  const Event& sampled = event.children()[0].first;
  const Event child = fixed ? FixedReach(sampled) : sampled;
  if (q == 0) return Same({LossPair{}});
  if (TooLittleNoise(child)) return Missing("the noise is too small to resolve the loss");
  const bool replace = event.adjacency() == Adjacency::kReplaceOne;
  if (!fixed && sampled.kind() == Event::Kind::kPoisson) {
    return SampledPairs(MergedSamplers(event), use);
  }
  if (!fixed) {
    if (auto guarantee = PoissonGuaranteePairs(event, use)) return *std::move(guarantee);
  }
  if (!fixed && !replace && child.kind() == Event::Kind::kMixtureGaussian) {
    // The record stays away with probability 1 - q: one shift more, of zero.
    return MixturePairs(child.numbers(), q);
  }
  if (!fixed && replace) return PoissonReplaceOne(child, q);
  if (q == 1 && !replace) {
    if (const std::optional<double> sigma = EquivalentGaussian(child)) {
      return Same({FromGaussian(1 / *sigma)});
    }
  }
  const auto directions = SampledDirections(child, q);
  if (!directions) return Missing("no dominating pair is known for sampling this mechanism");
  if (!fixed || event.adjacency() == Adjacency::kAddRemove) {
    return Same({directions->first, directions->second});
  }
  DominatingPairs pairs;
  // All other records equal the one that is added, or the null record.
  const auto attained = child == sampled ? directions : SampledDirections(sampled, q);
  if (attained) pairs.lower = {attained->first, attained->second};
  pairs.upper = {Glue(directions->first, directions->second)};
  if (q == 1 || child != sampled) return pairs;
  if (use.Closely()) {
    if (auto triangle = TriangleOfFixedBatch(child, q)) {
      pairs.lower.push_back(std::move(*triangle));
      return pairs;
    }
  }
  if (const std::optional<double> sigma = EquivalentGaussian(child); replace && sigma) {
    // All other records contribute nothing, and the one moves from -1/2 to 1/2.
    pairs.lower.push_back(FromDensity(
        std::make_shared<Mixture>(*sigma, SampledParts(q, 0.5), SampledParts(q, -0.5))));
  }
  return pairs;
}

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

// A full batch in which both neighbours have a record in the same place.
// Three centres at distance two bound a null record as well, and take less time.
LossPair FullBatchPair(double sigma, double enter, bool remove, bool replace, const PairUse& use) {
  if (replace || use.one_of_many) {
    return Glue(FromDensity(RemoveDensity(sigma, enter, 2)),
                FromDensity(AddDensity(sigma, enter, 2)));
  }
  const LossPair tail = LossesAgainstNull(sigma, enter, use.effort);
  LossPair glued;
  if (remove) {
    glued = Glue(tail, FromDensity(AddDensity(sigma, enter, 1)));
  } else {
    glued = Glue(FromDensity(RemoveDensity(sigma, enter, 1)), MirroredLosses(tail));
    glued.absent_q = tail.infinite_mass;
  }
  // The two sides agree at zero to the margins of their closed forms.
  glued.q_rounding = 1e-11 * enter;
  return glued;
}

// Both directions of one pair of neighbours whose other records number `others`.
DominatingPairs TruncatedWith(double others, const Event& event, double sigma, const PairUse& use) {
  const double q = event.numbers()[1];
  const FullBatch batch = FullBatchOf(others, q, event.numbers()[2]);
  const double entered = batch.open * q + batch.full * batch.enter;
  const bool replace = event.adjacency() == Adjacency::kReplaceOne;
  const bool known_place = event.adjacency() != Adjacency::kAddRemove;
  DominatingPairs pairs;
  for (const bool remove : {true, false}) {
    const auto density = [&](double rate, double shift) -> std::shared_ptr<const LossDensity> {
      if (replace) {
        return std::make_shared<Mixture>(sigma, SampledParts(rate, shift),
                                         SampledParts(rate, -shift));
      }
      return remove ? RemoveDensity(sigma, rate, shift) : AddDensity(sigma, rate, shift);
    };
    LossPair pair;
    if (batch.open > 0) pair.pieces.push_back({density(q, 1), batch.open});
    if (batch.full > 0 && batch.enter == 0) pair.atoms.push_back({0.0, batch.full});
    if (batch.full > 0 && batch.enter > 0) {
      if (known_place) {
        const LossPair glued = FullBatchPair(sigma, batch.enter, remove, replace, use);
        pair.infinite_mass += glued.infinite_mass * batch.full;
        pair.absent_q += glued.absent_q * batch.full;
        pair.q_rounding += glued.q_rounding * batch.full;
        for (LossAtom atom : glued.atoms) {
          pair.atoms.push_back({atom.loss, atom.mass * batch.full});
        }
        for (DensityPiece piece : glued.pieces) {
          piece.weight *= batch.full;
          pair.pieces.push_back(std::move(piece));
        }
      } else {
        pair.pieces.push_back({density(batch.enter, 2), batch.full});
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
            PushedOutPair(others, q, event.numbers()[2], sigma, batch, event.adjacency())) {
      pairs.lower.push_back(std::move(pushed->first));
      pairs.lower.push_back(std::move(pushed->second));
    }
  }
  return pairs;
}

DominatingPairs TruncatedPairs(const Event& event, const PairUse& use) {
  const double n = event.numbers()[0];
  const double q = event.numbers()[1];
  const std::optional<double> sigma = EquivalentGaussian(event.children()[0].first);
  if (!sigma) return Missing("truncated Poisson batches are known for Gaussian noise only");
  if (q == 0) return Same({LossPair{}});
  if (*sigma < kMinSigma) return Missing("the noise is too small to resolve the loss");
  DominatingPairs pairs = TruncatedWith(n - 1, event, *sigma, use);
  if (event.adjacency() == Adjacency::kAddRemove) {
    // One record more instead of one less.
    const DominatingPairs more = TruncatedWith(n, event, *sigma, {.one_of_many = true});
    pairs.upper.insert(pairs.upper.end(), more.upper.begin(), more.upper.end());
  }
  return pairs;
}

DominatingPairs AllocationPairsOf(const Event& event, const PairUse& use) {
  const double batches = event.numbers()[0];
  const std::optional<double> sigma = EquivalentGaussian(event.children()[0].first);
  if (!sigma) return Missing("the noise is too small to resolve the loss");
  if (use.log_delta == -kInfinity) return Same({FromGaussian(1 / *sigma)});  // unbounded as well
  DominatingPairs pairs;
  if (*sigma < kMinAllocationNoise || *sigma > kMaxAllocationNoise ||
      batches > kMaxAllocationBatches) {
    // Telling the record's place leaves one Gaussian step; looking at one step only, a record that
    // is there with probability 1/t.
    pairs.upper = {FromGaussian(1 / *sigma)};
    if (*sigma >= kMinSigma && *sigma <= kMaxAllocationNoise) {
      pairs.lower = {FromDensity(RemoveDensity(*sigma, 1 / batches, 1)),
                     FromDensity(AddDensity(*sigma, 1 / batches, 1))};
    }
    return pairs;
  }
  AllocationPairs found = PairsOfAllocation(static_cast<std::uint64_t>(batches), *sigma,
                                            {use.log_delta, use.count, use.effort});
  pairs.upper = {std::move(found.remove_upper), std::move(found.add_upper)};
  const auto add_lower = [&pairs](LossPair& remove, LossPair& add) {
    if (remove.atoms.empty() && add.atoms.empty()) return;
    pairs.lower.push_back(std::move(remove));
    pairs.lower.push_back(std::move(add));
  };
  add_lower(found.remove_lower, found.add_lower);
  add_lower(found.remove_lower_points, found.add_lower_points);
  return pairs;
}

DominatingPairs ExponentialPairs(double range, const PairUse& use) {
  if (range == 0) return Same({LossPair{}});
  DominatingPairs pairs;
  if (use.log_delta == -kInfinity || range > kMaxRange) {
    pairs.upper = {FromOutcomes(ApproximateOutcomes(range, 0))};
  } else {
    const std::uint64_t block = use.blocks ? BoundedRangeBlock(use.count, use.effort) : 1;
    const double log_copies = std::log(static_cast<double>(use.count / block + 1));
    pairs.block = block;
    pairs.upper = {BoundedRangeUpper(range, block, use.log_delta - log_copies - 12, use.effort)};
  }
  if (range > kMaxRange) {
    pairs.lower = {FromOutcomes(ApproximateOutcomes(range / 2, 0))};
    return pairs;
  }
  pairs.lower = {FromOutcomes(TwoLossOutcomes(range, WorstLoss(range, use.count, use.log_delta)))};
  const bool whole = use.blocks && use.alone && use.count > 1 && pairs.block >= use.count;
  if (whole && use.effort == Effort::kFull) {
    // The points of a strategy may be too far apart for a tiny delta.
    LossPair strategy = BoundedRangeStrategy(range, use.count, use.log_delta);
    const auto fixed = Enumerated::Of({{pairs.lower[0], use.count}});
    if (!fixed || ExactEpsilon(strategy, use.log_delta) > fixed->Epsilon(use.log_delta).lower) {
      pairs.lower_block = use.count;
      pairs.lower = {std::move(strategy)};
    }
    return pairs;
  }
  if (!use.alone) {
    // Beside other releases a large variance may count for more; each in both directions of theirs.
    const double even = std::log1p(0.5 * std::expm1(range));
    const LossPair wide = FromOutcomes(TwoLossOutcomes(range, even));
    pairs.lower.insert(pairs.lower.end(), {pairs.lower[0], wide, wide});
  }
  return pairs;
}

}  // namespace

LossPair Glue(const LossPair& remove, const LossPair& add) {
  LossPair glued;
  glued.infinite_mass = remove.infinite_mass;
  double rest = 1 - remove.infinite_mass;
  for (const LossAtom& atom : remove.atoms) {
    if (atom.loss > 0) glued.atoms.push_back(atom), rest -= atom.mass;
  }
  for (const LossAtom& atom : add.atoms) {
    if (atom.loss < 0) glued.atoms.push_back(atom), rest -= atom.mass;
  }
  for (DensityPiece piece : remove.pieces) {
    piece.clip_low = 0;
    const double x = piece.density->CoordinateOf(0);
    rest -= piece.weight * piece.density->MassAbove(x);
    glued.pieces.push_back(std::move(piece));
  }
  for (DensityPiece piece : add.pieces) {
    piece.clip_high = 0;
    const double x = piece.density->CoordinateOf(0);
    rest -= piece.weight * piece.density->MassBelow(x);
    glued.pieces.push_back(std::move(piece));
  }
  glued.atoms.push_back({0.0, std::max(0.0, rest)});
  return glued;
}

DominatingPairs DominatingPairsOf(const Event& event, const PairUse& use) {
  const std::vector<double>& n = event.numbers();
  switch (event.kind()) {
    case Event::Kind::kNone:
      return Same({LossPair{}});
    case Event::Kind::kGaussian:
      return Same({FromGaussian(1 / n[0])});
    case Event::Kind::kTree:
      return Same({FromGaussian(
          std::sqrt(static_cast<double>(TreeHeight(static_cast<std::uint64_t>(n[1])))) / n[0])});
    case Event::Kind::kLaplace: {
      if (n[0] < kMinScale) {
        DominatingPairs pairs;
        pairs.upper = {FromOutcomes(ApproximateOutcomes(1 / n[0], 0))};
        return pairs;
      }
      auto density = std::make_shared<LaplaceDensity>(n[0], 1, LaplaceDensity::Direction::kRemove);
      LossPair pair;
      pair.atoms = density->Ends();
      pair.pieces.push_back({std::move(density)});
      return Same({std::move(pair)});
    }
    case Event::Kind::kPure:
    case Event::Kind::kApproximate:
    case Event::Kind::kRandomizedResponse:
    case Event::Kind::kDiscreteGaussian:
    case Event::Kind::kDiscreteLaplace:
      return DiscretePairs(event);
    case Event::Kind::kExponential:
      return ExponentialPairs(n[0], use);
    case Event::Kind::kZcdp: {
      DominatingPairs pairs = Missing("a zCDP mechanism has no single dominating pair");
      pairs.lower = {FromGaussian(std::sqrt(2 * n[0]))};  // the Gaussian is one
      return pairs;
    }
    case Event::Kind::kMixtureGaussian:
      return MixturePairs(n, 1);
    case Event::Kind::kPoisson:
    case Event::Kind::kFixed:
      return SampledPairs(event, use);
    case Event::Kind::kTruncatedPoisson:
      return TruncatedPairs(event, use);
    case Event::Kind::kAllocation:
      return AllocationPairsOf(event, use);
    case Event::Kind::kCompose:
    case Event::Kind::kParallel:
      break;
  }
  return Missing("a composition has no pair of its own");
}

bool DependsOnUse(const Event& event) {
  return event.kind() == Event::Kind::kAllocation ||
         std::any_of(event.children().begin(), event.children().end(),
                     [](const auto& child) { return DependsOnUse(child.first); });
}

}  // namespace sordino
