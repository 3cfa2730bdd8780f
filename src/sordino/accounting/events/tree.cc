// tree(noise, steps): binary-tree aggregation of Gaussian noise over so many steps, with one
// participation (internal/pairs/tree.h): a matrix mechanism whose sensitivity is the root of the
// height.
#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/tree.h"

namespace sordino {
namespace {

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

const EventKind& TreeEvent() {
  static const TreeKind kind;
  return kind;
}

Event Event::Tree(NoiseMultiplier noise, std::uint64_t steps, Adjacency adjacency) {
  return TreeEvent().New({adjacency, {noise.value(), WholeNumber(steps)}});
}

}  // namespace sordino
