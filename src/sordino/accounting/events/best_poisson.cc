// best-poisson(mean, event): the best of K runs of the event, K from the Poisson distribution. Of
// no runs nothing is released.
#include <functional>
#include <memory>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/renyi/renyi_bounds.h"

namespace sordino {
namespace {

class BestPoissonKind final : public BestFamily {
 public:
  BestPoissonKind()
      : BestFamily("best-poisson", {{"mean", "the mean number of runs", 0, true, 1e9, false}}) {}
  RunCount Runs(const Event& event) const override {
    return RunCount::Poisson(event.number("mean"));
  }
  // What a run loses of delta has a closed form, or follows from its curve.
  RenyiFunction Renyi(const Event& event) const override {
    const Event& run = ChildOf(event);
    std::function<double(double)> log_delta;
    if (const std::optional<double> sigma = EquivalentGaussian(run)) {
      log_delta = [mu = 1 / *sigma](double epsilon) {
        return GaussianLogDelta(mu, epsilon) + GaussianLogDeltaError(mu, epsilon);
      };
    } else {
      log_delta = [curve = std::make_shared<RenyiCurve>(run)](double epsilon) {
        return curve->ToDelta(epsilon).log_delta;
      };
    }
    return [mean = event.number("mean"), inner = RenyiOf(run), log_delta](double order) {
      return BestOfPoissonRenyi(inner, log_delta, mean, order);
    };
  }
};

}  // namespace

const EventKind& BestPoissonEvent() { return OneOfKind<BestPoissonKind>(); }

Event Event::BestPoisson(double mean, Event run) {
  return BestPoissonEvent().New({run.adjacency(), {mean}, {{std::move(run), 1}}});
}

}  // namespace sordino
