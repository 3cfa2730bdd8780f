// Private Newton steps on a quadratic upper bound (Ganesh, Haghifam, Steinke and Thakurta, arXiv
// 2305.13209, section 4: "QU"): the Hessian of every loss is at most its curvature c times X^T X,
// so
//
//     theta <- theta - (c A + f I)^-1 (sum_i clip(grad l_i) + noise + lambda theta)
//
// with A the private X^T X, its negative eigenvalues set to 0, decreases the risk where nothing is
// noise. A is released once and used in every step; no step needs a step size.
//
// Sensitivity. That of X^T X is in internal/second_moment.h, that of the sums of gradients in
// gradient.cc. One Gaussian release of the matrix and T of sums; everything else is
// post-processing.
//
// Settings by theory. The matrix gets a fifth of mu^2. Noise of deviation s on a symmetric matrix
// of d columns has eigenvalues of at most about 2 s sqrt(d); f / c is at least this, so that c A +
// f I stays an upper bound, and more where the predicted risk is then less.
#include <ATen/Functions.h>
#include <ATen/ops/linalg_eigh.h>

#include <algorithm>
#include <cmath>

#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/gradient_sum.h"
#include "sordino/convex/internal/second_moment.h"
#include "sordino/convex/internal/vector_noise.h"
#include "sordino/convex/method.h"

namespace sordino {
namespace {

constexpr double kMatrixShare = 0.2;  // of mu^2
constexpr OptionSpec kNewtonSteps{.key = "newton-steps",
                                  .flag = "--newton-steps",
                                  .value_name = "T",
                                  .help = "Newton steps; by theory where it is left out",
                                  .what = "the number of Newton steps",
                                  .type = OptionType::kWhole,
                                  .low = 1,
                                  .high = 10'000,
                                  .high_open = false};
constexpr const OptionSpec* kNewtonOptions[] = {&kNewtonSteps};

// As in gradient.cc.
double NewtonRadius(const FitQuestion& question) { return 100 * internal::WeightNorm(question); }

double NewtonSensitivity(const FitPlan& plan) {
  return internal::NeighbourFactor(plan.question) * plan.clip +
         2 * internal::MaxGradientRounding(plan.question.table, NewtonRadius(plan.question));
}

// 2 s sqrt(d), times the curvature.
double LeastFloor(const FitPlan& plan) {
  const FitQuestion& q = plan.question;
  const double s = plan.second_multiplier * internal::SecondMomentSensitivity(q);
  return internal::BoundsOf(q).curvature * 2 * s * std::sqrt(static_cast<double>(q.table.features));
}

class Newton : public FitMethod {
 public:
  Newton()
      : FitMethod({.name = "newton",
                   .help = "few steps by a private matrix of second moments",
                   .options = kNewtonOptions}) {}

  PlannedFit Plan(const FitQuestion& question, const OptionValues& options) const override {
    if (question.delta.value() == 0) {
      return internal::Refused(*this, "the private Newton step needs a delta above 0.");
    }
    if (question.table.features > internal::kMaxMomentFeatures) {
      return internal::Refused(*this, "the private Newton step takes at most 4096 features.");
    }
    FitPlan plan;
    plan.method = Choice(std::string(name()), options);
    plan.question = question;
    plan.lambda = question.lambda.value_or(0);
    const double slope = internal::BoundsOf(question).slope;
    const bool classifies = CheckedLoss(question.table).Classifies();
    plan.clip = (classifies ? std::min(1.0, slope) : slope) * question.table.row_bound;
    std::vector<std::int64_t> candidates = {2, 5, 10, 20, 50};
    if (options.Has(kNewtonSteps.key)) candidates = {options.Whole(kNewtonSteps)};
    for (const std::int64_t steps : candidates) {
      const FitPlan tried = WithSteps(plan, steps);
      if (tried.excess_risk < 0.98 * plan.excess_risk) plan = tried;
    }
    plan.event = Event::Compose(
        {{Event::Gaussian(NoiseMultiplier(plan.second_multiplier), question.adjacency), 1},
         {Event::Gaussian(NoiseMultiplier(plan.multiplier), question.adjacency),
          static_cast<std::uint64_t>(plan.steps)}});
    plan.noises = {{"on each sum of gradients", plan.multiplier * NewtonSensitivity(plan)},
                   {"on the matrix of second moments",
                    plan.second_multiplier * internal::SecondMomentSensitivity(question)}};
    return internal::Planned(plan);
  }

