#include "sordino/accounting/internal/pairs/sampled_responses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/exact_release.h"

namespace sordino {
namespace {

// The law of a report of `value`; -1 reports uniformly.
std::vector<double> ReportOf(double p, int k, int value) {
  std::vector<double> law(static_cast<std::size_t>(k), value < 0 ? 1.0 / k : p / k);
  if (value >= 0) law[static_cast<std::size_t>(value)] += 1 - p;
  return law;
}

double SampledDelta(const std::vector<double>& base, const std::vector<double>& with,
                    const std::vector<double>& other, double q, double epsilon) {
  double delta = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    delta += std::max(0.0, (1 - q) * base[i] + q * with[i] -
                               std::exp(epsilon) * ((1 - q) * base[i] + q * other[i]));
  }
  return delta;
}

TEST(SampledResponses, AreTheLargestOverAllValues) {
  for (const int k : {2, 3, 6}) {
    for (const double q : {0.02, 0.5}) {
      for (const double p : {0.1, 0.7}) {
        for (const bool replace : {true, false}) {
          const Adjacency adjacency = replace ? Adjacency::kReplaceOne : Adjacency::kZeroOut;
          const Event child =
              Event::RandomizedResponse(p, static_cast<std::uint32_t>(k), adjacency);
          const auto pairs = replace ? ReplacedResponses(child, q) : NullResponses(child, q);
          ASSERT_EQ(pairs.has_value(), !replace || k > 2);
          if (!pairs) continue;
          const auto with = ReportOf(p, k, 0);
          const auto other = ReportOf(p, k, replace ? 1 : -1);
          for (const double epsilon : {-0.6, -0.05, -0.005, 0.0, 0.003, 0.02, 0.2, 0.8}) {
            double there = 0;
            double back = 0;
            for (int y = replace ? 0 : -1; y < k; ++y) {
              const auto base = ReportOf(p, k, y);
              there = std::max(there, SampledDelta(base, with, other, q, epsilon));
              back = std::max(back, SampledDelta(base, other, with, q, epsilon));
            }
            EXPECT_NEAR(std::exp(ExactLogDelta(pairs->upper.front(), epsilon)), there, 1e-12);
            EXPECT_NEAR(std::exp(ExactLogDelta(pairs->upper.back(), epsilon)), back, 1e-12);
          }
        }
      }
    }
  }
}

TEST(SampledResponses, OfThreeValuesAreExactUnderReplaceOne) {
  for (const std::string text : {"2829*poisson(0.0105, randomized-response(0.476, 4))",
                                 "2829*fixed(0.0105, randomized-response(0.476, 4))"}) {
    const AccountReport report = Account(Event::Parse("replace-one: " + text), Delta(1e-5));
    EXPECT_LT(report.value.upper - report.value.lower, 1e-3 * report.value.upper) << text;
  }
}

}  // namespace
}  // namespace sordino
