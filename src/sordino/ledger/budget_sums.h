// What a ledger has counted, as sums that never come out too small.
//
// A sum is kept in two doubles (its value and the error of that value), so that a million charges
// of 1e-6 are 1 to thirty digits, and every step that is not exact is rounded towards more. Costs
// that no number bounds are counted beside it: what was charged can be returned. Nothing wraps
// around: a count or a sum that reaches the end of its type stays there, also when something is
// returned.
#ifndef SORDINO_LEDGER_BUDGET_SUMS_H_
#define SORDINO_LEDGER_BUDGET_SUMS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sordino {

// a + b and a - b; the largest number where they would exceed it or where it was reached before.
std::uint64_t SaturatingSum(std::uint64_t a, std::uint64_t b);
std::uint64_t SaturatingDifference(std::uint64_t a, std::uint64_t b);

class UpwardSum {
 public:
  UpwardSum() = default;
  // Parts of one that was kept.
  UpwardSum(double high, double low, std::uint64_t unbounded)
      : high_(high), low_(low), unbounded_(unbounded) {}

  // `count` times `cost`, which is at least 0. A cost that is infinite or NaN is unbounded.
  void Add(double cost, std::uint64_t count = 1);
  // Takes back what was added. Never below 0.
  void Subtract(double cost, std::uint64_t count = 1);
  // At least the sum; infinite while something unbounded is in it.
  double Value() const;

  double high() const { return high_; }
  double low() const { return low_; }
  std::uint64_t unbounded() const { return unbounded_; }
  friend bool operator==(const UpwardSum&, const UpwardSum&) = default;

 private:
  double high_ = 0;
  double low_ = 0;  // below half of the last digit of high_
  std::uint64_t unbounded_ = 0;
};

// Everything that the next verdict depends on (budget_filter.h).
struct BudgetSums {
  std::uint64_t runs = 0;      // that have begun
  std::uint64_t releases = 0;  // charged and not returned
  UpwardSum pure = {};         // epsilons
  UpwardSum filter = {};       // R(order), or mu^2
  UpwardSum loss = {};         // release_costs.h
  UpwardSum failure = {};      // of all charges: accounting/failures.h
  UpwardSum reserved = {};     // of those charges whose failures the reserve pays for
  double order = 0;            // 0 while none is fixed
  std::string whole = {};      // the run that counts whole; empty: none
  double whole_failure = 0;    // of its plan
  friend bool operator==(const BudgetSums&, const BudgetSums&) = default;
};

// As JSON, and back to an equal value. Throws Error for other text, and for sums that a program
// with other rules has kept, which must be formed again.
std::string BudgetSumsJson(const BudgetSums& sums);
BudgetSums ParseBudgetSumsJson(std::string_view text);

}  // namespace sordino

#endif  // SORDINO_LEDGER_BUDGET_SUMS_H_
