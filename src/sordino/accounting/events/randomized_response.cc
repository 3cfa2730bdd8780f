// randomized-response(p, buckets): a uniform report over the buckets with probability p, else the
// truth. Under zero-out the special record's report is uniform.
#include <algorithm>
#include <cmath>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/poisson_guarantees.h"
#include "sordino/accounting/internal/pairs/sampled_responses.h"

namespace sordino {
namespace {

Outcomes RandomizedResponseOutcomes(double p, double buckets, bool replace) {
  const double other = std::log(p / buckets);
  if (replace) {
    const double loss = std::log1p((1 - p) * buckets / p);
    Outcomes outcomes = {OutcomeOf(other, loss), OutcomeOf(other + loss, -loss)};
    if (buckets > 2) outcomes.push_back(OutcomeOf(other + std::log(buckets - 2), 0));
    return outcomes;
  }
  // Against a report that is uniform.
  return {OutcomeOf(-std::log(buckets), std::log1p((1 - p) * (buckets - 1))),
          OutcomeOf(std::log1p(-1 / buckets), std::log(p))};
}

RenyiFunction MakeZeroOutResponse(double p, double k) {
  // Own report against a uniform one: losses log(k (1-p) + p) and log p.
  const double high = std::log1p((1 - p) * (k - 1));
  const double low = std::log(p);
  const double log_one = -std::log(k);
  const double log_rest = std::log1p(-1 / k);
  return Larger(
      FromNodes({MakeLossNode(log_one, high), MakeLossNode(log_rest, low)}),
      FromNodes({MakeLossNode(log_one + high, -high), MakeLossNode(log_rest + low, -low)}));
}

class RandomizedResponseKind final : public DeltaFreeFamily {
 public:
  RandomizedResponseKind()
      : DeltaFreeFamily("randomized-response",
                        {{"p", "the probability of a uniform report", 0, true, 1, false},
                         WholeField("buckets", "the number of buckets", 2, 4294967295)}) {}
  void Check(const EventArguments& arguments) const override {
    if (arguments.adjacency != Adjacency::kAddRemove) return;
    throw Error(
        "randomised response was given add-remove adjacency; it must be replace-one or zero-out, "
        "because the number of reports is visible.");
  }
  // In a batch of fixed size a report takes the place of another one.
  Event FixedReach(const Event& event) const override {
    if (event.adjacency() == Adjacency::kReplaceOne) return event;
    const double p = event.number("p");
    const double loss = std::log1p((1 - p) * event.number("buckets") / p);
    return Event::Pure(Epsilon(loss * (1 + 0x1p-50)), event.adjacency());
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    return DiscretePairs(DiscreteOutcomes(event), event.adjacency() != Adjacency::kReplaceOne);
  }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<Outcomes> DiscreteOutcomes(const Event& event) const override {
    return RandomizedResponseOutcomes(event.number("p"), event.number("buckets"),
                                      event.adjacency() == Adjacency::kReplaceOne);
  }
  // Under add-remove and zero-out its outcomes say all.
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse&) const override {
    if (event.adjacency() != Adjacency::kReplaceOne) return {};
    if (auto exact = ReplacedResponses(event, q)) return exact;
    return ReplacedGuarantee(event, q, std::nullopt);
  }
  std::optional<DominatingPairs> FixedPairs(const Event& event, double q,
                                            const PairUse&) const override {
    if (event.adjacency() == Adjacency::kReplaceOne) return ReplacedResponses(event, q);
    return NullResponses(event, q);
  }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  RenyiFunction Renyi(const Event& event) const override {
    if (event.adjacency() == Adjacency::kReplaceOne) return FromAtoms(SymmetricAtoms(event));
    return MakeZeroOutResponse(event.number("p"), event.number("buckets"));
  }
  std::string RenyiReason(const Event&) const override { return ""; }
  std::optional<LossAtoms> SymmetricAtoms(const Event& event) const override {
    const double p = event.number("p");
    const double k = event.number("buckets");
    // Own bucket 1 - p + p/k, any other p/k.
    if (event.adjacency() == Adjacency::kReplaceOne) {
      const double log_other = std::log(p) - std::log(k);
      const double loss = std::log1p((1 - p) * k / p);
      return LossAtoms{{log_other, loss}, {log_other + loss, -loss}};
    }
    // Against a uniform report the pair is not symmetric; its larger loss bounds both.
    return PureAtoms(std::max(std::log1p((1 - p) * (k - 1)), -std::log(p)));
  }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override {
    return ZcdpOfPure(sordino::StepEpsilon(event, -kInfinity));
  }
  double StepEpsilon(const Event& event, double, std::optional<RenyiCurve>&) const override {
    const double p = event.number("p");
    const double k = event.number("buckets");
    if (event.adjacency() == Adjacency::kReplaceOne) return std::log1p((1 - p) * k / p);
    return std::max(std::log1p((1 - p) * (k - 1)), -std::log(p));
  }
};

}  // namespace

const EventKind& RandomizedResponseEvent() { return OneOfKind<RandomizedResponseKind>(); }

Event Event::RandomizedResponse(double p, std::uint32_t buckets, Adjacency adjacency) {
  return RandomizedResponseEvent().New({adjacency, {p, static_cast<double>(buckets)}});
}

}  // namespace sordino
