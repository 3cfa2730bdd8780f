#include "sordino/accounting/internal/allocation/lognormal_lattice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "sordino/accounting/internal/contour/gauss_legendre.h"
#include "sordino/base/check.h"

namespace sordino {
namespace {

constexpr double kLatticePanel = 0.25;
// Three points do as well on short pieces, of which there are most.
constexpr std::array<double, 3> kShortNodes = {-0.77459666924148337704, 0, 0.77459666924148337704};
constexpr std::array<double, 3> kShortWeights = {0.55555555555555555556, 0.88888888888888888889,
                                                 0.55555555555555555556};
constexpr double kShort = 0.004;
// Pieces a cell that are merged into runs: the ends of a run then lie where its balance wants them.
constexpr int kPieces = 4;

double Density(double u) {
  constexpr double kFront = 0.39894228040143267794;
  return kFront * std::exp(-0.5 * u * u);
}

void Tilt(LatticeLaw& law) {
  for (std::size_t j = 0; j < law.mass.size(); ++j) {
    if (law.mass[j] > 0) law.mass[j] *= std::exp(law.tilt * law.Value(j) - law.log_scale);
  }
}

}  // namespace

template <typename Visit>
void LogNormalRatio::Integrate(double from_u, double to_u, Visit visit) const {
  const double smooth = std::min(1.0, 1 / s_);
  if (to_u - from_u < kShort * smooth) {
    const double middle = 0.5 * (from_u + to_u);
    const double half = 0.5 * (to_u - from_u);
    for (std::size_t k = 0; k < kShortNodes.size() && half > 0; ++k) {
      const double u = middle + half * kShortNodes[k];
      visit(Value(u), half * kShortWeights[k] * Density(u));
    }
    return;
  }
  const double panel = kLatticePanel * smooth;
  while (from_u < to_u) {
    double end = from_u + panel;
    if (to_u - end < 0.1 * panel) end = to_u;
    const double middle = 0.5 * (from_u + end);
    const double half = 0.5 * (end - from_u);
    for (std::size_t k = 0; k < kLegendreNodes.size(); ++k) {
      const double u = middle + half * kLegendreNodes[k];
      visit(Value(u), half * kLegendreWeights[k] * Density(u));
    }
    from_u = end;
  }
}

LogNormalRatio::LogNormalRatio(double s, double low_u, double cap_u, bool keep_top)
    : s_(s), low_u_(low_u), cap_u_(cap_u), cap_(Value(cap_u)) {
  SORDINO_CHECK(low_u < cap_u, "a ratio has an empty range");
  top_mass_ = keep_top ? 0.5 * std::erfc(cap_u / std::numbers::sqrt2) : 0;
  Integrate(low_u, cap_u, [&](double x, double mass) { nodes_.push_back({x, mass}); });
  if (keep_top) nodes_.push_back({cap_, top_mass_});
}

double LogNormalRatio::Value(double u) const { return std::exp(s_ * (u - 0.5 * s_)); }
double LogNormalRatio::Coordinate(double x) const { return std::log(x) / s_ + 0.5 * s_; }

LogNormalRatio::Moments LogNormalRatio::TiltedMoments(double theta) const {
  const double top = theta * (theta > 0 ? cap_ : nodes_.front().value);
  double sum = 0;
  double first = 0;
  double second = 0;
  for (const ValueMass& node : nodes_) {
    const double weight = node.mass * std::exp(theta * node.value - top);
    sum += weight;
    first += weight * node.value;
    second += weight * node.value * node.value;
  }
  const double mean = first / sum;
  return {top + std::log(sum), mean, std::max(second / sum - mean * mean, 1e-14 * mean * mean)};
}

LatticeLaw LogNormalRatio::Above(double spacing, double tilt, double log_scale) const {
  const double first = std::floor(Value(low_u_) / spacing);
  LatticeLaw law{first * spacing, spacing, tilt, log_scale, {}};
  const auto cells = static_cast<std::size_t>(std::max(1.0, std::ceil(cap_ / spacing) - first));
  law.mass.assign(cells + 1, 0.0);
  double from = low_u_;
  for (std::size_t j = 0; j < cells; ++j) {
    const double start = (first + static_cast<double>(j)) * spacing;
    const double to = j + 1 == cells ? cap_u_ : std::min(cap_u_, Coordinate(start + spacing));
    Integrate(from, to, [&](double x, double mass) {
      const double up = std::clamp((x - start) / spacing, 0.0, 1.0);
      law.mass[j] += mass * (1 - up);
      law.mass[j + 1] += mass * up;
    });
    from = std::max(from, to);
  }
  law.mass[cells - 1] += top_mass_;  // at most cap
  Tilt(law);
  return law;
}

LatticeLaw LogNormalRatio::Below(double spacing, double tilt, double log_scale,
                                 Rounding rounding) const {
  // All of the first cell is one run, and the lattice starts at its mean: where cells are wide it
  // holds nearly everything.
  const double first_edge = (std::floor(Value(low_u_) / spacing) + 1) * spacing;
  double mass = 0;
  double mean = 0;
  double from = std::min(cap_u_, Coordinate(first_edge));
  Integrate(low_u_, from, [&](double x, double m) {
    mass += m;
    mean += m * x;
  });
  const double offset = mass > 1e-290 ? mean / mass : first_edge - 0.5 * spacing;
  LatticeLaw law{offset, spacing, tilt, log_scale, {}};
  std::vector<ValueMass> values;
  const double piece = spacing / kPieces;
  for (double edge = first_edge; from < cap_u_; edge += piece) {
    const double to = std::min(cap_u_, Coordinate(edge + piece));
    if (!(to > from)) continue;
    double piece_mass = 0;
    double piece_mean = 0;
    Integrate(from, to, [&](double x, double m) {
      piece_mass += m;
      piece_mean += m * x;
    });
    if (piece_mass > 0) values.push_back({piece_mean / piece_mass, piece_mass});
    from = to;
  }
  law.mass.assign(static_cast<std::size_t>(std::ceil((cap_ - offset) / spacing)) + 2, 0.0);
  law.mass[0] = mass;
  MergeIntoRuns(
      values, [&](std::size_t i) { return offset + static_cast<double>(i) * spacing; }, rounding,
      law.mass);
  Tilt(law);
  return law;
}

}  // namespace sordino
