// Output perturbation: noise on the minimum (Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem
// 6), or on what descent reached (Wu et al., SIGMOD 2017).
//
// Theorem. Let F = sum_i l_i + (lambda / 2) |.|^2 and F' be that of a neighbour. F' - F has a
// gradient of norm at most D = L (add-remove, zero-out) or 2 L (replace-one), so at the minimum t'
// of F' the gradient of F has at most that norm, and F is strongly convex: |t - t'| <= D / lambda.
// What is computed lies within limit / lambda of the minimum (internal/minimum.h), so the
// sensitivity is (D + 2 limit) / lambda.
//
// Theorem (k proximal steps; k = 1 is the minimum above). Let P(v) be the minimum of
// sum_i l_i + (mu / 2) |. - v|^2, and P' that of a neighbour. Let t = P(v) and t' = P'(v'), and g
// the difference of the two sums' gradients at t', of norm at most D. The gradients vanish at t and
// t', and the gradient of a convex function is monotone, so mu |t' - t|^2 <= (mu |v' - v| + D) |t'
// - t|, and |t' - t| <= |v' - v| + D / mu. Each step is computed to within limit / mu. So k steps
// with mu = k lambda move at most k (D + 2 limit) / (k lambda): the sensitivity of the one minimum
// for lambda. But what is left of a weight's bias in a direction of curvature h falls from lambda /
// (h + lambda) to (k lambda / (h + k lambda))^k (iterated Tikhonov regularisation; Rockafellar,
// 1976, for the map). n need not be public.
//
// Theorem (T steps of descent from 0 with the step size eta = 1 / S, S = n curvature R^2 + lambda,
// which bounds the Hessian of F). A step of exact descent on F contracts distances by 1 - eta
// lambda, and the two neighbours' steps from one point end eta D apart, so after T steps they are
// at most (D / lambda) (1 - (1 - eta lambda)^T) apart: the minimum need not be reached. Rounding
// adds eta E a step and neighbour, 2 E / lambda in all. n has to be public: not under add-remove.
//
// Gaussian noise of z times the sensitivity is one Gaussian release; for delta = 0 Laplace noise on
// each of p coefficients of scale sqrt(p) times the sensitivity over epsilon is a pure one.
#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/base/error.h"
#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/gradient_sum.h"
#include "sordino/convex/internal/minimum.h"
#include "sordino/convex/internal/vector_noise.h"
#include "sordino/convex/method.h"

namespace sordino {
namespace {

// Of the bound on a row's gradient; what it costs is 2e-5 of the sensitivity.
constexpr double kOutputLimitShare = 1e-5;
constexpr OptionSpec kDescentSteps{
    .key = "descent-steps",
    .flag = "--descent-steps",
    .value_name = "T",
    .help = "Stop after so many steps of descent (Wu et al.) instead of at the minimum",
    .what = "the number of steps of descent",
    .type = OptionType::kWhole,
    .low = 1,
    .high = 1'000'000,
    .high_open = false};
constexpr OptionSpec kProximalSteps{
    .key = "proximal-steps",
    .flag = "--proximal-steps",
    .value_name = "K",
    .help =
        "Minima in turn, each drawn to the one before; the same noise and less bias. 1 is "
        "Chaudhuri's",
    .what = "the number of proximal steps",
    .type = OptionType::kWhole,
    .fallback = std::int64_t{4},
    .low = 1,
    .high = 1000,
    .high_open = false};
constexpr const OptionSpec* kOutputOptions[] = {&kDescentSteps, &kProximalSteps};

double DescentSmoothness(const FitQuestion& q, double lambda) {
  const double r = q.table.row_bound;
  return static_cast<double>(q.records) * internal::BoundsOf(q).curvature * r * r + lambda;
}

double OutputSensitivity(const FitPlan& plan, double lambda) {
  const FitQuestion& q = plan.question;
  const double distance = internal::NeighbourFactor(q) * internal::GradientBound(q);
  if (plan.steps == 0) return (distance + 2 * plan.gradient_norm_limit) / lambda * (1 + 0x1p-40);
  const double kept =
      std::pow(1 - lambda / DescentSmoothness(q, lambda), static_cast<double>(plan.steps));
  // Weights never leave n L / lambda.
  const auto n = static_cast<double>(q.records);
  const double norm = n * internal::GradientBound(q) / lambda;
  const double rounding = internal::GradientRounding(q.table, q.records, norm) +
                          8 * 0x1p-53 * DescentSmoothness(q, lambda) * norm;
  return (distance * (1 - kept) + 2 * rounding) / lambda * (1 + 0x1p-40);
}

at::Tensor Descend(const FitPlan& plan, const Problem& problem, const FitProgress& progress) {
  at::Tensor theta = at::zeros({problem.shape().features, problem.scores()}, at::kDouble);
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    if (progress) progress(static_cast<double>(step) / static_cast<double>(plan.steps));
    at::Tensor sum = internal::GradientSum(problem, theta, kInfinity);
    theta.sub_(sum.add_(theta, plan.lambda), plan.step_size);
  }
  return theta;
}

// The linear term -mu v is rounded, which moves v by at most its last place: inside of the limit.
at::Tensor ProximalSteps(const FitPlan& plan, const Problem& problem, const FitProgress& progress) {
  const double mu = static_cast<double>(plan.proximal_steps) * plan.lambda;
  at::Tensor theta;
  for (std::int64_t step = 0; step < plan.proximal_steps; ++step) {
    internal::RegularisedObjective objective{&problem, mu};
    double rounding = 0;
    if (step > 0) {
      objective.linear = theta.mul(-mu);
      rounding = 0x1p-52 * internal::NormBound(objective.linear);
    }
    theta =
        internal::Minimise(objective, plan.gradient_norm_limit - rounding, progress, theta).theta;
  }
  return theta;
}

class Output : public FitMethod {
 public:
  Output()
      : FitMethod(
            {.name = "output", .help = "noise on the exact minimum", .options = kOutputOptions}) {}

