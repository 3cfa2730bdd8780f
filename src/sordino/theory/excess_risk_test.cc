// Measured against N: the excess risk falls as N^-2 with the best schedule and slower, by a
// logarithm, with the same noise in all steps. 20 seeds for each N; the mean of 20 has a relative
// standard deviation of 0.1 (10 parameters), which moves a slope over two decades by 0.03: 0.15 is
// five of them.
#include <gtest/gtest.h>

#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/theory/private_descent.h"

namespace sordino {
namespace {

struct Slopes {
  double uniform = 0;
  double dynamic = 0;
  double first_gain = 0;  // uniform over dynamic at the least N
  double last_gain = 0;
};

template <typename Make>
Slopes SlopesOf(const std::vector<double>& records, const Make& make) {
  const double budget = *BudgetOf(Epsilon(1), Delta(1e-5));
  std::vector<double> uniform;
  std::vector<double> dynamic;
  for (const double n : records) {
    const auto problem = make(n);
    const MeasuredRisk risk = MeasureRisk(problem, budget, 20);
    uniform.push_back(risk.uniform);
    dynamic.push_back(risk.dynamic);
  }
  return {LogSlope(records, uniform), LogSlope(records, dynamic), uniform.front() / dynamic.front(),
          uniform.back() / dynamic.back()};
}

void ExpectTheoreticalSlopes(const Slopes& slopes) {
  EXPECT_NEAR(slopes.dynamic, -2, 0.15);
  EXPECT_GT(slopes.uniform, slopes.dynamic + 0.05);
  EXPECT_GT(slopes.last_gain, slopes.first_gain);
  EXPECT_GT(slopes.last_gain, 1.2);
}

TEST(ExcessRisk, OfAQuadraticFallsWithTheSquareOfTheRecords) {
  ExpectTheoreticalSlopes(
      SlopesOf({3e3, 1e4, 3e4, 1e5, 3e5}, [](double n) { return QuadraticDescent(n); }));
}

TEST(ExcessRisk, OfLogisticRegressionFallsWithTheSquareOfTheRecords) {
  ExpectTheoreticalSlopes(SlopesOf({500, 1500, 5000, 15000, 50000}, [](double n) {
    return LogisticDescent(static_cast<std::int64_t>(n), 7);
  }));
}

}  // namespace
}  // namespace sordino
