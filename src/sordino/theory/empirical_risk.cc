#include "sordino/theory/empirical_risk.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

void CheckShape(const RiskShape& shape) {
  CheckRange("the number of records", shape.records, 1, false, kInfinity, true);
  CheckRange("the number of parameters", shape.parameters, 1, false, kInfinity, true);
  CheckRange("the trace of the Hessian", shape.trace, 0, true, kInfinity, true);
  CheckRange("the norm of the weights", shape.weight_norm, 0, true, kInfinity, true);
}

// sum_i g(h_i) over the assumed eigenvalues; beyond the first thousand in steps of 1/128 of i.
template <typename Term>
double SpectrumSum(const RiskShape& shape, const Term& term) {
  const double p = shape.parameters;
  const double harmonic = std::log(p) + std::numbers::egamma + 0.5 / p - 1 / (12 * p * p);
  const double first = shape.trace / (p == 1 ? 1 : harmonic);
  double sum = 0;
  for (double i = 1; i <= p;) {
    const double width = std::min(p - i + 1, std::max(1.0, std::floor(i / 128)));
    sum += width * term(first / (i + 0.5 * (width - 1)));
    i += width;
  }
  return sum;
}

double RegularisationLoss(const RiskShape& shape, double lambda, double proximal_steps = 1) {
  const double twice = 2 * proximal_steps;
  const double share = twice / 4 / (twice - 1) * std::pow(1 - 1 / twice, twice);  // 1/8 for 1
  return lambda / shape.records * shape.weight_norm * shape.weight_norm * share;
}

}  // namespace

double OutputRisk(const RiskShape& shape, double deviation, double lambda,
                  std::int64_t proximal_steps) {
  CheckShape(shape);
  CheckRange("the deviation of the noise", deviation, 0, false, kInfinity, true);
  CheckRange("lambda", lambda, 0, false, kInfinity, true);
  const auto steps = static_cast<double>(proximal_steps);
  CheckRange("the number of proximal steps", steps, 1, false, kInfinity, true);
  return 0.5 * deviation * deviation * shape.trace + RegularisationLoss(shape, lambda, steps);
}

double ObjectiveRisk(const RiskShape& shape, double sigma, double lambda) {
  CheckShape(shape);
  CheckRange("the deviation of the noise", sigma, 0, false, kInfinity, true);
  CheckRange("lambda", lambda, 0, true, kInfinity, true);
  const double mu = lambda / shape.records;
  const double sum = SpectrumSum(shape, [&](double h) { return h / ((h + mu) * (h + mu)); });
  return 0.5 * (sigma / shape.records) * (sigma / shape.records) * sum +
         RegularisationLoss(shape, lambda);
}

double DescentRisk(const RiskShape& shape, double sigma, double duration) {
  CheckShape(shape);
  CheckRange("the deviation of the noise", sigma, 0, false, kInfinity, true);
  CheckRange("the duration", duration, 0, true, kInfinity, true);
  const double t = duration;
  const double sum = SpectrumSum(shape, [&](double h) { return std::min(h * t * t, 0.5 * t); });
  return 0.5 * (sigma / shape.records) * (sigma / shape.records) * sum +
         shape.weight_norm * shape.weight_norm / (4 * std::numbers::e * t);
}

double PreconditionedRisk(const RiskShape& shape, double sigma, double steps, double floor) {
  CheckShape(shape);
  CheckRange("the deviation of the noise", sigma, 0, false, kInfinity, true);
  CheckRange("the number of steps", steps, 1, false, kInfinity, true);
  CheckRange("the floor", floor, 0, true, kInfinity, true);
  const double sum = SpectrumSum(shape, [&](double h) {
    const double t = steps / (h + floor);
    return std::min(h * t * t, 0.5 * t);
  });
  double lost = 0;
  for (double h = shape.trace; h > 1e-6 * std::min(floor, shape.trace); h *= 0.9) {
    lost = std::max(lost, 0.5 * h * std::exp(-2 * steps * h / (h + floor)));
  }
  return 0.5 * (sigma / shape.records) * (sigma / shape.records) * sum +
         shape.weight_norm * shape.weight_norm * lost;
}

double DescentRiskBound(double records, double parameters, double weight_norm, double sigma) {
  CheckShape({.records = records, .parameters = parameters, .weight_norm = weight_norm});
  CheckRange("the deviation of the noise", sigma, 0, false, kInfinity, true);
  return std::numbers::sqrt2 * weight_norm * sigma * std::sqrt(parameters) / records;
}

double LeastRiskAt(const std::function<double(double)>& risk, double low, double high) {
  CheckRange("the lower end", low, 0, true, kInfinity, true);
  CheckRange("the upper end", high, low, false, kInfinity, true);
  double a = std::log(low);
  double b = std::log(high);
  const auto at = [&](double x) { return risk(std::exp(x)); };
  constexpr double kRatio = 1 / std::numbers::phi;
  double c = b - kRatio * (b - a);
  double d = a + kRatio * (b - a);
  double fc = at(c);
  double fd = at(d);
  while (b - a > 1e-3) {
    if (fc < fd) {
      b = d;
      d = c;
      fd = fc;
      c = b - kRatio * (b - a);
      fc = at(c);
    } else {
      a = c;
      c = d;
      fc = fd;
      d = a + kRatio * (b - a);
      fd = at(d);
    }
  }
  return std::exp(0.5 * (a + b));
}

}  // namespace sordino
