// allocation(batches, gaussian): each record in one of the batches, chosen uniformly; one pass over
// all of them (allocation.h). Refused under replace-one, for which no bound is proven.
#include <fmt/format.h>

#include "sordino/accounting/allocation.h"
#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

// In bounds without pairs the record's place is told: one step is left.
class AllocationKind final : public WholeSamplerFamily {
 public:
  AllocationKind()
      : WholeSamplerFamily(
            "allocation", {WholeField("batches", "the number of batches of a random allocation")}) {
  }
  void Check(const EventArguments& arguments, const Event& child) const override {
    if (arguments.adjacency == Adjacency::kReplaceOne) {
      throw Error(
          "random allocation was given replace-one adjacency; it must be add-remove or zero-out, "
          "because no bound is proven for replacing a record.");
    }
    for (const auto& [part, count] : child.Flatten()) {
      if (part.kind().Precision(part)) continue;
      throw Error(fmt::format(
          "random allocation was given the mechanism '{}'; it must be 'gaussian'.", part.name()));
    }
  }
  // One batch is the event itself.
  Event Make(EventArguments arguments) const override {
    const bool one = arguments.numbers.front() == 1;
    Event event = SamplerFamily::Make(std::move(arguments));
    return one && !event.IsNone() ? ChildOf(event) : event;
  }
  void AddNoiseUnits(const Event& event, bool NoiseUnits::*place,
                     NoiseUnits& units) const override {
    units.allocation = true;
    AddUnitsOfChildren(event, place, units);
  }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    const double batches = event.number("batches");
    const std::optional<double> sigma = EquivalentGaussian(ChildOf(event));
    if (!sigma) return Missing(kTooLittleNoise);
    if (use.log_delta == -kInfinity) return Same({FromGaussian(1 / *sigma)});  // unbounded as well
    DominatingPairs pairs;
    if (*sigma < kMinAllocationNoise || *sigma > kMaxAllocationNoise ||
        batches > kMaxAllocationBatches) {
      // Telling the record's place leaves one Gaussian step; looking at one step only, a record
      // that is there with probability 1/t.
      pairs.upper = {FromGaussian(1 / *sigma)};
      if (*sigma >= kMinSigma && *sigma <= kMaxAllocationNoise) {
        pairs.lower = {FromDensity(RemoveDensity(*sigma, 1 / batches, 1)),
                       FromDensity(AddDensity(*sigma, 1 / batches, 1))};
      }
      return pairs;
    }
    AllocationPairs found = PairsOfAllocation(static_cast<std::uint64_t>(batches), *sigma,
                                              {use.log_delta, use.count, use.effort});
    pairs.upper = {std::move(found.remove_upper), std::move(found.add_upper)};
    const auto add_lower = [&pairs](LossPair& remove, LossPair& add) {
      if (remove.atoms.empty() && add.atoms.empty()) return;
      pairs.lower.push_back(std::move(remove));
      pairs.lower.push_back(std::move(add));
    };
    add_lower(found.remove_lower, found.add_lower);
    add_lower(found.remove_lower_points, found.add_lower_points);
    return pairs;
  }
  std::string_view ReasonOfUse() const override {
    return "random allocation is computed by sums in double precision, whose rounding leaves a "
           "small chance in every epoch for which nothing is certified, and delta is not above "
           "that of all epochs, or the composition is beyond the engines";
  }
  RenyiFunction Renyi(const Event& event) const override { return RenyiOf(ChildOf(event)); }
  ZcdpResult Zcdp(const Event& event) const override { return ZcdpOf(ChildOf(event)); }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>&) const override {
    return sordino::StepEpsilon(ChildOf(event), log_delta);
  }
};

}  // namespace

const EventKind& AllocationEvent() { return OneOfKind<AllocationKind>(); }

Event Event::Allocation(std::uint64_t batches, Event gaussian) {
  return AllocationEvent().New(
      {gaussian.adjacency(), {WholeNumber(batches)}, {{std::move(gaussian), 1}}});
}

}  // namespace sordino
