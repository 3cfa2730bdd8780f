// Families of kinds, and what the files of events/ share.
//
// A family answers what its definition decides. Each other question stays open for its members, and
// so does each whose answer would be too small if it were forgotten.
#ifndef SORDINO_ACCOUNTING_INTERNAL_EVENT_FAMILIES_H_
#define SORDINO_ACCOUNTING_INTERNAL_EVENT_FAMILIES_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/run_count.h"

namespace sordino {

// A mechanism: an event with no events inside.
class LeafFamily : public EventKind {
 public:
  LeafFamily(std::string_view name, std::vector<EventField> fields, std::size_t repeating = 0)
      : EventKind(name, std::move(fields), 0, repeating) {}
  // Throws Error for an adjacency or numbers that it cannot have.
  virtual void Check(const EventArguments& arguments) const = 0;

  Event Make(EventArguments arguments) const override;
  std::optional<EventSampling> Sampling(const Event&) const override { return {}; }
  std::string_view ReasonOfUse() const override { return ""; }
};

// Noise that is divided by the sensitivity of a query; its first field is the noise. It is no
// Gaussian, of its losses nothing is known but its pairs, and its curve tells an epsilon.
class NoiseFamily : public LeafFamily {
 public:
  using LeafFamily::LeafFamily;
  void AddNoiseUnits(const Event&, bool NoiseUnits::*place, NoiseUnits& units) const override {
    units.*place = true;
  }
  Event FixedReach(const Event& event) const override { return event; }
  KeptPart Kept(const Event& event) const override { return {event, 0}; }
  std::optional<double> Precision(const Event&) const override { return {}; }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<DominatingPairs> FixedPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<TwoPairs> SampledDirections(const Event&, double) const override { return {}; }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  std::string RenyiReason(const Event& event) const override;
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override;
  double LeastLogDelta(const Event&) const override { return -kInfinity; }
  std::optional<double> EpsilonAtOwnDelta(const Event&, double,
                                          std::optional<double>) const override {
    return {};
  }
};

// Noise that amounts to a Gaussian: Precision() says to which, and everything follows from that.
class GaussianFamily : public NoiseFamily {
 public:
  using NoiseFamily::NoiseFamily;
  void Check(const EventArguments&) const override {}  // every adjacency
  std::optional<double> Precision(const Event& event) const override = 0;
  DominatingPairs Pairs(const Event& event, const PairUse&) const override;
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<DominatingPairs> PoissonPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  // Where its precision overflows.
  RenyiFunction Renyi(const Event&) const override;
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override;
};

// Noise on the integers, for a query of whole numbers; its second field is the sensitivity.
class DiscreteNoiseFamily : public NoiseFamily {
 public:
  using NoiseFamily::NoiseFamily;
  // Outcomes with the record at rate q against without it, at rate r on the other side
  // (outcomes.h).
  virtual std::optional<Outcomes> SampledOutcomes(const Event& event, double q, double r) const = 0;

  void Check(const EventArguments&) const override {}  // every adjacency
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override;
  std::optional<Outcomes> DiscreteOutcomes(const Event& event) const override;
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse&) const override;
};

