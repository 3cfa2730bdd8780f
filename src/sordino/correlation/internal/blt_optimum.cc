#include "sordino/correlation/internal/blt_optimum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sordino/base/quantity.h"
#include "sordino/correlation/internal/minimise.h"
#include "sordino/correlation/internal/objective.h"

namespace sordino {
namespace {

constexpr double kSameTheta = 1e-7;  // relative to 1 - theta
constexpr double kNoTerm = 1e-7;     // of the sum of all coefficients
// The objective has this times -log(1 - sum omega / theta) beside it, which keeps all decays above
// 0.
constexpr double kBarrier = 1e-7;

constexpr double kBltSearchTolerance = 1e-4;
constexpr int kBltSearchSteps = 15;
constexpr double kBltTolerance = 1e-9;
constexpr int kMostBltSteps = 120;

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// x holds the logits of all theta, then the logarithms of all omega.
std::vector<BltTerm> TermsOf(std::span<const double> x) {
  const std::size_t size = x.size() / 2;
  std::vector<BltTerm> terms;
  for (std::size_t i = 0; i < size; ++i) {
    terms.push_back({Logistic(x[i]), std::exp(x[size + i])});
  }
  return terms;
}

std::vector<double> ColumnOf(const std::vector<BltTerm>& terms, std::size_t steps) {
  std::vector<double> column(steps, 0.0);
  column[0] = 1;
  for (const BltTerm& term : terms) {
    double value = term.omega;
    for (std::size_t t = 1; t < steps; ++t, value *= term.theta) column[t] += value;
  }
  return column;
}

// The logarithm of error times sensitivity, in steps * terms operations.
class BltObjective {
 public:
  BltObjective(const Participation& participation, CorrelationObjective objective)
      : participation_(participation), weights_(ErrorWeights(participation.steps, objective)) {}

  double operator()(std::span<const double> x, std::span<double> gradient) const {
    const std::vector<BltTerm> terms = TermsOf(x);
    double room = 1;
    for (const BltTerm& term : terms) room -= term.omega / term.theta;
    if (!(room > 0)) return kInfinity;
    const std::vector<double> sums = Sums(terms);
    double error = 0;
    for (std::size_t t = 0; t < sums.size(); ++t) error += weights_[t] * sums[t] * sums[t];
    if (!std::isfinite(error)) return kInfinity;
    const std::vector<double> back = Back(terms, sums);
    const PatternSquare pattern(ColumnOf(terms, sums.size()), participation_);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const auto [theta, omega] = terms[i];
      double by_omega = 0;
      double by_theta = 0;
      // once = B x / (1 - theta x), twice = once x / (1 - theta x); power and its derivative are
      // those of the coefficient.
      double once = 0;
      double twice = 0;
      double power = 1;
      double power_slope = 0;
      for (std::size_t t = 1; t < sums.size(); ++t) {
        twice = theta * twice + once;
        once = theta * once + sums[t - 1];
        const double share = pattern.slope()[t] / pattern.value();
        by_omega += share * power - 2 * back[t] * once / error;
        by_theta += share * power_slope - 2 * back[t] * twice / error;
        power_slope = theta * power_slope + power;
        power *= theta;
      }
      by_theta -= kBarrier / (room * theta * theta);
      by_omega += kBarrier / (room * theta);
      gradient[i] = omega * by_theta * theta * (1 - theta);
      gradient[terms.size() + i] = omega * by_omega;
    }
    return std::log(error) + std::log(pattern.value()) - kBarrier * std::log(room);
  }

 private:
  // B = A C^-1: C B = 1, 1, 1, ...
  std::vector<double> Sums(const std::vector<BltTerm>& terms) const {
    std::vector<double> sums(weights_.size());
    std::vector<double> buffers(terms.size(), 0.0);
    for (double& sum : sums) {
      sum = 1;
      for (std::size_t i = 0; i < terms.size(); ++i) sum -= terms[i].omega * buffers[i];
      for (std::size_t i = 0; i < terms.size(); ++i) {
        buffers[i] = terms[i].theta * buffers[i] + sum;
      }
    }
    return sums;
  }