  void Check(const OptionValues& options) const override {
    if (options.Has(kDescentSteps.key) && options.Has(kProximalSteps.key)) {
      throw Error("--descent-steps cannot be used with --proximal-steps; leave one of them out.");
    }
  }

  PlannedFit Plan(const FitQuestion& question, const OptionValues& options) const override {
    FitPlan plan;
    plan.method = Choice(std::string(name()), options);
    plan.question = question;
    plan.is_laplace = question.delta.value() == 0;
    const auto p = static_cast<double>(internal::Parameters(question));
    if (plan.is_laplace) {
      plan.multiplier = 1 / question.epsilon.value() * (1 + 0x1p-40);
      plan.event = Event::Pure(question.epsilon, question.adjacency);
    } else {
      plan.failure = internal::GaussianFailure(p);
      plan.multiplier =
          1 / internal::GaussianBudget(question.epsilon, question.delta, plan.failure);
      plan.event = Event::Gaussian(NoiseMultiplier(plan.multiplier), question.adjacency);
    }
    plan.gradient_norm_limit = internal::GradientLimit(question, kOutputLimitShare);
    if (options.Has(kDescentSteps.key)) {
      if (question.adjacency == Adjacency::kAddRemove) {
        return internal::Refused(*this,
                                 "output perturbation after a number of descent steps needs a "
                                 "public number of rows; use replace-one or zero-out.");
      }
      plan.steps = options.Whole(kDescentSteps);
      plan.gradient_norm_limit = 0;
    }
    plan.proximal_steps = options.Whole(kProximalSteps);
    return Complete(plan);
  }

  FitResult Run(const FitPlan& plan, const Problem& problem, RandomSource& source,
                const FitProgress& progress) const override {
    const at::Tensor theta =
        plan.steps > 0 ? Descend(plan, problem, progress) : ProximalSteps(plan, problem, progress);
    const double sensitivity = OutputSensitivity(plan, plan.lambda);
    const auto stream = source.Stream({.step = 0, .rank = 0, .tensor = 0});
    const double root = std::sqrt(static_cast<double>(theta.numel())) * (1 + 0x1p-50);
    const internal::NoisedVector noised =
        plan.is_laplace
            ? internal::AddLaplaceNoise(theta, sensitivity * root, plan.multiplier, *stream)
            : internal::AddGaussianNoise(theta, sensitivity, plan.multiplier, *stream);
    if (progress) progress(1);
    return {.coefficients = noised.value,
            .gradient_norm = plan.gradient_norm_limit,
            .deviation = at::full_like(noised.value, noised.deviation)};
  }

 private:
  static PlannedFit Complete(FitPlan plan) {
    const FitQuestion& q = plan.question;
    const auto n = static_cast<double>(q.records);
    const auto p = static_cast<double>(internal::Parameters(q));
    const double factor = plan.multiplier * (plan.is_laplace ? std::sqrt(2 * p) : 1);
    const RiskShape shape = internal::ShapeOf(q);
    const auto risk = [&](double lambda) {
      double stopped = 0;
      if (plan.steps > 0) {
        const double duration = n * static_cast<double>(plan.steps) / DescentSmoothness(q, lambda);
        stopped = shape.weight_norm * shape.weight_norm / (4 * std::numbers::e * duration);
      }
      return OutputRisk(shape, factor * OutputSensitivity(plan, lambda), lambda,
                        plan.steps > 0 ? 1 : plan.proximal_steps) +
             stopped;
    };
    const double r = q.table.row_bound;
    plan.lambda = q.lambda ? *q.lambda : LeastRiskAt(risk, 1e-3 * r * r, 1e3 * n * r * r);
    plan.excess_risk = risk(plan.lambda);
    if (plan.steps > 0) plan.step_size = 1 / DescentSmoothness(q, plan.lambda);
    plan.noises = {{"on each coefficient", factor * OutputSensitivity(plan, plan.lambda)}};
    return internal::Planned(plan);
  }
};

}  // namespace

const FitMethod& OutputMethod() {
  static const Output component;
  return component;
}

}  // namespace sordino
