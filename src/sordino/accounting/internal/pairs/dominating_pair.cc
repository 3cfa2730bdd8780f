#include "sordino/accounting/internal/pairs/dominating_pair.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "sordino/accounting/internal/event_kind.h"

namespace sordino {

using Mixture = GaussianMixtureDensity;

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

DominatingPairs DiscretePairs(const std::optional<Outcomes>& outcomes, bool both) {
  if (!outcomes) return Missing("the noise has too many values for a table of them");
  std::vector<LossPair> pairs = {FromOutcomes(*outcomes)};
  if (both) pairs.push_back(FromOutcomes(Swapped(*outcomes)));
  return Same(std::move(pairs));
}

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

std::shared_ptr<const LossDensity> ReplaceDensity(double sigma, double q, double shift) {
  return std::make_shared<Mixture>(sigma, SampledParts(q, shift), SampledParts(q, -shift));
}

std::optional<TwoPairs> SampledDirections(const Event& child, double q) {
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    return std::pair(FromDensity(RemoveDensity(*sigma, q, 1)),
                     FromDensity(AddDensity(*sigma, q, 1)));
  }
  if (auto own = child.kind().SampledDirections(child, q)) return own;
  if (const std::optional<Outcomes> outcomes = OutcomesOf(child)) {
    const Outcomes sampled = SampleOutcomes(*outcomes, q);
    return std::pair(FromOutcomes(sampled), FromOutcomes(Swapped(sampled)));
  }
  return std::nullopt;
}

bool HasTooLittleNoise(const Event& child) {
  const std::optional<double> sigma = EquivalentGaussian(child);
  return sigma ? *sigma < kMinSigma : child.kind().HasTooLittleNoise(child);
}

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
  return event.kind().Pairs(event, use);
}

std::string_view ReasonOfUse(const Event& event) {
  std::string_view reason = event.kind().ReasonOfUse();
  for (const auto& [child, count] : event.children()) {
    if (reason.empty()) reason = ReasonOfUse(child);
  }
  return reason;
}

}  // namespace sordino
