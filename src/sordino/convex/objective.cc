// Objective perturbation, and approximate minima perturbation (Iyengar et al., IEEE S&P 2019): the
// minimum of the objective with a random linear term b, and a little noise on it for what separates
// the computed minimum from the exact one.
//
// Theorem. For the exact minimum theta*(b) of sum_i l_i + (lambda / 2) |.|^2 + b . theta:
//   - b Gaussian: (epsilon_1, delta_1) by the profile of mechanisms/objective_perturbation.h, with
//     L = S R, m directions and the trace bound of loss.h times R^2;
//   - b of p independent Laplace variables of scale s: pure. As in that proof the logarithm of the
//     ratio of densities is at most (|b'|_1 - |b|_1) / s + J <= |g|_1 / s + J, and |g|_1 <= sqrt(p)
//     |g|, so s = sqrt(p) D / (epsilon_1 - J) with D = L, or 2 L under replace-one.
// What is computed is some theta with |grad| <= limit for a b on a grid, which is within g sqrt(p)
// of the b of the theorem (below). So |theta - theta*(b)| <= r = (limit + g sqrt(p)) / lambda.
// Given theta*, the two neighbours' theta lie within 2 r of each other; noise for the sensitivity 2
// r makes the release of both a composition of two mechanisms, and theta alone is part of it.
//
// b on a grid. A discrete Gaussian is, but for GaussianFailure, a continuous one rounded to the
// grid: within g / 2. A discrete Laplace that is not 0 has a magnitude k >= 1 of probability
// proportional to e^(-k g / s), so sign (k - 1) g plus an exponential cut at g is a continuous
// Laplace variable, exactly: within g.
//
// Failures are in delta_1's rest, so the event has none of its own.
//
// A ledger's filter counts the same plan at another point of the profile: the same b is (epsilon_2,
// loss)-DP with the loss that the ledger keeps for it, and the noise on the minimum is a Gaussian.
#include <ATen/Functions.h>

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/minimum.h"
#include "sordino/convex/internal/vector_noise.h"
#include "sordino/convex/method.h"
#include "sordino/mechanisms/objective_perturbation.h"
#include "sordino/random/grid_noise.h"

namespace sordino {
namespace {

constexpr double kEventSlack = 0x1p-20;

// What the distance from the exact minimum may be and cost.
struct MinimumShares {
  double budget;  // of epsilon and of delta, for the noise on the minimum
  double limit;   // of L, for the norm of the gradient
};

PerturbedObjective ObjectiveOf(const FitQuestion& q, double lambda) {
  const LossBounds bounds = internal::BoundsOf(q);
  const double r = q.table.row_bound;
  const auto k = static_cast<double>(q.rows_per_user);  // a record is a user (method.h)
  return {.gradient_bound = k * bounds.slope * r,
          .trace_bound = k * bounds.trace * r * r,
          .regularisation = lambda,
          .directions = q.rows_per_user * bounds.directions,
          .adjacency = q.adjacency};
}

// Near the deviation of b that ObjectiveNoise finds, for choosing lambda: the loss passes epsilon
// where the chi distribution leaves delta.
double RoughNoise(const PerturbedObjective& objective, double epsilon, double delta) {
  const double left = epsilon - LogDeterminantBound(objective);
  if (!(left > 0)) return kInfinity;
  const double factor = internal::NeighbourFactor(objective.adjacency);
  const double degrees = factor * static_cast<double>(objective.directions);
  const double r = std::sqrt(2 * boost::math::gamma_q_inv(0.5 * degrees, delta));
  return factor * objective.gradient_bound / (std::sqrt(r * r + 2 * left) - r);
}

// b, and how far in L2 it is at most from that of the theorem.
struct LinearTerm {
  at::Tensor b;
  double moved = 0;
};

LinearTerm GaussianTerm(at::IntArrayRef sizes, double sigma, Generator& generator) {
  const GridGaussian noise(sigma);
  at::Tensor b = at::empty(sizes, at::kDouble);
  noise.Fill(generator,
             std::span<double>(b.mutable_data_ptr<double>(), static_cast<std::size_t>(b.numel())));
  return {b, 0.5 * noise.Granularity() * std::sqrt(static_cast<double>(b.numel()))};
}

LinearTerm LaplaceTerm(at::IntArrayRef sizes, double scale, Generator& generator) {
  const GridLaplace noise(scale);
  at::Tensor b = at::empty(sizes, at::kDouble);
  double* const out = b.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < b.numel(); ++i) {
    std::int64_t k = 0;
    while (k == 0) k = noise.sampler()(generator);
    out[i] = static_cast<double>(k > 0 ? k - 1 : k + 1) * noise.Granularity();
  }
  return {b, noise.Granularity() * std::sqrt(static_cast<double>(b.numel()))};
}

class NoisyObjective : public FitMethod {
 public:
  NoisyObjective(Row row, MinimumShares shares) : FitMethod(row), shares_(shares) {}

