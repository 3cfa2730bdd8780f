// Measures what privacy costs the risk of logistic regression on drawn data over the number of
// records, of features and epsilon, beside predictions and bound, for bench/fit_figures: a line of
// numbers for each method and setting, means of kFits fits.
//
// Rows are drawn from the unit sphere and classes from the logistic model with weights of norm 10,
// which is what plans assume. With f the empirical risk, the mean loss of the table: the excess
// risk is f(fit) - min f over weights of norm at most 10, and the generalisation gap the mean loss
// on 50,000 further rows less f(fit).
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sordino/convex/internal/budget.h"
#include "sordino/convex/method.h"
#include "sordino/theory/empirical_risk.h"

namespace sordino {
namespace {

constexpr int kFits = 10;
constexpr std::int64_t kTestRows = 50'000;
constexpr double kNorm = 10;

struct Setting {
  std::int64_t records;
  std::int64_t features;
  double epsilon;
};

Problem Drawn(const TableShape& shape, std::int64_t rows, const at::Tensor& weights) {
  const at::Tensor x = at::randn({rows, shape.features}, at::kDouble);
  x.div_(x.norm(2, {1}, true));
  const at::Tensor y = at::rand({rows}, at::kDouble).lt(at::sigmoid(x.mv(weights))).to(at::kLong);
  return {shape, x, y};
}

// min f over weights of norm at most kNorm, to a thousandth of the norm.
double LeastRisk(const FitQuestion& question, const Problem& table) {
  double low = 1e-4;
  double high = 1e6;
  at::Tensor best;
  while (high / low > 1.01) {
    const double lambda = std::sqrt(low * high);
    FitQuestion asked = question;
    asked.lambda = lambda;
    const at::Tensor theta = FitWithoutPrivacy(PlanWithoutPrivacy(asked), table).coefficients;
    const bool is_inside = theta.norm().item<double>() <= kNorm * 1.001;
    (is_inside ? high : low) = lambda;
    if (is_inside) best = theta;
  }
  return Evaluate(table, best).risk;
}

void Measure(const std::string& axis, const Setting& setting) {
  at::manual_seed(setting.records + setting.features);
  FitQuestion question;
  question.table = {.loss = "logistic", .features = setting.features};
  question.records = setting.records;
  question.epsilon = Epsilon(setting.epsilon);
  question.delta = Delta(1e-6);
  question.weight_norm = kNorm;
  at::Tensor weights = at::randn({setting.features}, at::kDouble);
  weights.mul_(kNorm / weights.norm().item<double>());
  const Problem table = Drawn(question.table, setting.records, weights);
  const Problem test = Drawn(question.table, kTestRows, weights);
  const double least = LeastRisk(question, table);
  const double sigma = 1 / internal::GaussianBudget(question.epsilon, question.delta, 0);
  const double bound = DescentRiskBound(static_cast<double>(setting.records),
                                        static_cast<double>(setting.features), kNorm, sigma);
  for (const char* method : {"output", "objective", "gradient", "newton"}) {
    const FitPlan plan = PlanFit(question, method);
    double risk = 0;
    double test_risk = 0;
    for (int fit = 0; fit < kFits; ++fit) {
      RandomSource source(static_cast<std::uint64_t>(fit));
      const at::Tensor theta = Fit(plan, table, source).coefficients;
      risk += Evaluate(table, theta).risk / kFits;
      test_risk += Evaluate(test, theta).risk / kFits;
    }
    fmt::print("{} {} {} {:g} {} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", axis,
               setting.records, setting.features, setting.epsilon, method, risk, test_risk,
               test_risk - risk, risk - least, plan.excess_risk, bound);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace sordino

int main() {
  fmt::print(
      "axis records features epsilon method empirical-risk test-risk gap excess predicted bound\n");
  for (const std::int64_t n : {1'000, 3'000, 10'000, 30'000, 100'000}) {
    sordino::Measure("records", {n, 20, 1});
  }
  for (const std::int64_t d : {5, 10, 20, 40, 80}) sordino::Measure("features", {10'000, d, 1});
  for (const double epsilon : {0.1, 0.3, 1.0, 3.0, 10.0}) {
    sordino::Measure("epsilon", {10'000, 20, epsilon});
  }
  return 0;
}
