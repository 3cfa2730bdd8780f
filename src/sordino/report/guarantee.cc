#include "sordino/report/guarantee.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sordino/accounting/failures.h"

namespace sordino {
namespace {

constexpr int kGuaranteeLines = 24;
constexpr std::array<double, 4> kFalseAlarms = {0.1, 0.01, 0.001, 0.0001};
constexpr std::array<double, 3> kPriors = {0.01, 0.1, 0.5};

// False positive rates at which the curve is drawn: dense where it bends, on both ends.
std::vector<double> CurveRates() {
  std::vector<double> rates = {0, 1e-6, 1e-5, 1e-4};
  constexpr int kDense = 20;
  for (int i = 0; i < kDense; ++i) rates.push_back(0.001 + 0.049 * i / kDense);
  constexpr int kEven = 38;
  for (int i = 0; i <= kEven; ++i) rates.push_back(0.05 + 0.95 * i / kEven);
  rates.back() = 1;
  return rates;
}

// The largest true positive rate minus false positive rate that a line allows, where both of its
// halves meet.
double Advantage(const PrivacyLine& line) {
  if (!std::isfinite(line.epsilon)) return 1;
  const double advantage =
      std::tanh(line.epsilon / 2) + 2 * line.delta / (std::exp(line.epsilon) + 1);
  return std::min(1.0, advantage);
}

double BeliefAfter(double prior, double epsilon) {
  return prior / (prior + (1 - prior) * std::exp(-epsilon));
}

}  // namespace

Guarantee GuaranteeOf(const std::vector<PrivacyLine>& lines, double epsilon, double delta) {
  std::vector<PrivacyLine> all = lines;
  if (std::isfinite(epsilon)) all.push_back({epsilon, delta});
  Guarantee guarantee;
  guarantee.epsilon = epsilon;
  guarantee.delta = delta;
  const auto least = [&](double rate) { return ProfileTradeoff(all, rate); };
  guarantee.curve = TradeoffCurve(least, CurveRates());
  double advantage = 1;
  for (const PrivacyLine& line : all) advantage = std::min(advantage, Advantage(line));
  guarantee.attack_accuracy = (1 + advantage) / 2;
  for (const double rate : kFalseAlarms) guarantee.recognised.push_back({rate, 1 - least(rate)});
  for (const double prior : kPriors) {
    guarantee.beliefs.emplace_back(prior, BeliefAfter(prior, epsilon));
  }
  return guarantee;
}

Guarantee GuaranteeOf(const Event& event, double delta, double failure) {
  std::vector<PrivacyLine> lines = PrivacyProfile(event, kGuaranteeLines);
  for (PrivacyLine& line : lines) {
    line.delta = std::min(1.0, line.delta + (1 + std::exp(line.epsilon)) * failure);
  }
  const double epsilon = event.IsNone() ? 0.0 : SpentEpsilon(event, Delta(delta), failure).upper;
  return GuaranteeOf(lines, epsilon, delta);
}

}  // namespace sordino
