#include "sordino/accounting/internal/contour/stride_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace sordino {
namespace {

// Relative error that the quadrature aims at, before it is raised to the number of steps.
constexpr double kLogQuadratureGoal = -38;
// Candidates for the width of the strip of analyticity, as shares of the widest.
constexpr std::array<double, 11> kStrips = {0.9,  0.7,  0.5,  0.35,  0.25, 0.15,
                                            0.08, 0.04, 0.02, 0.005, 0.001};

}  // namespace

TiltedTable::TiltedTable(const MixtureTable& table, double c) : log_tilted(table.size()) {
  const std::size_t n = table.size();
  for (std::size_t i = 0; i < n; ++i) {
    log_tilted[i] = table.LogWeight(i, c) + table.LogGaussian(i);
    top = std::max(top, log_tilted[i]);
  }
  for (std::size_t i = 0; i < n; ++i) total += std::exp(log_tilted[i] - top);
  cell_upper.resize(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const double lowest = table.LowestSlope(i, c);
    const double highest = table.HighestSlope(i, c);
    const double d = table.spacing();
    const double from_left = log_tilted[i] + std::max(0.0, highest) * d;
    const double from_right = log_tilted[i + 1] - std::min(0.0, lowest) * d;
    cell_upper[i] = std::min(from_left, from_right) - top;
  }
}

void StrideSearch::Run(std::size_t& strip) {
  const std::size_t first = strip;
  Try(first, strip);
  bool found = stride_ >= 1;
  for (std::size_t k = first; k-- > 0;) {
    if (!Try(k, strip) && found) break;
    found = stride_ >= 1;
  }
  for (std::size_t k = first + 1; k < kStrips.size(); ++k) {
    if (!Try(k, strip) && found) break;
    found = stride_ >= 1;
  }
}

bool StrideSearch::Try(std::size_t candidate, std::size_t& strip) {
  const GaussianMixtureDensity& density = table_.density();
  const double sigma = density.sigma();
  const double precision = 1 / (sigma * sigma);
  const double numerator_shift = density.max_numerator_shift();
  const double denominator_shift = density.max_denominator_shift();
  const double widest = std::numbers::pi / std::max({numerator_shift, denominator_shift, 1e-300});
  const double fraction = kStrips[candidate];
  double v = std::min(fraction * widest, 12 / sigma * (fraction / 0.9));
  if (table_.cutoff()) v = std::min(v, fraction * 14 * table_.cutoff()->width * precision);
  const double a = v * sigma * sigma;
  double modulus = 0;
  for (std::size_t i = 0; i + 1 < table_.size(); ++i) {
    if (tilted_.cell_upper[i] < -kDroppedWeight - 10) continue;
    // |arg| <= v s B/(A+B) where B <= A, else v s.
    const double num = table_.NumeratorHit(i + 1);
    const double den = table_.DenominatorHit(i);
    const double angle = v * (numerator_shift * (num <= 0.5 ? num : 1.0) +
                              denominator_shift * (den <= 0.5 ? den : 1.0));
    modulus += std::exp(tilted_.cell_upper[i] + max_frequency_ * angle);
  }
  const double log_modulus = std::log(modulus / tilted_.total) + 0.5 * a * a * precision -
                             c_ * std::log(std::cos(0.5 * v * denominator_shift)) +
                             (table_.cutoff() ? 0.5 * std::pow(a / table_.cutoff()->width, 2) : 0);
  // 2 N / (e^{2 pi a / h} - 1) <= e^goal.
  const double exponent = log_modulus + std::log(2.0) - kLogQuadratureGoal;
  const double stride = std::floor(2 * std::numbers::pi * a / exponent / table_.spacing());
  if (!(stride > stride_)) return false;
  stride_ = stride;
  strip = candidate;
  const double reached = 2 * std::numbers::pi * a / (stride * table_.spacing());
  log_error_ = log_modulus + std::log(2.0) - std::log(std::expm1(std::min(700.0, reached)));
  return true;
}

}  // namespace sordino
