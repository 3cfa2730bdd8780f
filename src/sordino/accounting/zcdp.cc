#include "sordino/accounting/zcdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

using Kind = Event::Kind;

ZcdpResult FromPure(double epsilon) {
  if (std::isinf(epsilon)) return {kInfinity, "an event with infinite epsilon has no finite rho"};
  return {0.5 * epsilon * epsilon, ""};
}

ZcdpResult Scaled(ZcdpResult result, double factor) {
  result.rho *= factor;
  return result;
}

}  // namespace

ZcdpResult ZcdpOf(const Event& event) {
  const std::vector<double>& n = event.numbers();
  switch (event.kind()) {
    case Kind::kNone:
      return {0, ""};
    case Kind::kGaussian:
    case Kind::kTree: {
      const double sigma = EquivalentGaussian(event).value_or(0);
      if (sigma == 0) return {kInfinity, "the noise is too small for a finite rho"};
      return {0.5 / (sigma * sigma), ""};
    }
    case Kind::kDiscreteGaussian:
      return {0.5 * n[1] * n[1] / (n[0] * n[0]), ""};
    case Kind::kMixtureGaussian: {
      double largest = 0;
      for (std::size_t i = 1; i < n.size(); i += 2) {
        if (n[i + 1] > 0) largest = std::max(largest, n[i]);
      }
      return {0.5 * largest * largest / (n[0] * n[0]), ""};
    }
    case Kind::kZcdp:
      return {n[0], ""};
    case Kind::kExponential:
      return Scaled(FromPure(n[0]), 0.25);
    case Kind::kLaplace:
    case Kind::kDiscreteLaplace:
    case Kind::kPure:
    case Kind::kRandomizedResponse:
      return FromPure(StepEpsilon(event, -kInfinity));
    case Kind::kApproximate:
      if (n[1] == 0) return FromPure(n[0]);
      return {kInfinity,
              fmt::format("an approximate event with delta {} is not zCDP for any rho", n[1])};
    case Kind::kPoisson:
      if (n[0] == 0) return {0, ""};
      if (event.adjacency() == Adjacency::kReplaceOne) {
        return ZcdpOf(DoubledReach(event.children()[0].first));
      }
      return ZcdpOf(event.children()[0].first);
    case Kind::kFixed:
      if (n[0] == 0) return {0, ""};
      return ZcdpOf(FixedReach(event.children()[0].first));
    case Kind::kAllocation:  // as above: the record's place told, one step is left
      return ZcdpOf(event.children()[0].first);
    case Kind::kTruncatedPoisson:
      if (n[1] == 0) return {0, ""};
      return event.adjacency() == Adjacency::kZeroOut
                 ? ZcdpOf(event.children()[0].first)
                 : ZcdpOf(DoubledReach(event.children()[0].first));
    case Kind::kCompose:
    case Kind::kParallel: {
      ZcdpResult total{0, ""};
      for (const auto& [child, count] : event.children()) {
        ZcdpResult one = ZcdpOf(child);
        if (!one.reason.empty()) return one;
        const double part = one.rho * static_cast<double>(count);
        total.rho = event.kind() == Kind::kCompose ? total.rho + part : std::max(total.rho, part);
      }
      return total;
    }
  }
  return {kInfinity, "the event has no known rho"};
}

double ZcdpEpsilonBunSteinke(double rho, double log_delta) {
  if (log_delta == 0 || rho == 0) return 0;
  return (rho + 2 * std::sqrt(-rho * log_delta)) * (1 + 1e-15);
}

RenyiEpsilonResult ZcdpEpsilon(double rho, double log_delta) {
  if (rho == 0) return {0, 2};
  return MinimizeEpsilon([rho](double order) { return rho * order; }, log_delta);
}

}  // namespace sordino
