#include "sordino/accounting/internal/grid/circle_product.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <numbers>

#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

// The quadrature and the logarithms behind one tilted mass, relative.
constexpr double kMassRounding = 1e-13;

}  // namespace

std::vector<GridStep> GridStepsOf(std::span<const CountedPair> pairs, double& log_survival) {
  std::vector<GridStep> steps;
  double mu2 = 0;
  for (const CountedPair& one : pairs) {
    const auto count = static_cast<double>(one.count);
    mu2 += count * (one.pair.gaussian_mu * one.pair.gaussian_mu);
    if (one.pair.pieces.empty() && one.pair.atoms.empty()) {
      log_survival += count * std::log1p(-one.pair.infinite_mass);
    } else {
      steps.push_back({one.pair, count});
    }
  }
  if (mu2 > 0) steps.push_back({DensityOfGaussian(std::sqrt(mu2)), 1});
  return steps;
}

bool ChooseRanges(std::span<GridStep> steps, double log_lost) {
  for (GridStep& one : steps) {
    ChooseRange(one.pair, log_lost);
    one.nodes = SampleNodes(one.pair);
    if (one.nodes.loss.empty()) return false;
  }
  return true;
}

double LogMomentOf(std::span<const GridStep> steps, double c) {
  double sum = 0;
  for (const GridStep& one : steps) sum += one.count * one.nodes.LogMoment(c);
  return sum;
}

double VarianceOf(std::span<const GridStep> steps, double c) {
  double sum = 0;
  for (const GridStep& one : steps) sum += one.count * one.nodes.Tilted(c).variance;
  return sum;
}

std::optional<double> ChooseOffset(GridStep& step) {
  std::vector<LossAtom> atoms = step.pair.atoms;
  if (atoms.empty()) {
    const DensityPiece& piece = step.pair.pieces.front();
    step.spec.offset = piece.density->Loss(piece.low_x);
    return std::nullopt;
  }
  std::partial_sort(atoms.begin(), atoms.begin() + std::min<std::ptrdiff_t>(2, std::ssize(atoms)),
                    atoms.end(),
                    [](const LossAtom& a, const LossAtom& b) { return a.mass > b.mass; });
  step.spec.offset = atoms[0].loss;
  if (atoms.size() < 2) return std::nullopt;
  return std::abs(atoms[0].loss - atoms[1].loss);
}

std::optional<CircleProduct> ProductOnCircle(std::span<GridStep> steps, const GridCircle& circle) {
  const auto n = static_cast<double>(circle.points);
  const kissfft<double> forward(circle.points, false);
  std::vector<std::complex<double>> input(circle.points);
  std::vector<std::complex<double>> output(circle.points);
  const std::vector<double> zeros(circle.points, 0.0);
  CircleProduct product{zeros, zeros, zeros};
  for (GridStep& one : steps) {
    one.spec.spacing = circle.spacing;
    one.spec.tilt = circle.tilt;
    one.spec.log_scale = one.nodes.LogMoment(circle.tilt);
    one.grid = Discretise(one.pair, one.spec, circle.bound);
    double sum = 0;
    for (const double mass : one.grid.mass) sum += mass;
    if (!(sum > 0)) return std::nullopt;
    std::fill(input.begin(), input.end(), std::complex<double>());
    for (std::size_t i = 0; i < one.grid.mass.size(); ++i) {
      const std::int64_t index = one.grid.first + static_cast<std::int64_t>(i);
      input[circle.Place(index)] += one.grid.mass[i] / sum;
    }
    double square = 0;
    for (const std::complex<double>& value : input) square += std::norm(value);
    forward.transform(input.data(), output.data());
    const double error = kStageRounding * kUnitRoundoff * std::log2(n) * std::sqrt(n * square);
    for (std::size_t k = 0; k < circle.points; ++k) {
      const double modulus = std::abs(output[k]);
      product.log_modulus[k] += one.count * std::log(std::max(modulus, 1e-300));
      product.log_largest[k] += one.count * std::log(modulus + error);
      // Only the phase modulo 2 pi matters, and count is a whole number.
      product.phase[k] += std::remainder(one.count * std::arg(output[k]), 2 * std::numbers::pi);
    }
    product.log_mass += one.count * (one.spec.log_scale + std::log(sum));
    product.log_mass_error +=
        one.count *
        (kMassRounding + 4 * kUnitRoundoff * std::abs(one.spec.log_scale) +
         (circle.bound == Bound::kLower ? circle.tilt * circle.spacing * kMergeError : 0.0));
    product.offset += one.count * one.spec.offset;
    product.log_survival += one.count * std::log1p(-one.grid.infinite_mass);
  }
  return product;
}

}  // namespace sordino
