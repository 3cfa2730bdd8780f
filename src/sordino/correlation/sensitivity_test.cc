#include "sordino/correlation/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/correlation/strategy.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows ToeplitzRows(const std::vector<double>& column, std::size_t steps) {
  Rows rows(steps, std::vector<double>(steps, 0.0));
  for (std::size_t t = 0; t < steps; ++t) {
    for (std::size_t s = 0; s <= t; ++s) rows[t][s] = t - s < column.size() ? column[t - s] : 0;
  }
  return rows;
}

bool Fits(std::uint32_t pattern, const Participation& participation) {
  std::int64_t count = 0;
  std::int64_t before = -participation.separation;
  for (std::int64_t t = 0; t < participation.steps; ++t) {
    if (((pattern >> t) & 1U) == 0) continue;
    if (t - before < participation.separation) return false;
    before = t;
    ++count;
  }
  return count <= participation.count;
}

double LengthOf(const Rows& rows, std::uint32_t pattern, std::uint32_t signs) {
  double square = 0;
  for (const std::vector<double>& row : rows) {
    double sum = 0;
    for (std::size_t t = 0; t < row.size(); ++t) {
      if (((pattern >> t) & 1U) != 0) sum += ((signs >> t) & 1U) != 0 ? -row[t] : row[t];
    }
    square += sum * sum;
  }
  return std::sqrt(square);
}

// Over all patterns and all signs of their contributions: reached by contributions of one
// dimension, so never above the sensitivity.
double ByBruteForce(const Rows& rows, const Participation& participation) {
  double largest = 0;
  for (std::uint32_t pattern = 1; pattern < 1U << participation.steps; ++pattern) {
    if (!Fits(pattern, participation)) continue;
    for (std::uint32_t signs = pattern;; signs = (signs - 1) & pattern) {
      largest = std::max(largest, LengthOf(rows, pattern, signs));
      if (signs == 0) break;
    }
  }
  return largest;
}

std::vector<Participation> PatternsOf(std::int64_t steps) {
  std::vector<Participation> all;
  for (std::int64_t separation = 1; separation <= steps; ++separation) {
    for (std::int64_t count = 1; count <= 4; ++count) all.push_back({steps, separation, count});
  }
  return all;
}

void ExpectHolds(const SensitivityBound& bound, double truth) {
  EXPECT_GE(bound.value, truth);
  if (bound.exact) {
    EXPECT_NEAR(bound.value, truth, 1e-9 * (1 + truth));
  }
}

TEST(MatrixSensitivity, HasTheKnownValues) {
  const Rows diagonal = {
      {0, 0, 0, 0, 0}, {0, 3, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 2}};
  EXPECT_NEAR(MatrixSensitivity(diagonal, {5, 2, 5}).value, std::sqrt(13.0), 1e-12);
  EXPECT_NEAR(MatrixSensitivity(diagonal, {5, 2, 1}).value, 3, 1e-12);
  const Rows banded = {{1, 0, 0, 0}, {2, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 1, -6}};
  for (const std::int64_t separation : {2, 3}) {
    const SensitivityBound bound = MatrixSensitivity(banded, {4, separation, 4});
    EXPECT_NEAR(bound.value, std::sqrt(41.0), 1e-12);
    EXPECT_TRUE(bound.exact);
  }
}

TEST(MatrixSensitivity, IsThatOfBruteForceWhereItSaysExact) {
  std::mt19937 draws(1);
  std::normal_distribution<double> normal;
  int exact = 0;
  for (int round = 0; round < 12; ++round) {
    const std::size_t steps = 7;
    const std::size_t bands = 1 + static_cast<std::size_t>(round) % steps;
    Rows rows(steps, std::vector<double>(steps, 0.0));
    for (std::size_t t = 0; t < steps; ++t) {
      for (std::size_t s = 0; s <= t; ++s) {
        if (t - s < bands) rows[t][s] = normal(draws);
      }
    }
    for (const Participation& participation : PatternsOf(7)) {
      const SensitivityBound bound = MatrixSensitivity(rows, participation);
      ExpectHolds(bound, ByBruteForce(rows, participation));
      if (static_cast<std::int64_t>(bands) <= 2 * participation.separation) {
        EXPECT_TRUE(bound.exact);
      }
      exact += bound.exact ? 1 : 0;
    }
  }
  EXPECT_GT(exact, 200);
}

