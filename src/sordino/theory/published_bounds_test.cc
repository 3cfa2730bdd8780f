#include "sordino/theory/published_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/base/error.h"

namespace sordino {
namespace {

double BoundFor(std::string_view algorithm, double records) {
  for (const PublishedBound& row : PublishedBounds(
           PublishedQuestion{.records = records, .dimension = 20, .budget = 0.5, .epsilon = 1})) {
    if (row.algorithm == algorithm) return row.bound.value();
  }
  ADD_FAILURE() << algorithm;
  return 0;
}

// The exponent of N, and that of its logarithm, of every row.
TEST(PublishedBounds, ScaleWithTheRecordsAsPrinted) {
  const struct {
    std::string_view algorithm;
    double power;
    double log_power;
  } rows[] = {{"GD+Adv", 1, 3},
              {"GD+MA", 2, 2},
              {"GD+Adv+BBImp", 1, 0},
              {"GD, non-private", 2, 0},
              {"GD+zCDP, static schedule", 2, 1},
              {"GD+zCDP, dynamic schedule", 2, 0}};
  for (const auto& row : rows) {
    const double ratio = BoundFor(row.algorithm, 1e4) / BoundFor(row.algorithm, 1e8);
    EXPECT_NEAR(ratio, std::pow(1e4, row.power) * std::pow(0.5, row.log_power), 1e-9 * ratio)
        << row.algorithm;
  }
}

TEST(PublishedBounds, HaveNoNumberWhereSomethingIsMissing) {
  for (const PublishedBound& row : PublishedBounds(std::nullopt)) EXPECT_FALSE(row.bound);
  const auto rows = PublishedBounds(PublishedQuestion{.records = 100, .dimension = 2, .budget = 1});
  EXPECT_EQ(rows.size(), 10u);
  for (const PublishedBound& row : rows)
    EXPECT_EQ(row.bound.has_value(), row.algorithm != "Adam+MA");
  EXPECT_THROW(PublishedBounds(PublishedQuestion{.records = 0, .dimension = 1, .budget = 1}),
               Error);
}

// The column sigma_t^2 of the paper's table, for N = 100, delta = 1e-4, R = 2, T = 9 and gamma =
// 0.25, by hand.
TEST(PublishedBounds, HaveTheSchedulesOfTheTable) {
  const auto rows = PublishedBounds(PublishedQuestion{.records = 100,
                                                      .dimension = 2,
                                                      .budget = 2,
                                                      .epsilon = 1,
                                                      .delta = 1e-4,
                                                      .steps = 9,
                                                      .gamma = 0.25});
  const double advanced = std::log(1e6) / 2;
  const double expected[10][2] = {
      {advanced, advanced}, {4.5, 4.5},
      {4.5, 4.5},           {1e4 * advanced, 1e4 * advanced},
      {4.5, 4.5},           {0, 0},
      {4.5, 4.5},           {256 / 2.0, 1 / 2.0},
      {4.5, 4.5},           {(std::pow(0.25, 10) + 1 / 256.0) / 2, (std::pow(0.25, 18) + 1) / 2}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(rows[i].first_variance.value(), expected[i][0], 1e-12 * expected[i][0])
        << rows[i].algorithm;
    EXPECT_NEAR(rows[i].last_variance.value(), expected[i][1], 1e-12 * expected[i][1])
        << rows[i].algorithm;
  }
  // The noise of the last row rises, where that of the schedule of Lemma 3.1 falls: an erratum.
  EXPECT_LT(rows[9].first_variance.value(), rows[9].last_variance.value());
  EXPECT_GT(rows[7].first_variance.value(), rows[7].last_variance.value());
  for (const PublishedBound& row :
       PublishedBounds(PublishedQuestion{.records = 100, .dimension = 2, .budget = 2})) {
    EXPECT_EQ(row.first_variance.has_value(), row.schedule == "0") << row.algorithm;
  }
}

}  // namespace
}  // namespace sordino