// A guarantee that is given as such: it holds for replacing as well as for dropping a record, so
// twice the reach changes nothing, and it has no noise.
class GuaranteeFamily : public LeafFamily {
 public:
  using LeafFamily::LeafFamily;
  void AddNoiseUnits(const Event&, bool NoiseUnits::*, NoiseUnits&) const override {}
  Event DoubledReach(const Event& event) const override { return event; }
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  std::optional<double> Precision(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<TwoPairs> SampledDirections(const Event&, double) const override { return {}; }
};

// A guarantee without a delta of its own.
class DeltaFreeFamily : public GuaranteeFamily {
 public:
  using GuaranteeFamily::GuaranteeFamily;
  KeptPart Kept(const Event& event) const override { return {event, 0}; }
  double LeastLogDelta(const Event&) const override { return -kInfinity; }
  std::optional<double> EpsilonAtOwnDelta(const Event&, double,
                                          std::optional<double>) const override {
    return {};
  }
};

// An event made of others: of its losses nothing is known but what they say.
class InnerFamily : public EventKind {
 public:
  using EventKind::EventKind;
  std::optional<EventSampling> Sampling(const Event&) const override { return {}; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  std::optional<double> Precision(const Event&) const override { return {}; }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<DominatingPairs> FixedPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<TwoPairs> SampledDirections(const Event&, double) const override { return {}; }
  std::optional<DominatingPairs> PoissonPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  std::string RenyiReason(const Event& event) const override;  // that of the first that has one
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  std::optional<double> EpsilonAtOwnDelta(const Event&, double,
                                          std::optional<double>) const override {
    return {};
  }

 protected:
  static void AddUnitsOfChildren(const Event& event, bool NoiseUnits::*place, NoiseUnits& units);
};

// Batches of records, each for one event.
class SamplerFamily : public InnerFamily {
 public:
  SamplerFamily(std::string_view name, std::vector<EventField> fields)
      : InnerFamily(name, std::move(fields), 1) {}
  // Throws Error for an event that it cannot sample.
  virtual void Check(const EventArguments& arguments, const Event& child) const = 0;

  // A sample of nothing is nothing.
  Event Make(EventArguments arguments) const override;
  std::string_view ReasonOfUse() const override { return ""; }
};

// Batches that every record enters with one rate, their only field.
class RateFamily : public SamplerFamily {
 public:
  RateFamily(std::string_view name, bool fixed)
      : SamplerFamily(name, {FieldOf<SamplingRate>("rate")}), fixed_(fixed) {}
  void Check(const EventArguments&, const Event&) const override {}  // every adjacency, every event
  void AddNoiseUnits(const Event& event, bool NoiseUnits::*, NoiseUnits& units) const override;
  std::optional<EventSampling> Sampling(const Event& event) const override {
    return EventSampling{event.number("rate"), fixed_};
  }
  Event Coarsened(const Event& event, const CoarseGrid& grid) const override;
  std::optional<double> ContourHits(const Event& event, std::optional<double> above) const override;
  double BlockRange(const Event& event) const override;
  std::string RenyiReason(const Event& event) const override;
  double LeastLogDelta(const Event& event) const override;
  std::optional<double> EpsilonAtOwnDelta(const Event& event, double delta,
                                          std::optional<double> above) const override;

 private:
  bool fixed_;
};

// Batches in which records push each other out or take turns: they are taken as they are.
class WholeSamplerFamily : public SamplerFamily {
 public:
  using SamplerFamily::SamplerFamily;
  Event DoubledReach(const Event& event) const override { return event; }  // it doubles inside
  Event FixedReach(const Event& event) const override { return event; }
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  KeptPart Kept(const Event& event) const override { return {event, 0}; }
  double LeastLogDelta(const Event& event) const override;
};

// The best of several runs of one event (internal/pairs/selection.h).
class BestFamily : public InnerFamily {
 public:
  BestFamily(std::string_view name, std::vector<EventField> fields)
      : InnerFamily(name, std::move(fields), 1) {}
  // How often it is run.
  virtual RunCount Runs(const Event& event) const = 0;

  // The best of nothing is nothing.
  Event Make(EventArguments arguments) const override;
  void AddNoiseUnits(const Event& event, bool NoiseUnits::*place,
                     NoiseUnits& units) const override {
    AddUnitsOfChildren(event, place, units);
  }
  // What holds for every pair of neighbours of a run holds for those that are further apart.
  Event DoubledReach(const Event& event) const override;
  Event FixedReach(const Event& event) const override;
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  KeptPart Kept(const Event& event) const override { return {event, 0}; }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override;
  std::string_view ReasonOfUse() const override {
    return "the profile of a run is computed down to a chance that is small beside delta, and what "
           "lies below counts for the mean number of runs; delta is not above that, or the "
           "composition is beyond the engines";
  }
  ZcdpResult Zcdp(const Event& event) const override;
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override;
  double LeastLogDelta(const Event& event) const override;