TEST(ToeplitzSensitivity, IsThatOfBruteForceWhereItSaysExact) {
  std::mt19937 draws(2);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 24; ++round) {
    const bool falls = round % 3 == 0;
    const bool positive = round % 3 == 1;
    std::vector<double> column(1 + static_cast<std::size_t>(round / 3) % 8);
    for (double& value : column) value = positive ? std::abs(normal(draws)) : normal(draws);
    column[0] = 1;
    if (falls) {
      for (std::size_t t = 1; t < column.size(); ++t) {
        column[t] = column[t - 1] / (1 + std::abs(column[t]));
      }
    }
    const Rows rows = ToeplitzRows(column, 8);
    for (const Participation& participation : PatternsOf(8)) {
      const SensitivityBound bound = ToeplitzSensitivity(column, participation);
      ExpectHolds(bound, ByBruteForce(rows, participation));
      const auto bands = static_cast<std::int64_t>(column.size());
      if (falls || bands <= 2 * participation.separation) {
        EXPECT_TRUE(bound.exact);
      }
      // The same question about the same matrix.
      const SensitivityBound matrix = MatrixSensitivity(rows, participation);
      if (bound.exact && matrix.exact) {
        EXPECT_NEAR(bound.value, matrix.value, 1e-9);
      }
    }
  }
}

TEST(ToeplitzSensitivity, OfBandsThatDoNotOverlapIsThatOfTheParticipationsOneByOne) {
  const std::vector<double> column = {1, -0.5, 0.25};
  const double once = 1 + 0.25 + 0.0625;
  EXPECT_NEAR(ToeplitzSensitivity(column, {100, 10, 4}).value, std::sqrt(4 * once), 1e-12);
  // The last participation is cut off by the end.
  EXPECT_NEAR(ToeplitzSensitivity(column, {31, 10, 4}).value, std::sqrt(3 * once + 1), 1e-12);
}

TEST(ToeplitzSensitivity, CoversTheFirstRowsOfARunThatStopped) {
  const auto strategy = MakeStrategy("bifr:4", {200, 20, 10});
  double before = 0;
  for (const std::int64_t steps : {1, 10, 21, 100, 200}) {
    const double now = strategy->Sensitivity({steps, 20, 10});
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(BestPattern, IsThatOfBruteForce) {
  std::mt19937 draws(3);
  std::uniform_real_distribution<double> uniform;
  std::vector<double> values(10);
  for (double& value : values) value = uniform(draws);
  for (const Participation& participation : PatternsOf(10)) {
    double best = 0;
    for (std::uint32_t pattern = 1; pattern < 1U << 10; ++pattern) {
      if (!Fits(pattern, participation)) continue;
      double sum = 0;
      for (std::size_t t = 0; t < 10; ++t) sum += ((pattern >> t) & 1U) != 0 ? values[t] : 0;
      best = std::max(best, sum);
    }
    EXPECT_NEAR(BestPattern(values, participation), best, 1e-12);
  }
}

TEST(TreeSensitivity, IsNeverBelowBruteForce) {
  const auto tree = MakeStrategy("tree", {11, 1, 1});
  Rows rows;
  for (std::size_t t = 0; t < 11; ++t) {
    rows.emplace_back(11, 0.0);
    for (std::size_t s = 0; s < ((t + 1) & (~t)); ++s) rows[t][t - s] = 1;
  }
  for (const Participation& participation : PatternsOf(11)) {
    const double truth = ByBruteForce(rows, participation);
    EXPECT_GE(tree->Sensitivity(participation), truth);
    EXPECT_LE(tree->Sensitivity(participation), 1.6 * truth);
    if (participation.Fitting() == 1) {
      EXPECT_NEAR(tree->Sensitivity(participation), 2, 1e-12);
    }
  }
}

TEST(Sensitivity, RefusesWhatItCannotAnswer) {
  const double not_finite = std::numeric_limits<double>::infinity();
  const std::vector<double> column = {1, not_finite};
  EXPECT_THROW(ToeplitzSensitivity(column, {4, 1, 1}), Error);
  EXPECT_THROW(MatrixSensitivity({{1, 0}}, {3, 1, 1}), Error);
  EXPECT_THROW(MatrixSensitivity({}, {kMaxMatrixSteps + 1, 1, 1}), Error);
  EXPECT_THROW(ToeplitzSensitivity(std::vector<double>{1}, {0, 1, 1}), Error);
  EXPECT_THROW(ToeplitzSensitivity(std::vector<double>{1}, {5, 0, 1}), Error);
  EXPECT_THROW(ToeplitzSensitivity(std::vector<double>{1}, {5, 1, 0}), Error);
}

}  // namespace
}  // namespace sordino