  PlannedFit Plan(const FitQuestion& question, const OptionValues& options) const override {
    FitPlan plan;
    plan.method = Choice(std::string(name()), options);
    plan.question = question;
    plan.is_laplace = question.delta.value() == 0;
    plan.gradient_norm_limit = internal::GradientLimit(question, shares_.limit);
    // An accountant asks for a little more than what it is told.
    const double whole = question.epsilon.value() * (1 - kEventSlack);
    const double epsilon = whole * (1 - shares_.budget);
    const auto p = static_cast<double>(internal::Parameters(question));
    const Epsilon rest(whole * shares_.budget * (1 - 0x1p-40));
    if (plan.is_laplace) {
      plan.second_multiplier = 1 / rest.value() * (1 + 0x1p-40);
      plan.event = Event::Pure(Epsilon(whole), question.adjacency);
    } else {
      const Delta noise_delta(question.delta.value() * (1 - kEventSlack) * shares_.budget);
      // Failures of b count at the whole epsilon.
      const double failure =
          internal::GaussianFailure(2 * p) * (1 + std::exp(question.epsilon.value()));
      plan.second_multiplier = 1 / internal::GaussianBudget(rest, noise_delta, failure);
      plan.event = Event::Approximate(
          Epsilon(whole), Delta(question.delta.value() * (1 - kEventSlack)), question.adjacency);
    }
    return Complete(plan, epsilon, p);
  }

  CountedFit Counted(const FitPlan& plan, Delta loss) const override {
    const FitQuestion& q = plan.question;
    if (plan.is_laplace || loss.value() == 0 || q.delta.value() <= loss.value()) {
      return {plan.event, plan.failure};
    }
    const PerturbedObjective objective = ObjectiveOf(q, plan.lambda);
    const auto fits = [&](double epsilon) {
      return ObjectiveDelta(objective, plan.sigma, Epsilon(epsilon)) <= loss.value();
    };
    double high = q.epsilon.value();
    for (int i = 0; i < 20 && !fits(high); ++i) high *= 2;
    if (!fits(high)) return {plan.event, plan.failure};
    double low = 0;
    while (high - low > 1e-4 * high) {
      const double middle = 0.5 * (low + high);
      (fits(middle) ? high : low) = middle;
    }
    return {Event::Compose({Event::Approximate(Epsilon(high), loss, q.adjacency),
                            Event::Gaussian(NoiseMultiplier(plan.second_multiplier), q.adjacency)},
                           q.adjacency),
            internal::GaussianFailure(2 * static_cast<double>(internal::Parameters(q)))};
  }

