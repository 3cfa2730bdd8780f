#include "sordino/theory/momentum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

// a_1, a_2, ... one after the other, with their sum and the sum of their roots.
class InfluenceSeries {
 public:
  InfluenceSeries(double beta, double gamma) : beta_squared_(beta * beta), gamma_(gamma) {}

  void Next() {
    value_ = gamma_ * value_ + power_;
    power_ *= beta_squared_;
    sum_ += value_;
    sum_of_roots_ += std::sqrt(value_);
  }
  double value() const { return value_; }
  double sum() const { return sum_; }
  double sum_of_roots() const { return sum_of_roots_; }

 private:
  double beta_squared_;
  double gamma_;
  double power_ = 1;  // beta^(2 (s - 1))
  double value_ = 0;
  double sum_ = 0;
  double sum_of_roots_ = 0;
};

double ZetaOf(double kappa, double beta, double step) {
  const double gamma = 1 - step / kappa;
  const double gap = gamma - beta;
  return 4 * step * step * beta * gamma / (gap * gap * std::pow(1 - beta, 3)) + step / 2 - 1;
}

void CheckMomentum(double beta) { CheckRange("the momentum", beta, 0, true, 1, true); }

// The best T so far of a bound that is a decay and a term that grows with T.
struct Search {
  Horizon best;
  bool ended = false;

  void Try(std::int64_t steps, double decay, double noise_term) {
    if (noise_term >= best.bound) {
      ended = true;  // and so are all later ones
    } else if (decay + noise_term < best.bound) {
      best.steps = steps;
      best.bound = decay + noise_term;
    }
  }
};

}  // namespace

std::vector<double> MomentumInfluence(double beta, double gamma, std::int64_t steps) {
  CheckRange("the momentum", beta, 0, false, 1, true);
  CheckRange("gamma", gamma, 0, false, 1, true);
  InfluenceSeries series(beta, gamma);
  std::vector<double> influence(static_cast<std::size_t>(steps));
  for (auto weight = influence.rbegin(); weight != influence.rend(); ++weight) {
    series.Next();
    *weight = series.value();
  }
  return influence;
}

double MomentumInfluenceAt(double beta, double gamma, std::int64_t left) {
  CheckRange("the momentum", beta, 0, false, 1, true);
  CheckRange("gamma", gamma, 0, false, 1, true);
  // m^(s - 1) (1 + r + ... + r^(s - 1)) for the larger base m and the ratio r, without the
  // cancellation of the paper's form where both are nearly equal.
  const double larger = std::max(beta * beta, gamma);
  const double smaller = std::min(beta * beta, gamma);
  if (larger == 0) return left == 1 ? 1 : 0;
  const auto s = static_cast<double>(left);
  const double log_ratio = std::log1p((smaller - larger) / larger);
  const double sum = log_ratio == 0 ? s : std::expm1(s * log_ratio) / std::expm1(log_ratio);
  return std::pow(larger, s - 1) * sum;
}

double LargestMomentumStep(double kappa, double beta) {
  CheckRange("kappa", kappa, 1, false, kInfinity, true);
  CheckMomentum(beta);
  double low = 0;
  double high = std::min(2.0, kappa * (1 - beta));
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (ZetaOf(kappa, beta, middle) <= 0 ? low : high) = middle;
  }
  return low;
}

MomentumProblem::MomentumProblem(const ConvergenceProblem& problem, double beta,
                                 std::optional<double> step)
    : problem_(problem), beta_(beta), step_(0) {
  CheckMomentum(beta);
  const double largest = LargestMomentumStep(problem.kappa(), beta);
  step_ = step.value_or(largest);
  if (!(step_ > 0 && step_ <= largest)) {
    throw Error(fmt::format(
        "the step size is {:g} times 1/smoothness; with momentum {:g} and kappa {:g} the theorem "
        "holds for steps above 0 and up to {:.4g}.",
        step_, beta, problem.kappa(), largest));
  }
}

double MomentumProblem::Zeta() const { return ZetaOf(problem_.kappa(), beta_, step_); }

std::vector<double> MomentumProblem::Influence(std::int64_t steps) const {
  std::vector<double> influence = MomentumInfluence(beta_, gamma(), steps);
  for (double& weight : influence) weight *= 4 * step_ * problem_.alpha();
  return influence;
}

double MomentumProblem::UniformBound(std::int64_t steps) const {
  const std::vector<double> influence = Influence(steps);
  double sum = 0;
  for (const double weight : influence) sum += weight;
  return std::pow(gamma(), static_cast<double>(steps)) + static_cast<double>(steps) * sum;
}

double MomentumProblem::DynamicBound(std::int64_t steps) const {
  if (steps == 0) return 1;
  return std::pow(gamma(), static_cast<double>(steps)) + LeastNoiseTerm(Influence(steps));
}

double MomentumProblem::BoundOf(std::span<const double> noise) const {
  const auto steps = static_cast<std::int64_t>(noise.size());
  return std::pow(gamma(), static_cast<double>(steps)) + NoiseTerm(Influence(steps), noise);
}

MomentumProblem::Best MomentumProblem::Minima() const {
  InfluenceSeries series(beta_, gamma());
  const double scale = 4 * step_ * problem_.alpha();
  const double log_gamma = std::log1p(-step_ / problem_.kappa());
  Search uniform;
  Search dynamic;
  for (std::int64_t steps = 1; !(uniform.ended && dynamic.ended); ++steps) {
    if (steps > kMaxMomentumSteps) {
      throw Error(fmt::format(
          "the best number of steps may be above {}, where the search ends; give --steps, a "
          "smaller kappa or a larger alpha.",
          kMaxMomentumSteps));
    }
    series.Next();
    const auto t = static_cast<double>(steps);
    const double decay = std::exp(t * log_gamma);
    uniform.Try(steps, decay, scale * t * series.sum());
    dynamic.Try(steps, decay, scale * series.sum_of_roots() * series.sum_of_roots());
  }
  return {uniform.best, dynamic.best};
}

}  // namespace sordino
