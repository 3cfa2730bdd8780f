#include "sordino/mechanisms/objective_perturbation.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>

#include "sordino/accounting/gaussian.h"

namespace sordino {
namespace {

// Rounding of the closed forms and of the special functions, with room.
constexpr double kRounding = 1e-12;

void CheckObjective(const PerturbedObjective& o) {
  CheckRange("the bound on the gradient", o.gradient_bound, 0, true, kInfinity, true);
  CheckRange("the bound on the trace of the Hessian", o.trace_bound, 0, false, kInfinity, true);
  CheckRange("the regularisation", o.regularisation, 0, true, kInfinity, true);
  CheckRange("the number of directions", static_cast<double>(o.directions), 1, false, 0x1p31,
             false);
}

bool Replaces(const PerturbedObjective& o) { return o.adjacency == Adjacency::kReplaceOne; }

// Pr[r > x] for the chi distribution.
double ChiTail(double degrees, double x) {
  return boost::math::gamma_q(0.5 * degrees, 0.5 * x * x);
}

// What of the loss is random: the loss is at most offset + slope r.
struct LinearLoss {
  double offset;   // J + L^2 / (2 sigma^2)
  double slope;    // L / sigma
  double degrees;  // of the chi distribution of r

  // Where the loss passes epsilon.
  double From(double epsilon) const { return std::max(0.0, (epsilon - offset) / slope); }
};

LinearLoss LossOf(const PerturbedObjective& o, double sigma) {
  const double slope = (Replaces(o) ? 2 : 1) * o.gradient_bound / sigma;
  return {LogDeterminantBound(o) + 0.5 * slope * slope, slope,
          static_cast<double>((Replaces(o) ? 2 : 1) * o.directions)};
}

// E (1 - e^{epsilon - offset - slope r})_+ for one degree of freedom.
double HalfNormalDelta(const LinearLoss& loss, double epsilon) {
  const double from = loss.From(epsilon);
  // e^{-slope r} moves the normal density by slope.
  const double shifted = std::exp(epsilon - loss.offset + 0.5 * loss.slope * loss.slope) * 2 *
                         UpperTail(from + loss.slope);
  return 2 * UpperTail(from) * (1 + kRounding) - shifted * (1 - kRounding);
}

// In general: on each cell [a, b] the factor 1 - e^{epsilon - loss}, which rises with r, is at most
// that at b. Cells are short against 1 / slope and against the deviation of r.
double ChiDelta(const LinearLoss& loss, double epsilon) {
  const double from = loss.From(epsilon);
  const double width = 1e-3 * std::min({1.0, 1 / loss.slope, std::max(0.05, 1 / (from + 1))});
  const auto factor = [&](double r) {
    return -std::expm1(std::min(0.0, epsilon - loss.offset - loss.slope * r));
  };
  double a = from;
  double tail = ChiTail(loss.degrees, a);
  double delta = 0;
  const double first_tail = tail;
  for (int i = 0; i < 2'000'000; ++i) {
    if (tail <= 1e-5 * delta || tail < 1e-300) break;
    const double b = a + width;
    const double next = ChiTail(loss.degrees, b);
    delta += (tail - next + kRounding * tail) * factor(b);
    a = b;
    tail = next;
  }
  return std::min(first_tail, delta + tail) * (1 + 1e-9);
}

}  // namespace

PerturbedObjective PerturbedObjective::Logistic(double row_norm, double regularisation,
                                                Adjacency adjacency) {
  return {.gradient_bound = row_norm,
          .trace_bound = 0.25 * row_norm * row_norm,
          .regularisation = regularisation,
          .directions = 1,
          .adjacency = adjacency};
}

PerturbedObjective PerturbedObjective::Softmax(std::int64_t classes, double row_norm,
                                               double regularisation, Adjacency adjacency) {
  CheckRange("the number of classes", static_cast<double>(classes), 2, false, 0x1p31, false);
  return {.gradient_bound = std::numbers::sqrt2 * row_norm * (1 + 0x1p-50),
          .trace_bound = (1 - 1 / static_cast<double>(classes)) * row_norm * row_norm,
          .regularisation = regularisation,
          .directions = classes - 1,
          .adjacency = adjacency};
}

double LogDeterminantBound(const PerturbedObjective& o) {
  CheckObjective(o);
  const auto m = static_cast<double>(o.directions);
  return m * std::log1p(o.trace_bound / (m * o.regularisation)) * (1 + kRounding);
}

double ObjectiveDelta(const PerturbedObjective& objective, double sigma, Epsilon epsilon) {
  CheckRange("the standard deviation", sigma, 0, true, kInfinity, true);
  const LinearLoss loss = LossOf(objective, sigma);
  const double delta =
      loss.degrees == 1 ? HalfNormalDelta(loss, epsilon.value()) : ChiDelta(loss, epsilon.value());
  return std::clamp(delta, 0.0, 1.0);
}

std::optional<double> ObjectiveNoise(const PerturbedObjective& objective, Epsilon epsilon,
                                     Delta delta) {
  if (epsilon.value() <= LogDeterminantBound(objective) || delta.value() == 0) return std::nullopt;
  const auto fits = [&](double sigma) {
    return ObjectiveDelta(objective, sigma, epsilon) <= delta.value();
  };
  double high = objective.gradient_bound;
  for (int i = 0; !fits(high); ++i) {
    if (i == 100) return std::nullopt;
    high *= 2;
  }
  double low = 0.5 * high;
  while (fits(low) && low > 1e-100) low *= 0.5;
  while (high - low > 1e-6 * high) {
    const double middle = 0.5 * (low + high);
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

std::optional<double> PureObjectiveRate(const PerturbedObjective& objective, Epsilon epsilon) {
  const double left = epsilon.value() - LogDeterminantBound(objective);
  if (!(left > 0)) return std::nullopt;
  return left / ((Replaces(objective) ? 2 : 1) * objective.gradient_bound) * (1 - kRounding);
}

PublishedObjectiveSplit PublishedPureObjective(Epsilon epsilon, double records,
                                               double regularisation, double curvature) {
  CheckRange("the number of records", records, 1, false, kInfinity, true);
  CheckRange("the regularisation", regularisation, 0, true, kInfinity, true);
  CheckRange("the bound on the second derivative", curvature, 0, true, kInfinity, true);
  const double left = epsilon.value() - 2 * std::log1p(curvature / (records * regularisation));
  if (left > 0) return {left, 0};
  const double added = curvature / (records * std::expm1(epsilon.value() / 4)) - regularisation;
  return {epsilon.value() / 2, added};
}

}  // namespace sordino