  FitResult Run(const FitPlan& plan, const Problem& problem, RandomSource& source,
                const FitProgress& progress) const override {
    const std::vector<std::int64_t> sizes = {problem.shape().features, problem.scores()};
    const auto draw = source.Stream({.step = 0, .rank = 0, .tensor = 0});
    const LinearTerm term = plan.is_laplace ? LaplaceTerm(sizes, plan.sigma, *draw)
                                            : GaussianTerm(sizes, plan.sigma, *draw);
    const internal::CertifiedMinimum minimum =
        internal::Minimise({&problem, plan.lambda, term.b}, plan.gradient_norm_limit, progress);
    const double sensitivity =
        2 * (plan.gradient_norm_limit + term.moved) / plan.lambda * (1 + 0x1p-40);
    const auto stream = source.Stream({.step = 1, .rank = 0, .tensor = 0});
    const double root = std::sqrt(static_cast<double>(minimum.theta.numel())) * (1 + 0x1p-50);
    const internal::NoisedVector noised =
        plan.is_laplace ? internal::AddLaplaceNoise(minimum.theta, sensitivity * root,
                                                    plan.second_multiplier, *stream)
                        : internal::AddGaussianNoise(minimum.theta, sensitivity,
                                                     plan.second_multiplier, *stream);
    if (progress) progress(1);
    return {.coefficients = noised.value, .gradient_norm = plan.gradient_norm_limit};
  }

 private:
  PlannedFit Complete(FitPlan plan, double epsilon, double p) const {
    const FitQuestion& q = plan.question;
    const double delta = q.delta.value() * (1 - kEventSlack) * (1 - shares_.budget);
    const double spread = plan.is_laplace ? std::sqrt(2 * p) : 1;
    const auto sigma = [&](double lambda) {
      const PerturbedObjective objective = ObjectiveOf(q, lambda);
      if (!plan.is_laplace) return RoughNoise(objective, epsilon, delta);
      return 1 / PureObjectiveRate(objective, Epsilon(epsilon)).value_or(0) * spread;
    };
    const auto last = [&](double lambda) {
      return plan.second_multiplier * spread * 2 * plan.gradient_norm_limit / lambda;
    };
    const auto risk = [&](double lambda) {
      const double noise = sigma(lambda);
      if (!(noise < kInfinity)) return 1e300 / lambda;
      return ObjectiveRisk(internal::ShapeOf(q), noise, lambda) +
             OutputRisk(internal::ShapeOf(q), last(lambda), 0);
    };
    const double r = q.table.row_bound;
    plan.lambda =
        q.lambda ? *q.lambda
                 : LeastRiskAt(risk, 1e-3 * r * r, 1e3 * static_cast<double>(q.records) * r * r);
    const PerturbedObjective objective = ObjectiveOf(q, plan.lambda);
    std::optional<double> found;
    if (plan.is_laplace) {
      if (const auto rate = PureObjectiveRate(objective, Epsilon(epsilon))) {
        found = std::sqrt(p) / *rate * (1 + 0x1p-40);
      }
    } else {
      found = ObjectiveNoise(objective, Epsilon(epsilon), Delta(delta));
    }
    if (!found) {
      return internal::Refused(
          *this,
          "objective perturbation needs more regularisation for this epsilon; use a larger "
          "lambda.");
    }
    plan.sigma = *found;
    plan.excess_risk = risk(plan.lambda);
    plan.noises = {{"in the objective", plan.sigma * (plan.is_laplace ? std::numbers::sqrt2 : 1)},
                   {"on each coefficient, for the distance from the minimum", last(plan.lambda)}};
    return internal::Planned(plan);
  }

  MinimumShares shares_;
};

}  // namespace

const FitMethod& ObjectiveMethod() {
  static const NoisyObjective component(
      {.name = "objective", .help = "the minimum of an objective with a random linear term"},
      {.budget = 0.01, .limit = 1e-5});
  return component;
}

const FitMethod& MinimaMethod() {
  static const NoisyObjective component(
      {.name = "minima",
       .help = "the same, stopped early: a tenth of the budget pays for the distance"},
      {.budget = 0.1, .limit = 1e-3});
  return component;
}

}  // namespace sordino