  FitResult Run(const FitPlan& plan, const Problem& problem, RandomSource& source,
                const FitProgress& progress) const override {
    const at::Tensor inverse = Preconditioner(plan, problem, source);
    const double slope_clip = plan.clip / problem.shape().row_bound;
    const double radius = NewtonRadius(plan.question);
    at::Tensor theta = at::zeros({problem.shape().features, problem.scores()}, at::kDouble);
    for (std::int64_t step = 0; step < plan.steps; ++step) {
      if (progress) progress(static_cast<double>(step) / static_cast<double>(plan.steps));
      const auto stream =
          source.Stream({.step = static_cast<std::uint64_t>(step) + 1, .rank = 0, .tensor = 0});
      const at::Tensor noised =
          internal::AddGaussianNoise(internal::GradientSum(problem, theta, slope_clip),
                                     NewtonSensitivity(plan), plan.multiplier, *stream)
              .value;
      theta.sub_(inverse.mm(noised.add(theta, plan.lambda)));
      const double norm = internal::NormBound(theta);
      if (norm > radius) theta.mul_(radius / norm);
    }
    if (progress) progress(1);
    return {.coefficients = theta};
  }

 private:
  static FitPlan WithSteps(FitPlan plan, std::int64_t steps) {
    const FitQuestion& q = plan.question;
    const auto t = static_cast<double>(steps);
    const auto n = static_cast<double>(q.records);
    const auto p = static_cast<double>(internal::Parameters(q));
    plan.steps = steps;
    plan.failure = internal::GaussianFailure(t * p + internal::SecondMomentDraws(q.table.features));
    const double mu = internal::GaussianBudget(q.epsilon, q.delta, plan.failure);
    plan.second_multiplier = 1 / (mu * std::sqrt(kMatrixShare)) * (1 + 0x1p-40);
    plan.multiplier = std::sqrt(t / (1 - kMatrixShare)) / mu * (1 + 0x1p-40);
    const double sigma = plan.multiplier * NewtonSensitivity(plan) / std::sqrt(t);
    const auto risk = [&](double floor) {
      return PreconditionedRisk(internal::ShapeOf(q), sigma, t, (floor + plan.lambda) / n);
    };
    const double least = LeastFloor(plan);
    // The step "size" of a Newton step is the floor of its matrix.
    plan.step_size = LeastRiskAt(risk, least, 1e4 * least);
    plan.excess_risk = risk(plan.step_size);
    return plan;
  }

  // (c A + (f + lambda) I)^-1.
  static at::Tensor Preconditioner(const FitPlan& plan, const Problem& problem,
                                   RandomSource& source) {
    const auto stream = source.Stream({.step = 0, .rank = 0, .tensor = 0});
    const internal::NoisedMoment moment = internal::AddSymmetricNoise(
        internal::SecondMoment(problem), internal::SecondMomentSensitivity(plan.question),
        plan.second_multiplier, *stream);
    const auto [values, vectors] = at::linalg_eigh(moment.matrix);
    const at::Tensor scales = values.clamp_min(0)
                                  .mul_(problem.bounds().curvature)
                                  .add_(plan.step_size + plan.lambda)
                                  .reciprocal_();
    return vectors.mul(scales.unsqueeze(0)).mm(vectors.t());
  }
};

}  // namespace

const FitMethod& NewtonMethod() {
  static const Newton component;
  return component;
}

}  // namespace sordino
