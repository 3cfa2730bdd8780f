// best-tnb(eta, gamma, event): the best of K runs of the event, K from the truncated negative
// binomial distribution (accounting/run_count.h).
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/renyi/renyi_bounds.h"

namespace sordino {
namespace {

class BestTnbKind final : public BestFamily {
 public:
  // The ends keep every power of gamma in the range of doubles.
  BestTnbKind()
      : BestFamily("best-tnb",
                   {{"eta", "the shape of the number of runs", -1, true, 10, false},
                    {"gamma", "the parameter of the number of runs", 1e-9, false, 1, true}}) {}
  RunCount Runs(const Event& event) const override {
    return RunCount::TruncatedNegativeBinomial(event.number("eta"), event.number("gamma"));
  }
  RenyiFunction Renyi(const Event& event) const override {
    return [runs = Runs(event), run = RenyiOf(ChildOf(event))](double order) {
      return BestOfNegativeBinomialRenyi(run, runs, order);
    };
  }
};

}  // namespace

const EventKind& BestTnbEvent() { return OneOfKind<BestTnbKind>(); }

Event Event::BestTnb(double eta, double gamma, Event run) {
  return BestTnbEvent().New({run.adjacency(), {eta, gamma}, {{std::move(run), 1}}});
}

}  // namespace sordino
