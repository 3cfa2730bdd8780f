#include "sordino/accounting/internal/grid/tail_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace sordino {
namespace {

// Of a tail's mass and of the difference of two, relative: a few calls of erfc, whose argument z is
// rounded too. That enters with 2 z^2, and z is below 28 where erfc is a normal number.
constexpr double kTailRounding = 1e-12;

// Losses beyond this are not small against anything, and their exponentials leave the range of
// doubles.
constexpr double kMaxCut = 50;

// log of what R may be of e^{-(m - epsilon)} P(A).
constexpr double kLogRest = -14;
// What R may be of P(A) on account of losses below their floor.
constexpr double kMaxBelow = 1e-5;
// Where losses are cut off: c (m - epsilon), and m - epsilon over the floor.
constexpr double kCutExponent = 20;
constexpr double kFloors = 4;
// Orders c at which the moments are bounded without a floor.
constexpr std::array<int, 13> kOrders = {0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 24, 32};
constexpr int kMaxOrder = 32;

// A pair that can be split: the density whose large losses are the tail, and what the other end of
// the losses is like.
struct SplitPair {
  const GaussianMixtureDensity* density = nullptr;
  bool glued = false;

  bool bounded_below() const { return !glued && density->max_denominator_shift() == 0; }
  double LowestLoss() const { return std::log1p(-density->HitProbability()); }
};

const GaussianMixtureDensity* WholeMixtureOf(const DensityPiece& piece) {
  if (piece.weight != 1) return nullptr;
  return dynamic_cast<const GaussianMixtureDensity*>(piece.density.get());
}

bool HasOneShift(const GaussianMixtureDensity::Parts& parts) {
  return parts.size() == 2 && parts[0].first == 0 && parts[1].first != 0;
}

// The positive losses of a density and the mirror image of them, besides an atom at zero.
SplitPair GluedPair(const LossPair& pair) {
  if (pair.atoms.size() != 1 || pair.atoms.front().loss != 0) return {};
  const GaussianMixtureDensity* above = WholeMixtureOf(pair.pieces[0]);
  const GaussianMixtureDensity* below = WholeMixtureOf(pair.pieces[1]);
  if (above == nullptr || below == nullptr || above->sigma() != below->sigma()) return {};
  const bool clipped = pair.pieces[0].clip_low == 0 && pair.pieces[0].clip_high > 1e300 &&
                       pair.pieces[1].clip_high == 0 && pair.pieces[1].clip_low < -1e300;
  if (!clipped || above->max_denominator_shift() != 0 || below->max_numerator_shift() != 0 ||
      !HasOneShift(above->numerator()) || !HasOneShift(below->denominator())) {
    return {};
  }
  const auto& [shift, probability] = above->numerator()[1];
  const bool mirrored = below->denominator()[1] == std::pair(-shift, probability);
  return mirrored && probability < 1 ? SplitPair{above, true} : SplitPair{};
}

SplitPair SplitPairOf(const LossPair& pair) {
  if (pair.infinite_mass > 0 || pair.gaussian_mu > 0 || pair.missing_p != 0) return {};
  if (pair.pieces.size() == 2) return GluedPair(pair);
  if (!pair.atoms.empty() || pair.pieces.size() != 1) return {};
  const DensityPiece& piece = pair.pieces.front();
  if (piece.clip_low > -1e300 || piece.clip_high < 1e300) return {};
  const GaussianMixtureDensity* density = WholeMixtureOf(piece);
  if (density == nullptr || !(density->HitProbability() < 1)) return {};
  if (density->max_denominator_shift() != 0 && !HasOneShift(density->denominator())) return {};
  return {density, false};
}

// How far the cut is above epsilon, and what bounds the rest then.
struct FloorChoice {
  double gap = 0;
  double order = 0;
  double log_moments = 0;  // sum of log E_Q[e^{-order L}], or of max(L, -floor)
  double below = 0;        // sum of Q(L < -floor)
};

// Bounds on the sums over all steps of log E_Q[e^{-cL}].
class FloorMoments {
 public:
  void Add(const SplitPair& pair, double count) {
    const double sigma = pair.density->sigma();
    const double shift =
        std::max(pair.density->max_numerator_shift(), pair.density->max_denominator_shift());
    const Step step{pair, count, pair.density->HitProbability(), shift * shift / (sigma * sigma)};
    if (!pair.bounded_below()) SetGrowth(step.precision);
    for (std::size_t i = 1; i < kOrders.size(); ++i) {
      const int c = kOrders[i];
      const double binomial = pair.bounded_below() ? 0 : BinomialExcess(step.q, c);
      sum_[i] += LogBound(step, c, binomial);
    }
    steps_.push_back(step);
  }

