#include "sordino/convex/internal/minimum.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>

#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/gradient_sum.h"

namespace sordino::internal {
namespace {

constexpr std::size_t kMemory = 12;
constexpr int kMaxQuasiNewtonSteps = 2000;
constexpr int kMaxLineTrials = 40;

double Dot(const at::Tensor& a, const at::Tensor& b) { return a.mul(b).sum().item<double>(); }

struct Point {
  at::Tensor theta;
  at::Tensor gradient;
  double value = 0;
};

Point Evaluated(const RegularisedObjective& objective, at::Tensor theta) {
  ValueAndGradient sum = LossSum(*objective.problem, theta);
  sum.value += 0.5 * objective.lambda * Dot(theta, theta);
  sum.gradient.add_(theta, objective.lambda);
  if (objective.linear.defined()) {
    sum.value += Dot(objective.linear, theta);
    sum.gradient.add_(objective.linear);
  }
  return {std::move(theta), std::move(sum.gradient), sum.value};
}

// The upper bound on the norm of the exact gradient, from the computed one.
double Certified(const RegularisedObjective& objective, const Point& point) {
  const double theta_norm = NormBound(point.theta);
  const double linear = objective.linear.defined() ? NormBound(objective.linear) : 0;
  const double sum = NormBound(point.gradient) + objective.lambda * theta_norm + linear;
  const double rounding =
      GradientRounding(objective.problem->shape(), objective.problem->rows(), theta_norm);
  return (NormBound(point.gradient) + rounding + 0x1p-50 * sum) * (1 + 0x1p-50);
}

class QuasiNewton {
 public:
  explicit QuasiNewton(double first_scale) : scale_(first_scale) {}

  at::Tensor Direction(const at::Tensor& gradient) const {
    at::Tensor direction = gradient.neg();
    std::vector<double> alphas(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      alphas[i] = pairs_[i].rho * Dot(pairs_[i].s, direction);
      direction.sub_(pairs_[i].y, alphas[i]);
    }
    direction.mul_(scale_);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const double beta = pairs_[i].rho * Dot(pairs_[i].y, direction);
      direction.add_(pairs_[i].s, alphas[i] - beta);
    }
    return direction;
  }

  void Learn(const Point& from, const Point& to) {
    at::Tensor s = to.theta.sub(from.theta);
    at::Tensor y = to.gradient.sub(from.gradient);
    const double sy = Dot(s, y);
    const double yy = Dot(y, y);
    if (!(sy > 1e-14 * yy * scale_) || !(yy > 0)) return;
    scale_ = sy / yy;
    pairs_.push_back({std::move(s), std::move(y), 1 / sy});
    if (pairs_.size() > kMemory) pairs_.pop_front();
  }

 private:
  struct Pair {
    at::Tensor s;
    at::Tensor y;
    double rho;
  };
  std::deque<Pair> pairs_;
  double scale_;
};

// A point along the direction whose slope is neither steep nor much above 0. Values decide only
// where they differ by more than their rounding.
std::optional<Point> LineSearch(const RegularisedObjective& objective, const Point& from,
                                const at::Tensor& direction) {
  const double slope = Dot(from.gradient, direction);
  if (!(slope < 0)) return std::nullopt;
  double low = 0;
  double high = kInfinity;
  double t = 1;
  for (int trial = 0; trial < kMaxLineTrials; ++trial) {
    Point to = Evaluated(objective, from.theta.add(direction, t));
    const double there = Dot(to.gradient, direction);
    const double slack = 1e-12 * std::abs(from.value);
    const bool rose = !(to.value <= from.value + 1e-4 * t * slope + slack);
    if (rose || there > -0.5 * slope) {
      high = t;
    } else if (there < 0.9 * slope) {
      low = t;
    } else {
      return to;
    }
    t = std::isinf(high) ? 2 * t : 0.5 * (low + high);
  }
  return std::nullopt;
}

// Nesterov's method with the constant momentum of a strongly convex function.
Point Accelerated(const RegularisedObjective& objective, const Point& start, double limit) {
  const Problem& problem = *objective.problem;
  const double r = problem.shape().row_bound;
  const double smooth =
      static_cast<double>(problem.rows()) * problem.bounds().curvature * r * r + objective.lambda;
  const double root = std::sqrt(smooth / objective.lambda);
  const double momentum = (root - 1) / (root + 1);
  // F falls by e each `root` steps, and the gradient by its square root.
  const double fall = std::log(std::max(2.0, NormBound(start.gradient) * root / limit));
  const double steps = 4 * (root + 1) * (fall + 2);
  at::Tensor before = start.theta;
  at::Tensor ahead = start.theta;
  for (double step = 0; step < steps; ++step) {
    const Point at_ahead = Evaluated(objective, ahead);
    at::Tensor after = ahead.sub(at_ahead.gradient, 1 / smooth);
    ahead = after.add(after.sub(before), momentum);
    before = std::move(after);
    if (std::fmod(step, 10) == 9) {
      Point now = Evaluated(objective, before);
      if (Certified(objective, now) <= limit) return now;
    }
  }
  return Evaluated(objective, before);
}

}  // namespace

double CertifiedGradientNorm(const RegularisedObjective& objective, const at::Tensor& theta) {
  return Certified(objective, Evaluated(objective, theta));
}

CertifiedMinimum Minimise(const RegularisedObjective& objective, double limit,
                          const FitProgress& progress, const at::Tensor& start) {
  const Problem& problem = *objective.problem;
  Point point = Evaluated(
      objective, start.defined()
                     ? start
                     : at::zeros({problem.shape().features, problem.scores()}, at::kDouble));
  const double r = problem.shape().row_bound;
  QuasiNewton memory(1 / (objective.lambda + 0.1 * static_cast<double>(problem.rows()) *
                                                 problem.bounds().curvature * r * r));
  double norm = Certified(objective, point);
  for (int step = 0; step < kMaxQuasiNewtonSteps && norm > limit; ++step) {
    // How far it is would be a statement about the rows.
    if (progress) progress(0);
    std::optional<Point> next = LineSearch(objective, point, memory.Direction(point.gradient));
    if (!next) break;
    memory.Learn(point, *next);
    point = std::move(*next);
    norm = Certified(objective, point);
  }
  if (norm > limit) {
    point = Accelerated(objective, point, limit);
    norm = Certified(objective, point);
  }
  if (norm > limit) {
    throw std::runtime_error(
        "the minimum could not be certified: rounding in float64 is above the limit of the plan; "
        "declare the number of records, or use a larger lambda or another method.");
  }
  return {std::move(point.theta), norm};
}

double GradientLimit(const FitQuestion& question, double share) {
  const double floor = GradientRounding(
      question.table, std::min(kMaxConvexRows, 2 * question.records), 100 * WeightNorm(question));
  return std::max(share * GradientBound(question), 4 * floor);
}

}  // namespace sordino::internal
