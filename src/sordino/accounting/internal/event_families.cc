#include "sordino/accounting/internal/event_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/internal/pairs/selection.h"
#include "sordino/base/error.h"

namespace sordino {

// Below this noise R overflows doubles.
constexpr double kMinRenyiNoise = 1e-100;

Event LeafFamily::Make(EventArguments arguments) const {
  Check(arguments);
  return Of(std::move(arguments));
}

std::string NoiseFamily::RenyiReason(const Event& event) const {
  const double noise = event.number(FieldAt(0).name);
  if (!(noise < kMinRenyiNoise)) return "";
  return fmt::format("noise of {} is too small for a finite Renyi divergence in doubles", noise);
}

double NoiseFamily::StepEpsilon(const Event& event, double log_delta,
                                std::optional<RenyiCurve>& curve) const {
  return EpsilonByCurve(event, log_delta, curve);
}

DominatingPairs GaussianFamily::Pairs(const Event& event, const PairUse&) const {
  return Same({FromGaussian(std::sqrt(Precision(event).value()))});
}

RenyiFunction GaussianFamily::Renyi(const Event&) const { return Infinite(); }

ZcdpResult GaussianFamily::Zcdp(const Event& event) const {
  const double sigma = EquivalentGaussian(event).value_or(0);
  if (sigma == 0) return {kInfinity, "the noise is too small for a finite rho"};
  return {0.5 / (sigma * sigma), ""};
}

DominatingPairs DiscreteNoiseFamily::Pairs(const Event& event, const PairUse&) const {
  return DiscretePairs(DiscreteOutcomes(event));
}

std::optional<Outcomes> DiscreteNoiseFamily::DiscreteOutcomes(const Event& event) const {
  return SampledOutcomes(event, 1, 0);
}

std::optional<DominatingPairs> DiscreteNoiseFamily::PoissonPairs(const Event& event, double q,
                                                                 const PairUse&) const {
  if (event.adjacency() != Adjacency::kReplaceOne) return {};
  const std::optional<Outcomes> outcomes = SampledOutcomes(event, q, q);
  return outcomes ? std::optional(DiscretePairs(outcomes)) : std::nullopt;
}

void InnerFamily::AddUnitsOfChildren(const Event& event, bool NoiseUnits::*place,
                                     NoiseUnits& units) {
  for (const auto& [child, count] : event.children()) {
    child.kind().AddNoiseUnits(child, place, units);
  }
}

std::string InnerFamily::RenyiReason(const Event& event) const {
  for (const auto& [child, count] : event.children()) {
    std::string reason = RenyiInapplicable(child);
    if (!reason.empty()) return reason;
  }
  return "";
}

Event SamplerFamily::Make(EventArguments arguments) const {
  auto& [event, count] = arguments.terms.front();
  if (count != 1) event = Event::Repeat(std::move(event), std::exchange(count, 1));
  arguments.adjacency = event.adjacency();
  Check(arguments, event);
  return event.IsNone() ? event : Of(std::move(arguments));
}

void RateFamily::AddNoiseUnits(const Event& event, bool NoiseUnits::*, NoiseUnits& units) const {
  AddUnitsOfChildren(event, fixed_ ? &NoiseUnits::fixed : &NoiseUnits::poisson, units);
}

Event RateFamily::Coarsened(const Event& event, const CoarseGrid& grid) const {
  const Event& child = ChildOf(event);
  return New({event.adjacency(),
              {grid.Rate(event.number("rate")).value()},
              {{child.kind().Coarsened(child, grid), 1}}});
}

std::optional<double> RateFamily::ContourHits(const Event& event,
                                              std::optional<double> above) const {
  const Event& child = ChildOf(event);
  return above ? std::nullopt : child.kind().ContourHits(child, event.number("rate"));
}

double RateFamily::BlockRange(const Event& event) const {
  const Event& child = ChildOf(event);
  return event.number("rate") * child.kind().BlockRange(child);
}

std::string RateFamily::RenyiReason(const Event& event) const {
  return event.number("rate") == 0 ? "" : SamplerFamily::RenyiReason(event);
}

double RateFamily::LeastLogDelta(const Event& event) const {
  const double rate = event.number("rate");
  if (rate == 0) return -kInfinity;
  return std::min(SumOfLeastLogDeltas(event) + std::log(rate), 0.0);
}

std::optional<double> RateFamily::EpsilonAtOwnDelta(const Event& event, double delta,
                                                    std::optional<double> above) const {
  const Event& child = ChildOf(event);
  if (above) return {};
  return child.kind().EpsilonAtOwnDelta(child, delta, event.number("rate"));
}

double WholeSamplerFamily::LeastLogDelta(const Event& event) const {
  return SumOfLeastLogDeltas(event);
}

namespace {

bool HoldsSelection(const Event& event) {
  if (dynamic_cast<const BestFamily*>(&event.kind()) != nullptr) return true;
  return std::any_of(event.children().begin(), event.children().end(),
                     [](const auto& term) { return HoldsSelection(term.first); });
}

}  // namespace

// The profile of a run is made of hundreds of answers, so that a selection inside another one would
// take hours.
Event BestFamily::Make(EventArguments arguments) const {
  auto& [event, count] = arguments.terms.front();
  if (HoldsSelection(event)) {
    throw Error(fmt::format(
        "'{}' was given runs that hold the best of other runs; describe them by their own "
        "guarantee, such as approximate(EPSILON, DELTA).",
        name()));
  }
  if (count != 1) event = Event::Repeat(std::move(event), std::exchange(count, 1));
  arguments.adjacency = event.adjacency();
  return event.IsNone() ? event : Of(std::move(arguments));
}

Event BestFamily::OfRun(const Event& event, Event run) const {
  EventArguments arguments{event.adjacency(), {}, {{std::move(run), 1}}};
  for (std::size_t place = 0; place < numbers(); ++place) {
    arguments.numbers.push_back(event.number(FieldAt(place).name));
  }
  return New(std::move(arguments));
}

Event BestFamily::DoubledReach(const Event& event) const {
  return OfRun(event, sordino::DoubledReach(ChildOf(event)));
}

Event BestFamily::FixedReach(const Event& event) const {
  return OfRun(event, sordino::FixedReach(ChildOf(event)));
}

DominatingPairs BestFamily::Pairs(const Event& event, const PairUse& use) const {
  return SelectionPairs(Runs(event), ChildOf(event), use);
}

ZcdpResult BestFamily::Zcdp(const Event&) const {
  return {kInfinity, "no bound for zCDP is known for the best of several runs"};
}

double BestFamily::StepEpsilon(const Event& event, double log_delta,
                               std::optional<RenyiCurve>& curve) const {
  return EpsilonByCurve(event, log_delta, curve);
}

double BestFamily::LeastLogDelta(const Event& event) const {
  return std::min(0.0, SumOfLeastLogDeltas(event) + std::max(0.0, std::log(Runs(event).Mean())));
}

void CombinationFamily::CheckSameAdjacency(Adjacency wanted, Adjacency given) {
  if (wanted == given) return;
  throw Error(fmt::format(
      "an event under {} was combined with one under {}; their epsilons do not compose, so "
      "describe both under one adjacency.",
      AdjacencyName(wanted), AdjacencyName(given)));
}

std::optional<std::size_t> CombinationFamily::Places::FindOrAppend(const Event& event) {
  const std::uint64_t fingerprint = Fingerprint(event);
  const auto [first, last] = places_.equal_range(fingerprint);
  for (auto it = first; it != last; ++it) {
    if (terms_[it->second].first == event) return it->second;
  }
  places_.emplace(fingerprint, terms_.size());
  return std::nullopt;
}

}  // namespace sordino
