// discrete-laplace(scale, sensitivity): noise on the integers, pmf ~ exp(-|x| / scale), for a query
// of whole numbers.
#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

// Beyond it the atoms of a loss would fill memory; the pure bound takes over.
constexpr double kMaxDiscreteAtoms = 100000;

class DiscreteLaplaceKind final : public DiscreteNoiseFamily {
 public:
  DiscreteLaplaceKind()
      : DiscreteNoiseFamily("discrete-laplace",
                            {{"scale", "the scale of a discrete Laplace", 0, true, kInfinity, true},
                             WholeField("sensitivity", "the sensitivity of a discrete Laplace")}) {}
  Event DoubledReach(const Event& event) const override {
    return Event::DiscreteLaplace(event.number("scale"), 2 * WholeNumber(event, "sensitivity"),
                                  event.adjacency());
  }
  std::optional<Outcomes> SampledOutcomes(const Event& event, double q, double r) const override {
    return DiscreteLaplaceOutcomes(event.number("scale"), event.number("sensitivity"), q, r);
  }
  RenyiFunction Renyi(const Event& event) const override {
    return FromAtoms(SymmetricAtoms(event));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event& event) const override {
    const double scale = event.number("scale");
    const double sensitivity = event.number("sensitivity");
    if (sensitivity > kMaxDiscreteAtoms) return PureAtoms(sensitivity / scale);
    return DiscreteLaplaceAtoms(scale, WholeNumber(event, "sensitivity"));
  }
  RenyiFunction PoissonRenyi(const Event& event, double q) const override {
    const double sensitivity = event.number("sensitivity");
    if (event.adjacency() != Adjacency::kReplaceOne || sensitivity > kMaxDiscreteAtoms) return {};
    const auto outcomes = DiscreteLaplaceOutcomes(event.number("scale"), sensitivity, q, q);
    if (!outcomes) return {};
    std::vector<LossNode> nodes;
    nodes.reserve(outcomes->size());
    for (const Outcome& o : *outcomes) nodes.push_back(MakeLossNode(o.log_q, o.loss));
    return FromNodes(std::move(nodes));
  }
  ZcdpResult Zcdp(const Event& event) const override {
    return ZcdpOfPure(sordino::StepEpsilon(event, -kInfinity));
  }
  double StepEpsilon(const Event& event, double, std::optional<RenyiCurve>&) const override {
    return event.number("sensitivity") / event.number("scale") * (1 + kAdvancedMargin);
  }
};

}  // namespace

const EventKind& DiscreteLaplaceEvent() { return OneOfKind<DiscreteLaplaceKind>(); }

Event Event::DiscreteLaplace(double scale, std::uint64_t sensitivity, Adjacency adjacency) {
  return DiscreteLaplaceEvent().New({adjacency, {scale, WholeNumber(sensitivity)}});
}

}  // namespace sordino
