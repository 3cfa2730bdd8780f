// mixture-gaussian(noise, shift, probability, ...): Gaussian noise around a shift that is drawn
// with its probability, in units of the sensitivity.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/renyi/renyi_gaussian.h"

namespace sordino {
namespace {

std::vector<std::pair<double, double>> MixtureParts(const Event& event) {
  const std::vector<double> shifts = event.numbers("shift");
  const std::vector<double> probabilities = event.numbers("probability");
  std::vector<std::pair<double, double>> parts;
  for (std::size_t i = 0; i < shifts.size(); ++i) parts.emplace_back(shifts[i], probabilities[i]);
  return parts;
}

// Sampled with rate q: the record stays away with probability 1 - q, one shift more, of zero. With
// `replaced` two records are compared: either moves the output by at most each shift, so that s_i
// on one side and -s_j on the other are the centres farthest from each other and from zero, and the
// lemma of internal/pairs/full_batch.h holds.
DominatingPairs MixturePairs(const Event& event, double q, bool replaced = false) {
  using Parts = GaussianMixtureDensity::Parts;
  const double noise = event.number("noise");
  if (noise < kMinSigma) return Missing(kTooLittleNoise);
  Parts parts;
  Parts mirrored;
  bool moves = false;
  const auto add = [&](double shift, double probability) {
    parts.emplace_back(shift, probability);
    mirrored.emplace_back(-shift, probability);
    moves = moves || (shift > 0 && probability > 0);
  };
  for (const auto& [shift, probability] : MixtureParts(event)) add(shift, q * probability);
  if (q < 1) add(0, 1 - q);
  if (!moves) return Same({LossPair{}});
  if (replaced) {
    return Same({FromDensity(std::make_shared<GaussianMixtureDensity>(noise, parts, mirrored))});
  }
  return Same(
      {FromDensity(std::make_shared<GaussianMixtureDensity>(noise, parts, Parts{{0.0, 1.0}})),
       FromDensity(std::make_shared<GaussianMixtureDensity>(noise, Parts{{0.0, 1.0}}, mirrored))});
}

class MixtureGaussianKind final : public NoiseFamily {
 public:
  MixtureGaussianKind()
      : NoiseFamily(
            "mixture-gaussian",
            {FieldOf<NoiseMultiplier>("noise"),
             {"shift", "a shift of a mixture of Gaussians", 0, false, kInfinity, true},
             {"probability", "a probability of a mixture of Gaussians", 0, false, 1, false}},
            2) {}
  // Under every adjacency.
  void Check(const EventArguments& arguments) const override {
    const std::vector<double>& numbers = arguments.numbers;
    if (numbers.size() < 2) {
      throw Error("a mixture of Gaussians was given no parts; name at least one shift.");
    }
    if (numbers.size() % 2 == 0) {
      throw Error("a mixture of Gaussians was given a shift without its probability; name both.");
    }
    double total = 0;
    for (std::size_t i = 2; i < numbers.size(); i += 2) total += numbers[i];
    if (!(std::abs(total - 1) <= 1e-9)) {
      throw Error(fmt::format(
          "the probabilities of a mixture of Gaussians sum to {}; they must sum to 1.", total));
    }
  }
  Event DoubledReach(const Event& event) const override {
    return Event::MixtureGaussian(NoiseMultiplier(event.number("noise") / 2), MixtureParts(event),
                                  event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    return MixturePairs(event, 1);
  }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse&) const override {
    return MixturePairs(event, q, event.adjacency() == Adjacency::kReplaceOne);
  }
  RenyiFunction Renyi(const Event& event) const override {
    return FromMoments<MixtureGaussianMoments>(event.number("noise"), MixtureParts(event));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event& event, double q) const override {
    if (event.adjacency() == Adjacency::kReplaceOne) return {};
    std::vector<std::pair<double, double>> parts = MixtureParts(event);
    for (auto& [shift, probability] : parts) probability *= q;
    parts.emplace_back(0, 1 - q);
    return FromMoments<MixtureGaussianMoments>(event.number("noise"), std::move(parts));
  }
  ZcdpResult Zcdp(const Event& event) const override {
    const double noise = event.number("noise");
    double largest = 0;
    for (const auto& [shift, probability] : MixtureParts(event)) {
      if (probability > 0) largest = std::max(largest, shift);
    }
    return {0.5 * largest * largest / (noise * noise), ""};
  }
};

}  // namespace

const EventKind& MixtureGaussianEvent() { return OneOfKind<MixtureGaussianKind>(); }

Event Event::MixtureGaussian(NoiseMultiplier noise,
                             const std::vector<std::pair<double, double>>& parts,
                             Adjacency adjacency) {
  std::vector<double> numbers = {noise.value()};
  for (const auto& [shift, probability] : parts) {
    numbers.push_back(shift);
    numbers.push_back(probability);
  }
  return MixtureGaussianEvent().New({adjacency, std::move(numbers)});
}

}  // namespace sordino
