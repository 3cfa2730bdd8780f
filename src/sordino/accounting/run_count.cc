#include "sordino/accounting/run_count.h"

#include <cmath>

namespace sordino {
namespace {

constexpr double kLeastGamma = 1e-9;

// (e^{eta x} - 1) / eta, and x at eta = 0.
double GrowthOf(double eta, double x) { return eta == 0 ? x : std::expm1(eta * x) / eta; }

}  // namespace

RunCount RunCount::TruncatedNegativeBinomial(double eta, double gamma) {
  RunCount count;
  count.eta_ = eta;
  count.gamma_ = gamma;
  count.scale_ = GrowthOf(eta, -std::log(gamma));
  return count;
}

// The mean falls in gamma, from infinity at 0 to 1 at 1.
RunCount RunCount::NegativeBinomialOfMean(double eta, double mean) {
  double low = kLeastGamma;
  double high = 1;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (TruncatedNegativeBinomial(eta, middle).Mean() > mean ? low : high) = middle;
  }
  return TruncatedNegativeBinomial(eta, high);
}

RunCount RunCount::Poisson(double mean) {
  RunCount count;
  count.poisson_ = true;
  count.mean_ = mean;
  return count;
}

double RunCount::None() const { return poisson_ ? std::exp(-mean_) : 0; }

double RunCount::Probability(std::int64_t runs) const {
  const auto k = static_cast<double>(runs);
  if (k < (poisson_ ? 0 : 1)) return 0;
  if (poisson_) return std::exp(k * std::log(mean_) - mean_ - std::lgamma(k + 1));
  return std::exp(std::lgamma(k + eta_) - std::lgamma(k + 1) - std::lgamma(1 + eta_) +
                  k * std::log1p(-gamma_)) /
         scale_;
}

double RunCount::Slope(double u) const {
  if (poisson_) return mean_ * std::exp(-mean_ * u);
  const double base = gamma_ + (1 - gamma_) * u;
  return (1 - gamma_) / scale_ * std::pow(base, -(eta_ + 1));
}

double RunCount::Mass(double u, double width) const {
  if (poisson_) return std::exp(-mean_ * u) * -std::expm1(-mean_ * width);
  const double base = gamma_ + (1 - gamma_) * u;
  const double far = base + (1 - gamma_) * width;
  const double ratio = std::log1p((1 - gamma_) * width / base);
  return std::pow(far, -eta_) * GrowthOf(eta_, ratio) / scale_;
}

}  // namespace sordino
