// tree(noise, steps): binary-tree aggregation (the counting sums of DP-FTRL, Kairouz et al. 2021,
// arXiv 2103.00039), with one participation. Gaussian noise is added to the sum of every complete
// subtree of a growing binary tree over the steps. A record is in one node of each level: a matrix
// mechanism whose sensitivity is the root of the height.
#include <bit>
#include <cmath>

#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

// The number of levels of complete subtrees over `steps` >= 1 leaves: ceil(log2(steps + 1)).
int TreeHeight(std::uint64_t steps) { return std::bit_width(steps); }

class TreeKind final : public GaussianFamily {
 public:
  TreeKind()
      : GaussianFamily("tree", {FieldOf<NoiseMultiplier>("noise"),
                                WholeField("steps", "the number of steps of a tree")}) {}
  Event DoubledReach(const Event& event) const override {
    return Event::Tree(NoiseMultiplier(event.number("noise") / 2), WholeNumber(event, "steps"),
                       event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  std::optional<double> Precision(const Event& event) const override {
    const double noise = event.number("noise");
    return TreeHeight(WholeNumber(event, "steps")) / (noise * noise);
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    const auto height = static_cast<double>(TreeHeight(WholeNumber(event, "steps")));
    return Same({FromGaussian(std::sqrt(height) / event.number("noise"))});
  }
};

}  // namespace

const EventKind& TreeEvent() { return OneOfKind<TreeKind>(); }

Event Event::Tree(NoiseMultiplier noise, std::uint64_t steps, Adjacency adjacency) {
  return TreeEvent().New({adjacency, {noise.value(), WholeNumber(steps)}});
}

}  // namespace sordino
