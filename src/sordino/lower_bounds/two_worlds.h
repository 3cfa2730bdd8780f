// Lower bounds on epsilon from the scores that an attack gives in two worlds.
//
// An attack gives every record that was trained on (members), and every record that was not
// (others), a score that should be larger for members. Scores are independent draws of the two
// distributions whose ratio privacy bounds.
//
// Thresholds are others: t is the k-th largest (smallest) of n of them, for ranks k that are fixed
// before any score is seen. Then both errors have exact bounds, whatever the distributions:
//   - the chance that another draw of the others is above t is distributed as Beta(k, n - k + 1),
//     and so is the chance that it is not above the k-th smallest.
//   - t does not depend on the members, so how many of them are above t is binomial, and the bounds
//     of Clopper and Pearson hold (binomial.h).
// Equal scores could be put in a random order, as if every score had a uniform draw after its last
// digit: then there are no ties, the bounds above hold, and members that are equal to a threshold
// count as often as they should. But a bound that depends on a draw is another one in the next
// audit of the same scores, and a draw that is fixed for given scores can be wrong for them every
// time. So all orders are counted. A bound that one threshold gives in one direction grows with the
// number of members above the threshold; the number that is taken is the largest that at least
// c = 0.9 of the orders reach (internal/equal_scores.h), and the significance is c times the one
// that is asked for. This is valid: if the bound of that number exceeds the truth, the bounds of at
// least c of the orders do, and by Markov's inequality
//
//     Pr[at least c of the orders exceed the truth] <= E[share of orders that exceed it] / c,
//
// where the expectation is the chance that the bound of a random order exceeds it, at most c times
// the significance. Scores without ties have one order; the factor c applies to them as well,
// because a rule that looked for ties first would be another test.
// All bounds of all thresholds and both directions hold together with probability 1 - significance
// (Bonferroni over every one of them). With a = chance of members above t >= a_low and b = chance
// of others above t <= b_high, (epsilon, delta)-DP asks for a <= e^epsilon b + delta, so
//
//     epsilon >= log((a_low - delta) / b_high),   mu >= Phi^-1(a_low) - Phi^-1(b_high)
//
// where the second is for a release that is mu-GDP, and likewise with "not above" and the roles of
// members and others exchanged.
//
// Where a claim is known, theory says before any score is seen at which rank one threshold would
// prove most if the claim were tight. Four fifths of the significance of a bound are spent there
// and the rest on the others as above, which cost little where the claim was a bad guide. Then the
// bounds on epsilon and on mu, whose best ranks differ, hold with probability 1 - significance
// each, and not both at once.
//
// The intervals of Katz et al. (1978) and Bailey (1987) for the ratio of two chances are normal
// approximations: they are given for comparison and prove nothing.
#ifndef SORDINO_LOWER_BOUNDS_TWO_WORLDS_H_
#define SORDINO_LOWER_BOUNDS_TWO_WORLDS_H_

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sordino/accounting/tradeoff.h"
#include "sordino/base/quantity.h"

namespace sordino {

// Lower ends of the one-sided intervals of the ratio (a of n) / (b of m).
double KatzRatioLower(std::int64_t a, std::int64_t n, std::int64_t b, std::int64_t m, double alpha);
double BaileyRatioLower(std::int64_t a, std::int64_t n, std::int64_t b, std::int64_t m,
                        double alpha);

struct Estimate {
  double value = 0;
  double lower = 0;
  double upper = 1;
};

// Lines of the trade-off curve of a claim (PrivacyProfile) that are enough to plan ranks by.
inline constexpr int kPlannedClaimLines = 24;

// Ranks from 1, of others from the top.
struct PlannedRanks {
  std::int64_t epsilon = 1;
  std::int64_t mu = 1;
};
// Those at which the bounds on epsilon and on mu are largest in expectation, for so many scores of
// an attack that reaches the lines of the claim.
PlannedRanks PlanRanks(std::span<const PrivacyLine> claim, std::int64_t members,
                       std::int64_t others, Delta delta, double significance);

class TwoWorlds {
 public:
  // Throws Error for an empty list and for a score that is not a number (infinities are taken).
  TwoWorlds(std::vector<double> members, std::vector<double> others);

  struct Bounds {
    double epsilon = 0;  // at the delta that was asked for
    double mu = 0;
    double mu_epsilon = 0;  // of this mu at delta; infinite for delta = 0 and a mu above 0
    double katz = 0;        // approximate
    double bailey = 0;      // approximate
  };
  // At the ranks 1, 2, 4, ... from both ends, or at those that are given (from 1 to the number of
  // others).
  Bounds LowerBounds(Delta delta, double significance,
                     const std::optional<std::vector<std::int64_t>>& ranks = std::nullopt) const;

  // At ranks that were planned for a claim, and with a fifth of the significance at the usual ones.
  // Throws Error for a rank that is not from 1 to the number of others.
  Bounds PlannedBounds(Delta delta, double significance, const PlannedRanks& planned) const;

  std::int64_t members() const { return std::ssize(members_); }
  std::int64_t others() const { return std::ssize(others_); }

  // The chance that a member scores above another record (ties count half), with an interval by
  // Hoeffding's inequality for U-statistics.
  Estimate Area(double significance) const;
  // The area below the convex hull of the curve.
  double HullArea() const;
  // The true positive rate at a false positive rate, with an interval that holds for every
  // distribution.
  Estimate TruePositiveRate(double false_positive_rate, double significance) const;

  // The curve: pairs of false and true positive rates from (0, 0) to (1, 1).
  std::vector<std::pair<double, double>> Curve() const;

 private:
  std::int64_t MembersAbove(double threshold) const;  // score > threshold
  std::int64_t MembersFrom(double threshold) const;   // score >= threshold
  double OtherFromTop(std::int64_t rank) const;       // rank from 1
  // Above the other of this rank from the top, in most orders of equal scores.
  std::int64_t MembersAboveRank(std::int64_t rank) const;

  std::vector<double> members_;  // ascending
  std::vector<double> others_;   // ascending
};

}  // namespace sordino

#endif  // SORDINO_LOWER_BOUNDS_TWO_WORLDS_H_
