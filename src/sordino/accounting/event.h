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

class Event {
 public:
  enum class Kind : std::uint8_t {
    kNone,                // nothing was released
    kGaussian,            // (noise)
    kLaplace,             // (noise)                 scale over L1 sensitivity
    kDiscreteGaussian,    // (sigma, sensitivity)    on the integers, integer sensitivity
    kDiscreteLaplace,     // (scale, sensitivity)    on the integers, pmf ~ exp(-|x| / scale)
    kPure,                // (epsilon)               any epsilon-DP mechanism
    kApproximate,         // (epsilon, delta)        any (epsilon, delta)-DP mechanism
    kZcdp,                // (rho)                   any rho-zCDP mechanism
    kRandomizedResponse,  // (p, k)                  uniform over k buckets with probability p
    kExponential,         // (epsilon)               exponential mechanism, range-bounded loss
    kTree,                // (noise, steps)          binary-tree aggregation, one participation
    kMixtureGaussian,     // (noise, s_1, p_1, ...)  shift s_i with probability p_i
    kPoisson,             // (rate, child)
    kFixed,               // (rate, child)           without replacement, rate = batch / dataset
    kTruncatedPoisson,    // (dataset, rate, cap, gaussian child)
    kAllocation,          // (batches, gaussian child)  each record in one of the batches, uniformly
    kCompose,             // (count*child, ...)      sequential composition
    kParallel,            // (child, ...)            disjoint parts of the data: the worst counts
  };

  // A leaf or wrapper is made by its named function, which checks every number; bad ones throw
  // Error.
  static Event None(Adjacency adjacency = Adjacency::kAddRemove);
  static Event Gaussian(NoiseMultiplier noise, Adjacency adjacency = Adjacency::kAddRemove);
  static Event Laplace(NoiseMultiplier noise, Adjacency adjacency = Adjacency::kAddRemove);
  static Event DiscreteGaussian(double sigma, std::uint64_t sensitivity,
                                Adjacency adjacency = Adjacency::kAddRemove);
  static Event DiscreteLaplace(double scale, std::uint64_t sensitivity,
                               Adjacency adjacency = Adjacency::kAddRemove);
  static Event Pure(Epsilon epsilon, Adjacency adjacency = Adjacency::kAddRemove);
  static Event Approximate(Epsilon epsilon, Delta delta,
                           Adjacency adjacency = Adjacency::kAddRemove);
  static Event Zcdp(Rho rho, Adjacency adjacency = Adjacency::kAddRemove);
  // Refused under add-remove: the number of reports would tell who is missing. Under zero-out the
  // special record's report is uniform.
  static Event RandomizedResponse(double p, std::uint32_t buckets,
                                  Adjacency adjacency = Adjacency::kReplaceOne);
  static Event Exponential(Epsilon epsilon, Adjacency adjacency = Adjacency::kAddRemove);
  static Event Tree(NoiseMultiplier noise, std::uint64_t steps,
                    Adjacency adjacency = Adjacency::kAddRemove);
  // Pairs of (shift, probability); probabilities sum to 1.
  static Event MixtureGaussian(NoiseMultiplier noise,
                               const std::vector<std::pair<double, double>>& parts,
                               Adjacency adjacency = Adjacency::kAddRemove);
  static Event Poisson(SamplingRate rate, Event child);
  static Event Fixed(SamplingRate rate, Event child);
  static Event TruncatedPoisson(std::uint64_t dataset, SamplingRate rate, std::uint64_t cap,
                                Event gaussian);
  // One pass of random allocation over `batches` steps, each the child, which must be Gaussian.
  // Refused under replace-one, for which no bound is proven. One batch is the child itself.
  static Event Allocation(std::uint64_t batches, Event gaussian);
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

  Kind kind() const { return node_->kind; }
  Adjacency adjacency() const { return adjacency_; }
  const std::vector<double>& numbers() const { return node_->numbers; }
  const std::vector<std::pair<Event, std::uint64_t>>& children() const { return node_->children; }

  std::string ToString() const;
  // SHA-256 of the text form, in hex: stable across machines and versions of the library.
  std::string Hash() const;
  friend bool operator==(const Event& a, const Event& b);

  // The event as a flat list of (event, count) in which no event is kCompose; a non-composition
  // is a list of one. None disappears.
  std::vector<std::pair<Event, std::uint64_t>> Flatten() const;
  // How many leaf releases it stands for, counts included (saturates at 2^64 - 1).
  std::uint64_t TotalCount() const;

 private:
  struct Node {
    Kind kind;
    std::vector<double> numbers;
    std::vector<std::pair<Event, std::uint64_t>> children;
    std::uint64_t fingerprint = 0;  // structural hash; equal events have equal fingerprints
    int depth = 1;
  };
  Event(Adjacency adjacency, Node node);
  static Event Leaf(Kind kind, Adjacency adjacency, std::vector<double> numbers);
  static Event Sampled(Kind kind, std::vector<double> numbers, Event child);
  static std::vector<std::pair<Event, std::uint64_t>> Merge(
      const std::vector<std::pair<Event, std::uint64_t>>& children);
  void AppendTo(std::string* text) const;

  Adjacency adjacency_;
  std::shared_ptr<const Node> node_;
};

std::string_view EventKindName(Event::Kind kind);  // "gaussian", "truncated-poisson", ...

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_EVENT_H_
