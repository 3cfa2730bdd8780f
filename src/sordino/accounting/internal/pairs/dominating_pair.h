// The dominating pairs of every event: from what was done to what it can give away.
//
// Theorems used, for Poisson sampling with rate q of a mechanism dominated by (A, B) (A with the
// record, B without): add/remove is dominated by ((1-q)B + qA, B) and (B, (1-q)B + qA)
// (arXiv 2106.08567, theorem 11). Fixed-size sampling under replace-one: the profile of
// ((1-q)B + qA, B) for epsilon >= 0 and of (B, (1-q)B + qA) for epsilon < 0 (theorem 11 too),
// which is glued into one pair with the rest of the mass at loss zero; every single direction of
// it is attained (all other records equal), so the directions serve as lower bounds, and so does
// the triangle of attained_pairs.h. Under zero-out
// a batch of fixed size has the same bound: the outputs without the record, with it and with its
// null stand-in are three vectors at pairwise distance one at most (the unit is the replace-one
// sensitivity, with the null record as a possible value), and nothing more was used.
//
// Truncated Poisson batches (rate q, cap m; of more than m sampled records a uniform subset of m
// stays). Let N be the number of other records and B those of them that were sampled.
//   |B| < m: the record enters with probability q, and the others stay: one unit, as without a cap.
//   |B| >= m: let W be a uniform subset of m records of B and j a uniform record of W. The batch is
//     W - j + record with probability r_B = q m / (|B| + 1), else W: a batch of m out of B + record
//     that holds the record is m - 1 uniform others and the record. Given |B|, W is a uniform
//     subset of all others, so it does not depend on |B|, and given (W, j) the record enters with
//     probability r = E[r_B | full] = m Pr[Bin(N+1, q) > m] / ((N+1) tau), tau = Pr[Bin(N, q) >=
//     m]. It pushes j out: the output moves from the centre u_W to u_W - v_j + x, by two units at
//     most.
// (B is small), and (W, j), do not depend on the record and are drawn alike for both neighbours; by
// joint convexity of the hockey-stick divergence they may be treated as public, so the mixture of
// the two cases dominates. A closer look takes batches with |B| = m - 1 and full ones together:
// full_batch.h. In a full batch alone, which is enough for one of many different steps,
//   add-remove: ((1-r) N(0) + r N(2), N(0)) and the reverse. A dataset of n records has neighbours
//     with N = n - 1 and with N = n others; both are directions.
//   replace-one and zero-out: the neighbour's record has the same place in the batch. The pair is
//     (1-r) w0 + r w1 against (1-r) w0 + r w1', where the three centres are at distance at most two
//     from each other. By advanced joint convexity (arXiv 1807.01647, theorem 2) its profile at
//     log(1 + r (e^eps - 1)) is at most r delta(eps) with delta that of a Gaussian of shift two:
//     the glued pair, with shift two.
//
// A Poisson sample of a Poisson sample is one, with the product of the rates, whatever the
// neighbours: each record is in it with that probability, independently of all others.
//
// Random allocation: allocation.h. Exponential mechanisms: bounded_range.h. Sampled guarantees:
// poisson_guarantees.h.
#ifndef SORDINO_ACCOUNTING_INTERNAL_DOMINATING_PAIR_H_
#define SORDINO_ACCOUNTING_INTERNAL_DOMINATING_PAIR_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/internal/pairs/outcomes.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// What the pairs are for. Pairs without a closed form choose their ranges by it; they are bounds
// for every question.
struct PairUse {
  double log_delta = -20;
  std::uint64_t count = 1;
  Effort effort = Effort::kFull;
  bool one_of_many = false;  // a schedule of many different steps
  // One upper pair may stand for several releases (bounded_range.h says when), and there are no
  // other releases.
  bool blocks = false;
  bool alone = false;

  // Whether to spend time on neighbours that come close to the upper pairs (attained_pairs.h).
  bool Closely() const { return effort == Effort::kFull && !one_of_many; }
};

struct DominatingPairs {
  // One entry a direction of the adjacency (1, 2 or 4 of them; a release with fewer repeats its
  // own, entry d modulo their number, and even ones remove); delta is the maximum over them.
  // `upper` dominates every neighbouring pair; `lower` is attained. Most events have the same pairs
  // for both: then `exact` is set, and `lower` is left empty. Otherwise an empty list means that
  // there is none (upper: see reason; lower: no bound but zero).
  std::vector<LossPair> upper;
  std::vector<LossPair> lower;
  std::string reason;
  bool exact = false;
  std::uint64_t block = 1;        // releases that one of `upper` dominates together
  std::uint64_t lower_block = 1;  // releases that one of `lower` is a composition of

  const std::vector<LossPair>& attained() const { return exact ? upper : lower; }
};

// The event must not be a composition or parallel.
DominatingPairs DominatingPairsOf(const Event& event, const PairUse& use = {});

// The profile of `remove` for epsilon >= 0 and of `add` below, as one pair: positive losses of
// `remove`, negative losses of `add`, the rest of the mass at zero.
LossPair Glue(const LossPair& remove, const LossPair& add);

// Why the pairs of some release in the event depend on what they are for; empty where none do.
std::string_view ReasonOfUse(const Event& event);

// ---- Forms of pairs that kinds of events are made of -------------------------------------------

// Below this noise the loss is so large that resolving it makes no sense; Renyi and basic
// composition serve there.
inline constexpr double kMinSigma = 0.01;
// What is told where it is not resolved.
inline constexpr const char* kTooLittleNoise = "the noise is too small to resolve the loss";
// The event is a sampler's: its noise is too small.
bool HasTooLittleNoise(const Event& child);

LossPair FromDensity(std::shared_ptr<const LossDensity> density);
LossPair FromGaussian(double mu);
// Pairs that are attained; none, for a reason.
DominatingPairs Same(std::vector<LossPair> pairs);
DominatingPairs Missing(std::string reason);
// Of a discrete mechanism; `both`: its two directions differ.
DominatingPairs DiscretePairs(const std::optional<Outcomes>& outcomes, bool both = false);

// The mixture {(0, 1-q), (shift, q)}, or (shift, 1) alone when q is 1.
GaussianMixtureDensity::Parts SampledParts(double q, double shift);
std::shared_ptr<const LossDensity> RemoveDensity(double sigma, double q, double shift);
std::shared_ptr<const LossDensity> AddDensity(double sigma, double q, double shift);
// From the shift to its mirror image.
std::shared_ptr<const LossDensity> ReplaceDensity(double sigma, double q, double shift);

// The two directions of sampling `child` with rate q, in units of the child's own sensitivity.
std::optional<TwoPairs> SampledDirections(const Event& child, double q);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_DOMINATING_PAIR_H_