  // C^-T (weights B).
  std::vector<double> Back(const std::vector<BltTerm>& terms, std::span<const double> sums) const {
    std::vector<double> back(sums.size());
    std::vector<double> buffers(terms.size(), 0.0);
    for (std::size_t t = sums.size(); t-- > 0;) {
      back[t] = weights_[t] * sums[t];
      for (std::size_t i = 0; i < terms.size(); ++i) back[t] -= terms[i].omega * buffers[i];
      for (std::size_t i = 0; i < terms.size(); ++i) {
        buffers[i] = terms[i].theta * buffers[i] + back[t];
      }
    }
    return back;
  }

  Participation participation_;
  std::vector<double> weights_;
};

// c_t near 1 / sqrt(pi t) is an integral of e^(-rate t) sqrt(rate) over the logarithm of the rate:
// rates evenly spaced in it between the slowest and 0.7.
std::vector<double> StartOf(std::size_t terms, double slowest) {
  std::vector<double> x(2 * terms);
  double total = 0;
  for (std::size_t i = 0; i < terms; ++i) {
    const double place = terms == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(terms - 1);
    const double rate = std::exp(std::log(slowest) * (1 - place) + std::log(0.7) * place);
    x[i] = std::log((1 - rate) / rate);
    total += std::sqrt(rate);
    x[terms + i] = 0.5 * std::log(rate);
  }
  for (std::size_t i = 0; i < terms; ++i) x[terms + i] += std::log(0.25 / total);
  return x;
}

// In their order, without those that are nearly nothing or nearly the one before.
std::vector<BltTerm> Distinct(std::vector<BltTerm> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const BltTerm& a, const BltTerm& b) { return a.theta < b.theta; });
  double total = 0;
  for (const BltTerm& term : terms) total += term.omega / (1 - term.theta);
  std::vector<BltTerm> distinct;
  for (const BltTerm& term : terms) {
    if (term.omega <= kNoTerm * total * (1 - term.theta)) continue;
    if (!distinct.empty() && term.theta - distinct.back().theta < kSameTheta * (1 - term.theta)) {
      distinct.back().omega += term.omega;
    } else {
      distinct.push_back(term);
    }
  }
  return distinct;
}

}  // namespace

std::vector<BltTerm> BltOptimum(std::int64_t terms, const Participation& participation,
                                CorrelationObjective objective) {
  const BltObjective function(participation, objective);
  const double steps = static_cast<double>(participation.steps);
  Minimum best{{}, kInfinity};
  for (const double slowest : {0.3 / steps, 3 / steps, 30 / steps}) {
    Minimum found =
        Minimise(function, StartOf(static_cast<std::size_t>(terms), std::min(slowest, 0.3)),
                 kBltSearchTolerance, kBltSearchSteps);
    if (found.value < best.value) best = std::move(found);
  }
  return Distinct(TermsOf(Minimise(function, std::move(best.x), kBltTolerance, kMostBltSteps).x));
}

std::vector<NoiseBuffer> BltInverse(const std::vector<BltTerm>& terms) {
  double total = 0;
  for (const BltTerm& term : terms) total += term.omega;
  std::vector<NoiseBuffer> buffers;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    double low = i == 0 ? std::max(0.0, terms[0].theta - total) : terms[i - 1].theta;
    double high = terms[i].theta;
    const auto value = [&terms](double z) {
      double sum = 1;
      for (const BltTerm& term : terms) sum += term.omega / (z - term.theta);
      return sum;
    };
    while (true) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      (value(middle) > 0 ? low : high) = middle;
    }
    double slope = 0;
    for (const BltTerm& term : terms) {
      slope += term.omega / ((low - term.theta) * (low - term.theta));
    }
    buffers.push_back({low, 1 / slope});
  }
  return buffers;
}

}  // namespace sordino
