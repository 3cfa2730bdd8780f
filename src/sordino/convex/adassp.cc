// AdaSSP: least squares from private sufficient statistics, with a regularisation that adapts to
// the least eigenvalue (Wang, "Revisiting differentially private linear regression", UAI 2018,
// algorithm 2). It minimises the square itself, not the loss that is linear beyond B.
//
// Released are the least eigenvalue of X^T X, X^T X and X^T y, each with a third of mu^2.
// Sensitivities: of X^T X in internal/second_moment.h; an eigenvalue moves by no more than the
// matrix does in norm (Weyl); X^T y by R B (add-remove, zero-out) or 2 R B (replace-one). Two
// computed values are further apart by twice their rounding: gamma n R B for X^T y, and for the
// eigenvalue that of the matrix and of the solver, which is assumed to be backward stable to 64 d
// 2^-53 |X^T X|.
//
//     theta = (A + lambda I)^-1 v,  lambda = max(0, sqrt(d log(2 d^2 / 0.05)) s - least eigenvalue)
//
// with s the deviation of the noise on A. Noise is the only private randomness: to first order
// theta has the covariance of (A + lambda I)^-1 (e_v - e_A theta).
#include <ATen/Functions.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_inv.h>

#include <algorithm>
#include <cmath>

#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/second_moment.h"
#include "sordino/convex/internal/vector_noise.h"
#include "sordino/convex/method.h"

namespace sordino {
namespace {

constexpr double kAdasspFailure = 0.05;
constexpr std::int64_t kProductBlock = 8192;

// X^T y.
at::Tensor TargetProduct(const Problem& problem) {
  at::Tensor sum = at::zeros({problem.shape().features}, at::kDouble);
  for (std::int64_t begin = 0; begin < problem.rows(); begin += kProductBlock) {
    const std::int64_t count = std::min(kProductBlock, problem.rows() - begin);
    sum.add_(problem.Rows(begin, count).t().mv(problem.targets().narrow(0, begin, count)));
  }
  return sum;
}

double EigenvalueSensitivity(const FitQuestion& q) {
  const auto rows =
      static_cast<double>(std::min(kMaxConvexRows, kMaxConvexEntries / q.table.features));
  const double r2 = q.table.row_bound * q.table.row_bound;
  const double solver = 64 * static_cast<double>(q.table.features) * 0x1p-53 * rows * r2;
  return internal::SecondMomentSensitivity(q) + 2 * solver;
}

double ProductSensitivity(const FitQuestion& q) {
  const auto rows =
      static_cast<double>(std::min(kMaxConvexRows, kMaxConvexEntries / q.table.features));
  const double terms = static_cast<double>(kProductBlock) + rows / kProductBlock + 4;
  const double one = q.table.row_bound * q.table.target_bound;
  return (internal::NeighbourFactor(q) + 2 * terms * 0x1p-52 * rows) * one;
}

// The expected size of the noise on the matrix in the norm that counts: sqrt(d log(2 d^2 / 0.05))
// s.
double AdasspShift(std::int64_t features, double deviation) {
  const auto d = static_cast<double>(features);
  return std::sqrt(d * std::log(2 * d * d / kAdasspFailure)) * deviation;
}

class Adassp : public FitMethod {
 public:
  Adassp() : FitMethod({.name = "adassp", .help = "least squares from private sums of products"}) {}

  PlannedFit Plan(const FitQuestion& question, const OptionValues& options) const override {
    if (question.table.loss.name != "squares") {
      return internal::Refused(
          *this, "AdaSSP is for least squares; use the loss 'squares' (--model least-squares).");
    }
    if (question.delta.value() == 0) {
      return internal::Refused(*this, "AdaSSP needs a delta above 0.");
    }
    if (question.table.features > internal::kMaxMomentFeatures) {
      return internal::Refused(*this, "AdaSSP takes at most 4096 features.");
    }
    FitPlan plan;
    plan.method = Choice(std::string(name()), options);
    plan.question = question;
    plan.lambda = question.lambda.value_or(0);
    const auto d = static_cast<double>(question.table.features);
    plan.failure =
        internal::GaussianFailure(internal::SecondMomentDraws(question.table.features) + d + 1);
    const double mu = internal::GaussianBudget(question.epsilon, question.delta, plan.failure);
    plan.multiplier = std::sqrt(3.0) / mu * (1 + 0x1p-40);
    plan.event =
        Event::Repeat(Event::Gaussian(NoiseMultiplier(plan.multiplier), question.adjacency), 3);
    const double on_matrix = plan.multiplier * internal::SecondMomentSensitivity(question);
    const double on_product = plan.multiplier * ProductSensitivity(question);
    plan.noises = {{"on the matrix of second moments", on_matrix},
                   {"on the products with the targets", on_product}};
    const double rho = internal::WeightNorm(question);
    const double error = std::hypot(on_product, on_matrix * rho);
    // The assumed eigenvalues fall below any shift.
    plan.excess_risk =
        ObjectiveRisk(internal::ShapeOf(question), error,
                      std::max(plan.lambda, AdasspShift(question.table.features, on_matrix)));
    return internal::Planned(plan);
  }

  FitResult Run(const FitPlan& plan, const Problem& problem, RandomSource& source,
                const FitProgress& progress) const override {
    const FitQuestion& q = plan.question;
    if (progress) progress(0);
    const at::Tensor moment = internal::SecondMoment(problem);
    const at::Tensor product = TargetProduct(problem);
    const auto stream = source.Stream({.step = 0, .rank = 0, .tensor = 0});
    const double least =
        internal::AddGaussianNoise(at::linalg_eigvalsh(moment).narrow(0, 0, 1),
                                   EigenvalueSensitivity(q), plan.multiplier, *stream)
            .value.item<double>();
    const internal::NoisedMoment a = internal::AddSymmetricNoise(
        moment, internal::SecondMomentSensitivity(q), plan.multiplier, *stream);
    const internal::NoisedVector v =
        internal::AddGaussianNoise(product, ProductSensitivity(q), plan.multiplier, *stream);
    const double shift =
        std::max(plan.lambda, AdasspShift(q.table.features, a.deviation) - std::max(0.0, least));
    // From here on everything is post-processing. Directions that noise made negative count as 0.
    const auto [values, vectors] = at::linalg_eigh(a.matrix);
    const double floor = std::max(shift, 1e-3 * a.deviation);
    const at::Tensor scales = values.clamp_min(0).add_(floor).reciprocal_();
    const at::Tensor inverse = vectors.mul(scales.unsqueeze(0)).mm(vectors.t());
    const at::Tensor theta = inverse.mv(v.value);
    if (progress) progress(1);
    const at::Tensor factor = NoiseFactor(inverse, theta, a.deviation, v.deviation);
    return {.coefficients = theta.unsqueeze(1),
            .gradient_norm = 0,
            .deviation = factor.norm(2, {1}, true),
            .noise_factor = factor};
  }

 private:
  // e_A theta has the covariance s^2 (|theta|^2 I + theta theta^T) up to the diagonal of e_A.
  static at::Tensor NoiseFactor(const at::Tensor& inverse, const at::Tensor& theta,
                                double on_matrix, double on_product) {
    const double norm = theta.norm().item<double>();
    return at::cat({inverse.mul(std::hypot(on_product, on_matrix * norm)),
                    inverse.mv(theta).mul_(on_matrix).unsqueeze(1)},
                   1);
  }
};

}  // namespace

const FitMethod& AdasspMethod() {
  static const Adassp component;
  return component;
}

}  // namespace sordino
