// What a mechanism did, as data.
//
// An Event is the one description of a release that every accountant understands and that the
// ledger stores. It is a small tree: leaves are mechanisms, inner nodes sample, repeat or combine
// them. Adjacency (which datasets count as neighbours) belongs to the whole tree: combining
// events of different adjacency is refused, because their epsilons do not compose.
//
// Units. A leaf's noise is divided by the sensitivity of its query under the event's adjacency.
// Below a sampler the unit is this:
//   poisson, truncated-poisson: the bound C on one record's contribution. Under replace-one the
//     sampled record may move the sum from -C to +C, and the accountant charges that pair
//     ((1-q)N(0)+qN(1) against (1-q)N(0)+qN(-1) for a Gaussian of unit C).
//   fixed: the replace-one sensitivity of the unsampled query (2C for a sum of contributions
//     bounded by C), under every adjacency: adding a record to a batch of fixed size pushes
//     another one out.
//   allocation: the bound C on one record's contribution, as below poisson. It is the whole of t
//     steps; a run that stops inside one has done a whole one (allocation.h).
//
// Text form, printed with shortest round-trip numbers and parsed back to an equal event:
//   add-remove: 10000*poisson(0.01, gaussian(4))
//   replace-one: compose(laplace(2), 3*approximate(0.5, 1e-07))
//
// Canonical form. None inside a composition or below a sampler disappears, a composition of one
// release is that release, counts multiply through nested compositions, and a parallel event
// names each distinct part once. Trees are at most 64 levels deep.
//
// Kinds. events/ has a file for each kind, with its fields, their ranges and everything that the
// accountants ask of it; events/event_list.inc names them.
#ifndef SORDINO_ACCOUNTING_EVENT_H_
#define SORDINO_ACCOUNTING_EVENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {

class EventKind;  // what every kind answers: internal/event_kind.h

class Event {
 public:
  // A leaf or wrapper is made by its named function, which checks every number; bad ones throw
  // Error.
  static Event None(Adjacency adjacency = Adjacency::kAddRemove);
  static Event Gaussian(NoiseMultiplier noise, Adjacency adjacency = Adjacency::kAddRemove);
  // Scale over the L1 sensitivity.
  static Event Laplace(NoiseMultiplier noise, Adjacency adjacency = Adjacency::kAddRemove);
  // On the integers, with whole-number sensitivity; the pmf of discrete Laplace is ~ exp(-|x| /
  // scale).
  static Event DiscreteGaussian(double sigma, std::uint64_t sensitivity,
                                Adjacency adjacency = Adjacency::kAddRemove);
  static Event DiscreteLaplace(double scale, std::uint64_t sensitivity,
                               Adjacency adjacency = Adjacency::kAddRemove);
  // Any mechanism with the guarantee.
  static Event Pure(Epsilon epsilon, Adjacency adjacency = Adjacency::kAddRemove);
  static Event Approximate(Epsilon epsilon, Delta delta,
                           Adjacency adjacency = Adjacency::kAddRemove);
  static Event Zcdp(Rho rho, Adjacency adjacency = Adjacency::kAddRemove);
  // Uniform over the buckets with probability p, else the truth.
  // Refused under add-remove: the number of reports would tell who is missing. Under zero-out the
  // special record's report is uniform.
  static Event RandomizedResponse(double p, std::uint32_t buckets,
                                  Adjacency adjacency = Adjacency::kReplaceOne);
  // The exponential mechanism: losses within a range of epsilon.
  static Event Exponential(Epsilon epsilon, Adjacency adjacency = Adjacency::kAddRemove);
  // The matrix mechanism: noise of rows, and the sensitivity of the matrix for all steps that a
  // record takes part in (events/matrix.cc).
  static Event Matrix(NoiseMultiplier noise, double sensitivity,
                      Adjacency adjacency = Adjacency::kAddRemove);
  // Binary-tree aggregation, one participation.
  static Event Tree(NoiseMultiplier noise, std::uint64_t steps,
                    Adjacency adjacency = Adjacency::kAddRemove);
  // Pairs of (shift, probability); probabilities sum to 1.
  static Event MixtureGaussian(NoiseMultiplier noise,
                               const std::vector<std::pair<double, double>>& parts,
                               Adjacency adjacency = Adjacency::kAddRemove);
  static Event Poisson(SamplingRate rate, Event child);
  // Without replacement; the rate is batch over dataset.
  static Event Fixed(SamplingRate rate, Event child);
  static Event TruncatedPoisson(std::uint64_t dataset, SamplingRate rate, std::uint64_t cap,
                                Event gaussian);
  // One pass of random allocation over `batches` steps, each the child, which must be Gaussian.
  // Refused under replace-one, for which no bound is proven. One batch is the child itself.
  static Event Allocation(std::uint64_t batches, Event gaussian);
  // The best of K runs, K drawn in secret: from the truncated negative binomial distribution of
  // shape eta, or from the Poisson distribution, where K may be 0.
  static Event BestTnb(double eta, double gamma, Event run);
  static Event BestPoisson(double mean, Event run);
  static Event Repeat(Event child, std::uint64_t count);
  // Nested compositions are flattened and equal children merged by hash, wherever they stand, so
  // a schedule that returns to an old value costs one group. Order of first appearance is kept.
  // Without an adjacency the children's counts; children that disagree with it or with each
  // other are refused.
  static Event Compose(std::vector<std::pair<Event, std::uint64_t>> children,
                       std::optional<Adjacency> adjacency = std::nullopt);
  static Event Compose(std::vector<Event> children,
                       std::optional<Adjacency> adjacency = std::nullopt);
  // Each part holds its own records. Under replace-one and zero-out the part of a record must not
  // depend on its content (its index decides), else a replacement touches two parts at once.
  static Event Parallel(std::vector<Event> children,
                        std::optional<Adjacency> adjacency = std::nullopt);

  // Parses the text form; throws Error with the place of the mistake.
  static Event Parse(std::string_view text);

  const EventKind& kind() const { return *node_->kind; }
  std::string_view name() const;  // of its kind in the text form: "gaussian", "truncated-poisson"
  Adjacency adjacency() const { return adjacency_; }
  // The number of a field: number("noise"). Throws Error for a field that the kind does not have.
  double number(std::string_view field) const;
  // All numbers of a field that repeats: numbers("shift") of a mixture.
  std::vector<double> numbers(std::string_view field) const;
  const std::vector<std::pair<Event, std::uint64_t>>& children() const { return node_->children; }
  bool IsNone() const;
  bool IsComposition() const;
  bool IsParallel() const;

  std::string ToString() const;
  // SHA-256 of the text form, in hex: stable across machines and versions of the library.
  std::string Hash() const;
  friend bool operator==(const Event& a, const Event& b);

  // The event as a flat list of (event, count) in which no event is a composition; what is none
  // is a list of one. None disappears.
  std::vector<std::pair<Event, std::uint64_t>> Flatten() const;
  // How many leaf releases it stands for, counts included (saturates at 2^64 - 1).
  std::uint64_t TotalCount() const;

 private:
  friend class EventKind;
  struct Node {
    const EventKind* kind;
    std::vector<double> numbers;
    std::vector<std::pair<Event, std::uint64_t>> children;
    std::uint64_t fingerprint = 0;  // structural hash; equal events have equal fingerprints
    int depth = 1;
  };
  Event(Adjacency adjacency, Node node);
  void AppendTo(std::string* text) const;

  Adjacency adjacency_;
  std::shared_ptr<const Node> node_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_EVENT_H_
