#include "sordino/correlation/internal/minimise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <numeric>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr std::size_t kPairs = 20;
constexpr double kSufficient = 1e-4;
constexpr int kMostHalvings = 40;
constexpr int kQuietSteps = 3;

double Inner(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void AddTo(std::span<double> a, double factor, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}

struct CurvaturePair {
  std::vector<double> step;
  std::vector<double> change;  // of the gradient
  double inner;                // > 0
};

// - (approximate inverse Hessian) * gradient, by the two loops.
std::vector<double> Direction(const std::deque<CurvaturePair>& pairs,
                              std::span<const double> gradient) {
  std::vector<double> direction(gradient.begin(), gradient.end());
  std::vector<double> shares(pairs.size());
  for (std::size_t i = pairs.size(); i-- > 0;) {
    shares[i] = Inner(pairs[i].step, direction) / pairs[i].inner;
    AddTo(direction, -shares[i], pairs[i].change);
  }
  const double scale = pairs.empty()
                           ? 0.1 / std::max(1.0, std::sqrt(Inner(gradient, gradient)))
                           : pairs.back().inner / Inner(pairs.back().change, pairs.back().change);
  for (double& value : direction) value *= scale;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    AddTo(direction, shares[i] - Inner(pairs[i].change, direction) / pairs[i].inner, pairs[i].step);
  }
  for (double& value : direction) value = -value;
  return direction;
}

}  // namespace

Minimum Minimise(const SmoothFunction& function, std::vector<double> start, double tolerance,
                 int most_steps) {
  const std::size_t size = start.size();
  Minimum now{std::move(start), 0};
  std::vector<double> gradient(size);
  now.value = function(now.x, gradient);
  std::deque<CurvaturePair> pairs;
  int quiet = 0;
  for (int step = 0; step < most_steps && size > 0 && quiet < kQuietSteps; ++step) {
    std::vector<double> direction = Direction(pairs, gradient);
    double slope = Inner(direction, gradient);
    if (!(slope < 0)) {
      if (pairs.empty()) break;
      pairs.clear();
      continue;
    }
    std::vector<double> next(size);
    std::vector<double> next_gradient(size);
    double value = kInfinity;
    double length = 1;
    for (int halving = 0; halving < kMostHalvings; ++halving, length /= 2) {
      next = now.x;
      AddTo(next, length, direction);
      value = function(next, next_gradient);
      if (value <= now.value + kSufficient * length * slope) break;
    }
    if (!(value < now.value)) {
      if (pairs.empty()) break;
      pairs.clear();  // once more along the gradient
      continue;
    }
    quiet = now.value - value <= tolerance * std::abs(value) ? quiet + 1 : 0;
    CurvaturePair pair{next, next_gradient, 0};
    AddTo(pair.step, -1, now.x);
    AddTo(pair.change, -1, gradient);
    pair.inner = Inner(pair.step, pair.change);
    if (pair.inner > 1e-12 * Inner(pair.change, pair.change)) {
      pairs.push_back(std::move(pair));
      if (pairs.size() > kPairs) pairs.pop_front();
    }
    now = {std::move(next), value};
    gradient = std::move(next_gradient);
  }
  return now;
}

double MinimiseOnInterval(const std::function<double(double)>& function, double low, double high) {
  constexpr int kCells = 24;
  const double width = (high - low) / kCells;
  double best = low + width / 2;
  double best_value = kInfinity;
  for (int i = 0; i < kCells; ++i) {
    const double x = low + (i + 0.5) * width;
    const double value = function(x);
    if (value < best_value) {
      best = x;
      best_value = value;
    }
  }
  double left = std::max(low, best - width);
  double right = std::min(high, best + width);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double a = right - golden * (right - left);
  double b = left + golden * (right - left);
  double value_a = function(a);
  double value_b = function(b);
  while (right - left > 1e-9 * (high - low)) {
    if (value_a < value_b) {
      right = b;
      b = a;
      value_b = value_a;
      a = right - golden * (right - left);
      value_a = function(a);
    } else {
      left = a;
      a = b;
      value_a = value_b;
      b = left + golden * (right - left);
      value_b = function(b);
    }
  }
  return (left + right) / 2;
}

}  // namespace sordino