 private:
  Event OfRun(const Event& event, Event run) const;
};

// Events beside each other: a sequence, or alternatives.
class CombinationFamily : public InnerFamily {
 public:
  explicit CombinationFamily(std::string_view name) : InnerFamily(name, {}, kMany) {}
  void AddNoiseUnits(const Event& event, bool NoiseUnits::*place,
                     NoiseUnits& units) const override {
    AddUnitsOfChildren(event, place, units);
  }
  std::string_view ReasonOfUse() const override { return ""; }
  DominatingPairs Pairs(const Event&, const PairUse&) const override {
    return Missing("a composition has no pair of its own");
  }

 protected:
  static void CheckSameAdjacency(Adjacency wanted, Adjacency given);
  // The place of an event in a list, by its hash.
  class Places {
   public:
    Places(const EventTerms& terms, std::size_t expected) : terms_(terms) {
      places_.reserve(expected);
    }
    // nullopt where the list does not have it; then it is to be appended at once.
    std::optional<std::size_t> FindOrAppend(const Event& event);

   private:
    const EventTerms& terms_;
    std::unordered_multimap<std::uint64_t, std::size_t> places_;
  };
};

// ---- Whole numbers -----------------------------------------------------------------------------

// As a field holds it; a number beyond 2^53 stays one.
inline double WholeNumber(std::uint64_t value) {
  return value <= std::uint64_t{1} << 53 ? static_cast<double>(value) : 0x1p53 + 2;
}
inline std::uint64_t WholeNumber(const Event& event, std::string_view field) {
  return static_cast<std::uint64_t>(event.number(field));
}
inline const Event& ChildOf(const Event& event) { return event.children()[0].first; }

// ---- Renyi -------------------------------------------------------------------------------------

// Below this noise the quadrature of a sampled Gaussian has too many steps, and the unsampled
// bound, which then differs by little, takes over.
inline constexpr double kMinSampledNoise = 0.01;

// R of an event, whatever it is.
RenyiFunction RenyiOf(const Event& event);
RenyiFunction Linear(double slope);
RenyiFunction Infinite();
RenyiFunction FromNodes(std::vector<LossNode> nodes);
RenyiFunction Larger(RenyiFunction a, RenyiFunction b);
RenyiFunction Smaller(RenyiFunction a, RenyiFunction b);
template <typename Moments, typename... Args>
RenyiFunction FromMoments(Args&&... args) {
  auto shared = std::make_shared<Moments>(std::forward<Args>(args)...);
  return [shared](double order) { return shared->Renyi(order); };
}
// From atoms of a symmetric pair, which are none where R is infinite.
RenyiFunction FromAtoms(const std::optional<LossAtoms>& atoms);
// Both directions of Poisson sampling a symmetric pair.
RenyiFunction SampledAtoms(const LossAtoms& atoms, double q);
// Why an event with this epsilon has no curve; empty where it has one.
std::string RenyiReasonOfEpsilon(double epsilon);

// ---- (epsilon, delta) and zCDP -----------------------------------------------------------------

inline constexpr double kAdvancedMargin = 1e-12;  // what results are rounded up by, relative
double LogAdd(double a, double b);
double EpsilonByCurve(const Event& event, double log_delta, std::optional<RenyiCurve>& curve);
// Of an event below a sampler with rate q. A sampler has no use for a curve of its own: what is
// kept is that of the event below it.
double SampledStepEpsilon(const Event& child, double q, double log_delta,
                          std::optional<RenyiCurve>& curve);
// The deltas of the events inside, counted.
double SumOfLeastLogDeltas(const Event& event);
ZcdpResult ZcdpOfPure(double epsilon);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_EVENT_FAMILIES_H_