  // The order, and the floor where there is one, that make the gap m - epsilon small; a gap far
  // below epsilon is of no use.
  FloorChoice Best(double epsilon) const {
    FloorChoice best{-kLogRest, 0, 0, 0};
    for (std::size_t i = 1; i < kOrders.size(); ++i) {
      const double gap = (sum_[i] - kLogRest) / (1 + kOrders[i]);
      if (gap < best.gap) best = {gap, static_cast<double>(kOrders[i]), sum_[i], 0};
    }
    constexpr double kUseful = 0.05;
    for (double gap = best.gap; gap > kUseful * epsilon; gap *= 0.8) {
      const FloorChoice choice = WithFloor(gap);
      if (!(choice.log_moments - (1 + choice.order) * gap <= kLogRest)) break;
      if (!(choice.below * std::exp(-gap) <= kMaxBelow)) break;
      best = choice;
    }
    return best;
  }

  double At(std::size_t i) const { return sum_[i]; }
  double LogCut(double c, double floor) const {
    double sum = 0;
    for (const Step& step : steps_) {
      const double square = 0.5 * c * (c + 1) * std::exp((c - 1) * floor) * step.q * step.q *
                            std::expm1(step.precision);
      sum += LogBound(step, c, square * (1 + 1e-9));
    }
    return sum;
  }
  double Below(double floor) const {
    double sum = 0;
    for (const Step& step : steps_) {
      const GaussianMixtureDensity& density = *step.pair.density;
      if (step.pair.bounded_below()) continue;
      // A glued pair is its own mirror image.
      const double at = floor * (1 - 1e-9);
      const double mass = step.pair.glued ? density.MassAbove(density.CoordinateOf(at))
                                          : density.OtherMassBelow(density.CoordinateOf(-at));
      sum += step.count * mass * (1 + 1e-9);
    }
    return sum;
  }

 private:
  struct Step {
    SplitPair pair;
    double count;
    double q;
    double precision;  // (shift / sigma)^2
  };

  FloorChoice WithFloor(double gap) const {
    const double c = std::max(1.0, kCutExponent / gap);
    const double floor = gap / kFloors;
    return {gap, c, LogCut(c, floor), Below(floor)};
  }

  // Of all copies of a step, with B or B'.
  static double LogBound(const Step& step, double c, double b) {
    const double q = step.q;
    const double square = 0.5 * c * (c + 1);
    const double g = std::exp(-c * std::log1p(-q));
    double excess = square * g / ((1 - q) * (1 - q)) * q * q * std::expm1(step.precision);
    if (step.pair.glued) {
      excess = 2 * b;
    } else if (!step.pair.bounded_below()) {
      excess +=
          3 * square * q * q * g + g * b + (g - 1) * (1 + c) * q + std::max(0.0, g - 1 - c * q);
    }
    return step.count * std::log1p(excess) * (1 + 1e-9);
  }
  void SetGrowth(double precision) {
    if (precision == precision_) return;
    precision_ = precision;
    for (int k = 2; k <= kMaxOrder + 1; ++k) {
      growth_[static_cast<std::size_t>(k)] = std::expm1(0.5 * k * (k - 1) * precision);
    }
  }
  // B of order c.
  double BinomialExcess(double q, int c) const {
    double term = std::exp((1 + c) * std::log1p(-q));
    double sum = 0;
    for (int k = 1; k <= 1 + c; ++k) {
      term *= (2.0 + c - k) / k * q / (1 - q);
      if (k >= 2) sum += term * growth_[static_cast<std::size_t>(k)];
    }
    return std::isnan(sum) ? kInfinity : sum;
  }

  double precision_ = -1;
  std::array<double, kMaxOrder + 2> growth_ = {};
  std::array<double, kOrders.size()> sum_ = {};
  std::vector<Step> steps_;
};

FloorMoments FloorMomentsOf(const SplitPair& pair) {
  FloorMoments moments;
  moments.Add(pair, 1);
  return moments;
}

}  // namespace

