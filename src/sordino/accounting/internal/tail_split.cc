#include "sordino/accounting/internal/tail_split.h"

#include <algorithm>
#include <cmath>

namespace sordino {
namespace {

// Of a tail's mass and of the difference of two, relative: a few calls of erfc, whose argument z is
// rounded too. That enters with 2 z^2, and z is below 28 where erfc is a normal number.
constexpr double kTailRounding = 1e-12;

// Losses beyond this are not small against anything, and their exponentials leave the range of
// doubles.
constexpr double kMaxCut = 50;

// The density of a pair that is nothing but a Gaussian mixture against one Gaussian at zero.
const GaussianMixtureDensity* SparseDensity(const LossPair& pair) {
  if (!pair.atoms.empty() || pair.pieces.size() != 1 || pair.infinite_mass > 0 ||
      pair.gaussian_mu > 0) {
    return nullptr;
  }
  const DensityPiece& piece = pair.pieces.front();
  if (piece.weight != 1 || piece.clip_low > -1e300 || piece.clip_high < 1e300) return nullptr;
  const auto* mixture = dynamic_cast<const GaussianMixtureDensity*>(piece.density.get());
  if (mixture == nullptr || mixture->max_denominator_shift() != 0) return nullptr;
  return mixture->HitProbability() < 1 ? mixture : nullptr;
}

}  // namespace

std::optional<TailSplit> TailSplit::At(std::span<const CountedPair> pairs, double epsilon) {
  // The ratio of the densities is at least the weight of the part that has not moved.
  double lowest = 0;
  for (const CountedPair& counted : pairs) {
    const GaussianMixtureDensity* density = SparseDensity(counted.pair);
    if (density == nullptr) return std::nullopt;
    lowest += static_cast<double>(counted.count) * std::log1p(-density->HitProbability());
  }
  const double cut = (epsilon - lowest) * (1 + 1e-9);
  if (!(cut < kMaxCut)) return std::nullopt;
  TailSplit split;
  split.reach_ = kInfinity;
  for (const CountedPair& counted : pairs) {
    const GaussianMixtureDensity& density = *SparseDensity(counted.pair);
    const double x = density.CoordinateOf(cut);
    const double other = density.OtherMassAbove(x);
    const double excess = density.ExcessAbove(x);
    if (!(other + excess < 0.9)) return std::nullopt;
    split.reach_ = std::min(split.reach_, density.Loss(x) * (1 - 1e-12) + lowest * (1 + 1e-12));
    const auto count = static_cast<double>(counted.count);
    split.log_other_body_ += count * std::log1p(-other);
    split.log_ratio_ += count * std::log1p(-excess / (1 - other));
    CountedPair body = counted;
    body.pair.pieces.front().clip_high = cut;
    body.pair.missing_p = other + excess;
    body.pair.absent_q = other;
    body.pair.q_rounding = kTailRounding * other;
    split.body_.push_back(std::move(body));
  }
  if (!(split.reach_ > 0)) return std::nullopt;
  return split;
}

Interval TailSplit::Added(double epsilon) const {
  // (1 - P) - e^epsilon (1 - Q) = (Q - P) - (e^epsilon - 1)(1 - Q), with P and Q the chances that
  // all steps are in their bodies.
  const double more = std::exp(log_other_body_) * -std::expm1(log_ratio_);
  const double less = std::expm1(epsilon) * -std::expm1(log_other_body_);
  const double error = kTailRounding * (more + less);
  return {std::max(0.0, more - less - error), std::max(0.0, more - less) + error};
}

}  // namespace sordino
