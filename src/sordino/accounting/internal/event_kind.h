// What a kind of event is: every question that is asked of an event, in one interface.
//
// A kind is a class in a file of its own in events/, and a line in events/event_list.inc. Its
// fields name its numbers and give their ranges; the text form is name(numbers..., terms...). All
// answers are pure virtual: a kind that leaves one out does not compile (tests/compile_fail). What
// a family of kinds has in common is answered in event_families.h.
//
// "Nothing" is an answer where it says so: a general bound, which holds for every mechanism, then
// takes its place.
#ifndef SORDINO_ACCOUNTING_INTERNAL_EVENT_KIND_H_
#define SORDINO_ACCOUNTING_INTERNAL_EVENT_KIND_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/internal/pairs/outcomes.h"
#include "sordino/accounting/internal/renyi/renyi_bounds.h"
#include "sordino/accounting/internal/renyi/renyi_moments.h"
#include "sordino/accounting/kept_part.h"
#include "sordino/accounting/noise_units.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/zcdp.h"

namespace sordino {

// A number of a kind and its range.
struct EventField {
  std::string_view name;  // "noise"
  std::string_view what;  // in a sentence: "the noise multiplier"
  double low = 0;
  bool low_open = false;
  double high = kInfinity;
  bool high_open = false;
  bool whole = false;

  void Check(double number) const;  // throws Error
};

template <typename Tag>
constexpr EventField FieldOfTag(std::string_view name, const Quantity<Tag>*) {
  return {name, Tag::kName, Tag::kLow, Tag::kLowOpen, Tag::kHigh, Tag::kHighOpen};
}
// A field with the range of a quantity: FieldOf<NoiseMultiplier>("noise").
template <typename Quantity>
constexpr EventField FieldOf(std::string_view name) {
  return FieldOfTag(name, static_cast<const Quantity*>(nullptr));
}
// Whole numbers are stored as doubles, which hold each of them up to 2^53.
constexpr EventField WholeField(std::string_view name, std::string_view what, double low = 1,
                                double high = 0x1p53) {
  return {name, what, low, false, high, false, true};
}

using EventTerms = std::vector<std::pair<Event, std::uint64_t>>;

struct EventArguments {
  Adjacency adjacency;
  std::vector<double> numbers;
  EventTerms terms = {};
};

// How an event is sampled, for those samplers that take each record with one rate.
struct EventSampling {
  double rate;
  bool fixed;  // batches of fixed size
};

// Noise and rates on a geometric grid: CoarsenNoise of renyi.h.
class CoarseGrid {
 public:
  CoarseGrid(double per_e, Coarsening coarsening)
      : per_e_(per_e), less_(coarsening == Coarsening::kLessPrivate) {}
  NoiseMultiplier Noise(double noise) const { return NoiseMultiplier(Rounded(noise, !less_)); }
  SamplingRate Rate(double rate) const;

 private:
  double Rounded(double x, bool up) const;

  double per_e_;
  bool less_;
};

class EventKind {
 public:
  static constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max();

  // `terms`: how many events it is made of, kMany for any number. The last `repeating` fields
  // repeat.
  EventKind(std::string_view name, std::vector<EventField> fields, std::size_t terms,
            std::size_t repeating = 0);
  virtual ~EventKind() = default;
  EventKind(const EventKind&) = delete;
  EventKind& operator=(const EventKind&) = delete;

  std::string_view name() const { return name_; }
  std::size_t numbers() const { return repeating_ > 0 ? kMany : fields_.size(); }
  std::size_t terms() const { return terms_; }
  // Of a number's place; of a field's name, which throws Error where the kind has none.
  const EventField& FieldAt(std::size_t place) const;
  std::size_t PlaceOf(std::string_view field) const;
  std::size_t repeating() const { return repeating_; }
  std::uint64_t id() const { return id_; }  // a hash of the name

  // The event of these numbers and terms; throws Error for numbers outside their ranges and for
  // what Make refuses.
  Event New(EventArguments arguments) const;

  // ---- Its form ----------------------------------------------------------------------------
  // The event in canonical form; throws Error for adjacencies, numbers or terms that do not go
  // together. Each number is in its range.
  virtual Event Make(EventArguments arguments) const = 0;
  // Says in `units` where it has noise; `place` is where it stands.
  virtual void AddNoiseUnits(const Event& event, bool NoiseUnits::*place,
                             NoiseUnits& units) const = 0;
  virtual std::optional<EventSampling> Sampling(const Event& event) const = 0;