double LogFloorMoment(const LossPair& pair, int c) {
  const SplitPair one = SplitPairOf(pair);
  const auto* const found = std::find(kOrders.begin(), kOrders.end(), c);
  if (one.density == nullptr || found == kOrders.end()) return kInfinity;
  return FloorMomentsOf(one).At(static_cast<std::size_t>(found - kOrders.begin()));
}

double LogCutFloorMoment(const LossPair& pair, double c, double floor) {
  const SplitPair one = SplitPairOf(pair);
  return one.density == nullptr ? kInfinity : FloorMomentsOf(one).LogCut(c, floor);
}

double MassBelowFloor(const LossPair& pair, double floor) {
  const SplitPair one = SplitPairOf(pair);
  return one.density == nullptr ? 1 : FloorMomentsOf(one).Below(floor);
}

std::optional<TailSplit> TailSplit::At(std::span<const CountedPair> pairs, double epsilon) {
  // The ratio of the densities is at least the weight of the part that has not moved.
  double lowest = 0;
  FloorMoments moments;
  std::vector<SplitPair> split_pairs;
  for (const CountedPair& counted : pairs) {
    const SplitPair one = SplitPairOf(counted.pair);
    if (one.density == nullptr) return std::nullopt;
    const auto count = static_cast<double>(counted.count);
    lowest += one.bounded_below() ? count * one.LowestLoss() : -kInfinity;
    moments.Add(one, count);
    split_pairs.push_back(one);
  }
  const FloorChoice choice = moments.Best(epsilon);
  // Losses that stay above epsilon for certain, or all but certainly.
  const bool certain = -lowest <= choice.gap;
  const double cut = (epsilon + (certain ? -lowest : choice.gap)) * (1 + 1e-9);
  if (!(cut < kMaxCut)) return std::nullopt;
  TailSplit split;
  split.reach_ = certain ? kInfinity : epsilon;
  double others = 0;
  double least_tail_loss = kInfinity;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CountedPair body = pairs[i];
    const GaussianMixtureDensity& density = *split_pairs[i].density;
    if (!(density.LargestLoss() <= cut)) {
      const auto count = static_cast<double>(body.count);
      const double x = density.CoordinateOf(cut);
      const double other = density.OtherMassAbove(x);
      const double excess = density.ExcessAbove(x);
      if (!(other + excess < 0.9)) return std::nullopt;
      least_tail_loss = std::min(least_tail_loss, density.Loss(x) * (1 - 1e-12));
      others += count * other;
      split.log_other_body_ += count * std::log1p(-other);
      split.log_ratio_ += count * std::log1p(-excess / (1 - other));
      body.pair.pieces.front().clip_high = cut;
      body.pair.missing_p = other + excess;
      body.pair.absent_q += other;
      body.pair.q_rounding += kTailRounding * other;
    }
    split.body_.push_back(std::move(body));
  }
  if (certain) {
    split.reach_ = least_tail_loss + lowest * (1 + 1e-12);
    split.log_rest_ = -kInfinity;
  } else {
    split.rest_order_ = choice.order;
    split.log_rest_ = std::log(std::max(others, std::numeric_limits<double>::min())) +
                      choice.log_moments - choice.order * least_tail_loss + 1e-9;
    split.rest_below_ = others * choice.below * (1 + 1e-9);
  }
  if (!(split.reach_ > 0) || !std::isfinite(least_tail_loss)) return std::nullopt;
  return split;
}

Interval TailSplit::Added(double epsilon) const {
  // (1 - P) - e^epsilon (1 - Q) = (Q - P) - (e^epsilon - 1)(1 - Q), with P and Q the chances that
  // all steps are in their bodies.
  const double more = std::exp(log_other_body_) * -std::expm1(log_ratio_);
  const double less = std::expm1(epsilon) * -std::expm1(log_other_body_);
  const double error = kTailRounding * (more + less);
  const double rest =
      std::exp(log_rest_ + (1 + rest_order_) * epsilon) + std::exp(epsilon) * rest_below_;
  return {std::max(0.0, more - less - error), std::max(0.0, more - less) + rest + error};
}

}  // namespace sordino
