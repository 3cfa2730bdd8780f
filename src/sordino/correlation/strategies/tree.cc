// tree: binary-tree aggregation (DP-FTRL; Kairouz et al., arXiv 2103.00039) as a square matrix.
//
// A prefix of t + 1 steps is the sum of one complete subtree for each 1 in the binary digits of
// t + 1. The subtree that ends at step t and is used by any prefix has lowbit(t + 1) leaves, one a
// step: row t of C is the sum of steps t - lowbit(t + 1) + 1 .. t, and B = A C^-1 has ones where a
// prefix uses a subtree. The complete subtrees that are right children are never used, so no noise
// is spent on them. The noise of a step is its own draw without the subtrees that the new one
// contains: n_t = w_t - w_{t-1} - w_{t-2} - w_{t-4} - ..., as many as t + 1 has zeros at its end.
//
// Sensitivity. C >= 0. One participation is in at most floor(log2 n) + 1 rows: exact. For several,
// the sum over rows of (participations in the row)^2 is at most, level by level, that of k
// participations in rows of at most min(k, ceil(2^h / separation)) each: an upper bound. For up to
// kMaxMatrixSteps steps the bound of a matrix (sensitivity.h), where it is smaller.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/correlation/sensitivity.h"
#include "sordino/correlation/strategy.h"

namespace sordino {
namespace {

std::uint64_t Position(std::int64_t step) { return static_cast<std::uint64_t>(step) + 1; }

std::uint64_t LeavesEndingAt(std::int64_t step) {
  return std::uint64_t{1} << std::countr_zero(Position(step));
}

double LevelBoundSquared(const Participation& participation) {
  const std::int64_t count = participation.Fitting();
  double square = 0;
  for (std::int64_t leaves = 1; leaves <= participation.steps; leaves *= 2) {
    const std::int64_t each = std::min(count, (leaves - 1) / participation.separation + 1);
    const std::int64_t rest = count % each;
    square +=
        static_cast<double>(count / each) * static_cast<double>(each) * static_cast<double>(each) +
        static_cast<double>(rest) * static_cast<double>(rest);
  }
  return square;
}

// The numbers of rows that two steps share.
std::vector<std::vector<double>> TreeGram(std::int64_t steps) {
  const auto size = static_cast<std::size_t>(steps);
  std::vector<std::vector<double>> gram(size, std::vector<double>(size, 0.0));
  for (std::int64_t row = 0; row < steps; ++row) {
    const auto end = static_cast<std::size_t>(row);
    const std::size_t first = end + 1 - static_cast<std::size_t>(LeavesEndingAt(row));
    for (std::size_t i = first; i <= end; ++i) {
      for (std::size_t j = first; j <= end; ++j) gram[i][j] += 1;
    }
  }
  return gram;
}

class Tree final : public Strategy {
 public:
  explicit Tree(const Participation& participation) : Strategy("tree", participation) {}
  bool IsToeplitz() const override { return false; }
  std::int64_t Bands() const override {
    return static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(participation().steps)));
  }
  std::vector<double> Coefficients(std::int64_t) const override { throw NoColumn(); }
  std::vector<double> NoiseCoefficients(std::int64_t) const override { throw NoColumn(); }
  NoiseFilter Filter(std::int64_t step) const override {
    NoiseFilter filter;
    for (std::uint64_t back = 1; back < LeavesEndingAt(step); back *= 2) {
      filter.earlier_draws.resize(back, 0.0);
      filter.earlier_draws[back - 1] = -1;
    }
    return filter;
  }
  using Strategy::Sensitivity;
  double Sensitivity(const Participation& participation) const override {
    participation.Check();
    const double bound = std::sqrt(LevelBoundSquared(participation)) *
                         (1 + 4 * std::numeric_limits<double>::epsilon());
    if (participation.Fitting() == 1 || participation.steps > kMaxMatrixSteps) return bound;
    return std::min(bound, GramSensitivity(TreeGram(participation.steps), participation).value);
  }
  std::vector<double> SquaredErrors(std::int64_t steps) const override {
    std::vector<double> errors;
    for (std::int64_t t = 0; t < steps; ++t) {
      errors.push_back(static_cast<double>(std::popcount(Position(t))));
    }
    return errors;
  }

 private:
  static Error NoColumn() {
    return Error("a tree is not a Toeplitz matrix and has no coefficients; ask for its filter.");
  }
};

class TreeStrategyKind final : public StrategyKind {
 public:
  TreeStrategyKind()
      : StrategyKind({.name = "tree", .help = "sums of the subtrees of a binary tree"}) {}
  std::int64_t DefaultSize(const Participation&) const override { return 1; }
  std::unique_ptr<Strategy> Make(std::int64_t, const Participation& participation,
                                 CorrelationObjective) const override {
    return std::make_unique<Tree>(participation);
  }
};

}  // namespace

const StrategyKind& TreeStrategy() {
  static const TreeStrategyKind kind;
  return kind;
}

}  // namespace sordino