  // ---- Other forms of it (renyi.h) ---------------------------------------------------------
  virtual Event DoubledReach(const Event& event) const = 0;
  virtual Event FixedReach(const Event& event) const = 0;
  virtual Event Coarsened(const Event& event, const CoarseGrid& grid) const = 0;
  // The expected steps with the record that a step adds to a schedule for the contour, where the
  // step can be rounded (coarse_schedule.h); `rate` is that of the sampler above it.
  virtual std::optional<double> ContourHits(const Event& event,
                                            std::optional<double> rate) const = 0;
  // What it keeps, and loses for it (kept_part.h).
  virtual KeptPart Kept(const Event& event) const = 0;

  // ---- Pairs (dominating_pair.h) -----------------------------------------------------------
  // 1 / sigma^2 of the Gaussian that it amounts to, if it is one. What follows from that is not
  // asked again below.
  virtual std::optional<double> Precision(const Event& event) const = 0;
  virtual DominatingPairs Pairs(const Event& event, const PairUse& use) const = 0;
  // Why its pairs depend on what they are for, if they do: what leaves no upper end at tiny deltas.
  virtual std::string_view ReasonOfUse() const = 0;
  // The range of losses, about, where one pair may stand for several releases (bounded_range.h);
  // else 0.
  virtual double BlockRange(const Event& event) const = 0;
  // Of a discrete mechanism.
  virtual std::optional<Outcomes> DiscreteOutcomes(const Event& event) const = 0;
  // Whether its noise is too small to resolve the loss below a sampler.
  virtual bool HasTooLittleNoise(const Event& event) const = 0;
  // Its pairs below Poisson sampling with rate q in (0, 1], where they are not those of the
  // Gaussian, of SampledDirections or of DiscreteOutcomes.
  virtual std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                                      const PairUse& use) const = 0;
  // The same in batches of fixed size, where they are not those of SampledDirections or of
  // DiscreteOutcomes.
  virtual std::optional<DominatingPairs> FixedPairs(const Event& event, double q,
                                                    const PairUse& use) const = 0;
  // Both directions of sampling it with rate q, in units of its own sensitivity.
  virtual std::optional<TwoPairs> SampledDirections(const Event& event, double q) const = 0;
  // The triangle of attained_pairs.h.
  virtual std::optional<LossPair> Triangle(const Event& event, double rate) const = 0;

  // ---- Renyi, zCDP and (epsilon, delta) ----------------------------------------------------
  // Not asked of what amounts to a Gaussian.
  virtual RenyiFunction Renyi(const Event& event) const = 0;
  // Why it has no curve; empty where it has one.
  virtual std::string RenyiReason(const Event& event) const = 0;
  // The atoms of its loss, if it has a symmetric dominating pair.
  virtual std::optional<LossAtoms> SymmetricAtoms(const Event& event) const = 0;
  // Its curve below Poisson sampling with rate q in (0, 1], where a better one is known than the
  // general bounds and those of SymmetricAtoms; else empty.
  virtual RenyiFunction PoissonRenyi(const Event& event, double q) const = 0;
  virtual ZcdpResult Zcdp(const Event& event) const = 0;
  // StepEpsilon and LeastLogDelta of composition.h; log_delta below 0, not a Gaussian.
  virtual double StepEpsilon(const Event& event, double log_delta,
                             std::optional<RenyiCurve>& curve) const = 0;
  virtual double LeastLogDelta(const Event& event) const = 0;
  // Epsilon at the very delta that its theorem gives, where it is a given guarantee and that delta
  // is at most `delta`: as a logarithm it may come out smaller than it is. `rate` is that of the
  // sampler above it.
  virtual std::optional<double> EpsilonAtOwnDelta(const Event& event, double delta,
                                                  std::optional<double> rate) const = 0;

 protected:
  // The event as it is, with the numbers and terms given.
  Event Of(EventArguments arguments) const;
  // Equal events have equal ones.
  static std::uint64_t Fingerprint(const Event& event) { return event.node_->fingerprint; }

 private:
  std::string_view name_;
  std::vector<EventField> fields_;
  std::size_t terms_;
  std::size_t repeating_;
  std::uint64_t id_;
};

// What the function of a kind returns: its only object.
template <typename Kind>
const EventKind& OneOfKind() {
  static const Kind kind;
  return kind;
}

// The kinds of events/event_list.inc, and each of them by its function.
const std::vector<const EventKind*>& EventKinds();
#define SORDINO_COMPONENT(function, file) const EventKind& function();
#include "sordino/accounting/events/event_list.inc"
#undef SORDINO_COMPONENT

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_EVENT_KIND_H_
