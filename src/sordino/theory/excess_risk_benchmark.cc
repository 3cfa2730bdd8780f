// Measures the excess risk of private descent against the number of records, for
// bench/schedule_figures: a line of numbers for each problem and number of records.
#include <fmt/format.h>

#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/theory/private_descent.h"

namespace sordino {
namespace {

constexpr int kSeeds = 20;

void Print(const char* name, const DescentProblem& problem, double budget) {
  const MeasuredRisk risk = MeasureRisk(problem, budget, kSeeds);
  fmt::print("{} {} {} {} {} {}\n", name, problem.records(), risk.uniform, risk.dynamic,
             risk.uniform_steps, risk.dynamic_steps);
}

}  // namespace
}  // namespace sordino

int main() {
  const double budget = *sordino::BudgetOf(sordino::Epsilon(1), sordino::Delta(1e-5));
  fmt::print("problem records uniform dynamic uniform-steps dynamic-steps\n");
  for (const double n : {3e3, 6e3, 1e4, 2e4, 3e4, 6e4, 1e5, 2e5, 3e5}) {
    sordino::Print("quadratic", sordino::QuadraticDescent(n), budget);
  }
  for (const double n : {1e3, 2e3, 3e3, 6e3, 1e4, 2e4, 3e4, 6e4, 1e5}) {
    sordino::Print("logistic", sordino::LogisticDescent(static_cast<std::int64_t>(n), 7), budget);
  }
  return 0;
}
