// parallel(event, ...): on disjoint parts of the data; the worst counts. Each distinct part is
// named once.
#include <algorithm>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

class ParallelKind final : public CombinationFamily {
 public:
  ParallelKind() : CombinationFamily("parallel") {}
  Event Make(EventArguments arguments) const override {
    EventTerms parts;
    Places places(parts, arguments.terms.size());
    for (auto& [child, count] : arguments.terms) {
      CheckSameAdjacency(arguments.adjacency, child.adjacency());
      Event part = count == 1 ? std::move(child) : Event::Repeat(std::move(child), count);
      if (!part.IsNone() && !places.FindOrAppend(part)) parts.emplace_back(std::move(part), 1);
    }
    if (parts.empty()) return Event::None(arguments.adjacency);
    if (parts.size() == 1) return parts.front().first;
    return Of({arguments.adjacency, {}, std::move(parts)});
  }
  Event DoubledReach(const Event& event) const override {
    std::vector<Event> parts;
    for (const auto& [part, once] : event.children()) parts.push_back(sordino::DoubledReach(part));
    return Event::Parallel(std::move(parts), event.adjacency());
  }
  Event FixedReach(const Event& event) const override {
    std::vector<Event> parts;
    for (const auto& [part, once] : event.children()) parts.push_back(sordino::FixedReach(part));
    return Event::Parallel(std::move(parts), event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  KeptPart Kept(const Event& event) const override {
    std::vector<Event> parts;
    double loss = 0;
    for (const auto& [child, once] : event.children()) {
      KeptPart kept = KeptPartOf(child);
      loss = std::max(loss, kept.loss);
      parts.push_back(std::move(kept.event));
    }
    return {Event::Parallel(std::move(parts), event.adjacency()), loss};
  }
  RenyiFunction Renyi(const Event& event) const override {
    RenyiFunction worst = Linear(0);
    for (const auto& [part, once] : event.children()) {
      worst = Larger(std::move(worst), RenyiOf(part));
    }
    return worst;
  }
  ZcdpResult Zcdp(const Event& event) const override {
    ZcdpResult worst{0, ""};
    for (const auto& [part, once] : event.children()) {
      ZcdpResult one = ZcdpOf(part);
      if (!one.reason.empty()) return one;
      worst.rho = std::max(worst.rho, one.rho);
    }
    return worst;
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>&) const override {
    double worst = 0;
    for (const auto& [part, once] : event.children()) {
      worst = std::max(worst, sordino::StepEpsilon(part, log_delta));
    }
    return worst;
  }
  double LeastLogDelta(const Event& event) const override {
    double worst = -kInfinity;
    for (const auto& [part, once] : event.children()) {
      worst = std::max(worst, sordino::LeastLogDelta(part));
    }
    return std::min(worst, 0.0);
  }
};

}  // namespace

const EventKind& ParallelEvent() { return OneOfKind<ParallelKind>(); }

Event Event::Parallel(std::vector<Event> children, std::optional<Adjacency> adjacency) {
  const Adjacency common =
      adjacency.value_or(children.empty() ? Adjacency::kAddRemove : children.front().adjacency());
  EventTerms terms;
  terms.reserve(children.size());
  for (Event& child : children) terms.emplace_back(std::move(child), 1);
  return ParallelEvent().New({common, {}, std::move(terms)});
}

}  // namespace sordino
