// compose(n*event, ...): one after the other. Nested compositions are flattened, and equal events
// merged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

// Of sums of losses.
constexpr double kSumRounding = 1 + 1e-9;

std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) {
    throw Error(fmt::format(
        "the event repeats {} times {} releases; counts must stay below 2^64, use fewer.", a, b));
  }
  return a * b;
}

std::uint64_t Sum(std::uint64_t a, std::uint64_t b) {
  if (a > std::numeric_limits<std::uint64_t>::max() - b) {
    throw Error(fmt::format(
        "the event repeats {} and {} releases; counts must stay below 2^64, use fewer.", a, b));
  }
  return a + b;
}

class ComposeKind final : public CombinationFamily {
 public:
  ComposeKind() : CombinationFamily("compose") {}
  Event Make(EventArguments arguments) const override {
    for (const auto& [child, count] : arguments.terms) {
      CheckSameAdjacency(arguments.adjacency, child.adjacency());
    }
    EventTerms merged = Merge(arguments.terms);
    if (merged.empty()) return Event::None(arguments.adjacency);
    if (merged.size() == 1 && merged.front().second == 1) return merged.front().first;
    return Of({arguments.adjacency, {}, std::move(merged)});
  }
  Event DoubledReach(const Event& event) const override {
    return Mapped(event, [](const Event& child) { return sordino::DoubledReach(child); });
  }
  Event FixedReach(const Event& event) const override {
    return Mapped(event, [](const Event& child) { return sordino::FixedReach(child); });
  }
  Event Coarsened(const Event& event, const CoarseGrid& grid) const override {
    return Mapped(event, [&](const Event& child) { return child.kind().Coarsened(child, grid); });
  }
  KeptPart Kept(const Event& event) const override {
    double loss = 0;
    EventTerms parts;
    for (const auto& [child, count] : event.children()) {
      KeptPart kept = KeptPartOf(child);
      loss += static_cast<double>(count) * kept.loss;
      parts.emplace_back(std::move(kept.event), count);
    }
    return {Event::Compose(std::move(parts), event.adjacency()),
            std::min(1.0, loss * kSumRounding)};
  }
  RenyiFunction Renyi(const Event& event) const override {
    auto curve = std::make_shared<RenyiCurve>(event);
    return [curve](double order) { return (*curve)(order); };
  }
  ZcdpResult Zcdp(const Event& event) const override {
    ZcdpResult total{0, ""};
    for (const auto& [child, count] : event.children()) {
      ZcdpResult one = ZcdpOf(child);
      if (!one.reason.empty()) return one;
      total.rho += one.rho * static_cast<double>(count);
    }
    return total;
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>&) const override {
    double total = 0;
    const double share = log_delta - std::log(static_cast<double>(event.TotalCount()));
    for (const auto& [part, count] : event.children()) {
      total += static_cast<double>(count) * sordino::StepEpsilon(part, share);
    }
    return total * (1 + kAdvancedMargin);
  }
  double LeastLogDelta(const Event& event) const override { return SumOfLeastLogDeltas(event); }

 private:
  static EventTerms Merge(const EventTerms& children) {
    EventTerms merged;
    merged.reserve(children.size());
    Places places(merged, children.size());
    const auto add = [&](const Event& event, std::uint64_t count) {
      if (count == 0 || event.IsNone()) return;
      if (const auto place = places.FindOrAppend(event)) {
        merged[*place].second = Sum(merged[*place].second, count);
      } else {
        merged.emplace_back(event, count);
      }
    };
    for (const auto& [child, count] : children) {
      if (child.IsComposition()) {
        for (const auto& [grandchild, inner] : child.children()) {
          add(grandchild, Multiply(count, inner));
        }
      } else {
        add(child, count);
      }
    }
    return merged;
  }

  template <typename Change>
  static Event Mapped(const Event& event, Change change) {
    EventTerms children;
    children.reserve(event.children().size());
    for (const auto& [child, count] : event.children()) children.emplace_back(change(child), count);
    return Event::Compose(std::move(children), event.adjacency());
  }
};

}  // namespace

const EventKind& ComposeEvent() { return OneOfKind<ComposeKind>(); }

Event Event::Compose(std::vector<std::pair<Event, std::uint64_t>> children,
                     std::optional<Adjacency> adjacency) {
  const Adjacency common = adjacency.value_or(
      children.empty() ? Adjacency::kAddRemove : children.front().first.adjacency());
  return ComposeEvent().New({common, {}, std::move(children)});
}

Event Event::Compose(std::vector<Event> children, std::optional<Adjacency> adjacency) {
  EventTerms counted;
  counted.reserve(children.size());
  for (Event& child : children) counted.emplace_back(std::move(child), 1);
  return Compose(std::move(counted), adjacency);
}

Event Event::Repeat(Event child, std::uint64_t count) {
  EventTerms children;
  children.emplace_back(std::move(child), count);
  return Compose(std::move(children));
}

}  // namespace sordino
