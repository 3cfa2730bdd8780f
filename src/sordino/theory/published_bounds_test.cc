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

}  // namespace
}  // namespace sordino
