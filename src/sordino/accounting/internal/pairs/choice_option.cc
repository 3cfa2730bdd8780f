#include "sordino/accounting/internal/pairs/choice_option.h"

#include <algorithm>
#include <cmath>
#include <kissfft/kissfft.hh>
#include <memory>
#include <numbers>
#include <utility>

#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

constexpr double kMaxPairCells = 1 << 20;
// The quadrature and the logarithms behind one tilted mass, relative.
constexpr double kCellRounding = 1e-13;

double TiltedVariance(const LossNodes& nodes, double c) {
  const double scale = nodes.LogMoment(c);
  double mean = 0;
  double square = 0;
  for (std::size_t i = 0; i < nodes.loss.size(); ++i) {
    mean += std::exp(nodes.log_mass[i] + c * nodes.loss[i] - scale) * nodes.loss[i];
  }
  for (std::size_t i = 0; i < nodes.loss.size(); ++i) {
    square +=
        std::exp(nodes.log_mass[i] + c * nodes.loss[i] - scale) * std::pow(nodes.loss[i] - mean, 2);
  }
  return square;
}

}  // namespace

ChoiceOption::ChoiceOption(const std::vector<CountedPair>& pairs) {
  double mu2 = 0;
  for (const CountedPair& one : pairs) {
    const auto count = static_cast<double>(one.count);
    mu2 += count * one.pair.gaussian_mu * one.pair.gaussian_mu;
    if (one.pair.pieces.empty() && one.pair.atoms.empty()) {
      log_survival_ += count * std::log1p(-one.pair.infinite_mass);
    } else {
      steps_.push_back({one.pair, count});
    }
  }
  if (mu2 == 0) return;
  LossPair gaussian;
  gaussian.pieces.push_back({std::make_shared<GaussianMixtureDensity>(
      1 / std::sqrt(mu2), GaussianMixtureDensity::Parts{{1.0, 1.0}},
      GaussianMixtureDensity::Parts{{0.0, 1.0}})});
  steps_.push_back({std::move(gaussian), 1});
}

double ChoiceOption::Steps() const {
  double steps = 0;
  for (const Step& one : steps_) steps += one.count;
  return steps;
}

bool ChoiceOption::ChooseRanges(double log_lost) {
  for (Step& one : steps_) {
    ChooseRange(one.pair, log_lost);
    one.nodes = SampleNodes(one.pair);
    if (one.nodes.loss.empty()) return false;
  }
  return true;
}

double ChoiceOption::LogMoment(double c) const {
  double sum = 0;
  for (const Step& one : steps_) sum += one.count * one.nodes.LogMoment(c);
  return sum;
}

double ChoiceOption::Variance(double c) const {
  double sum = 0;
  for (const Step& one : steps_) sum += one.count * TiltedVariance(one.nodes, c);
  return sum;
}

std::optional<double> ChoiceOption::ChooseOffsets() {
  std::optional<double> gap;
  for (Step& one : steps_) {
    std::vector<LossAtom>& atoms = one.pair.atoms;
    if (atoms.empty()) {
      one.spec.offset = one.pair.pieces.front().density->Loss(one.pair.pieces.front().low_x);
      continue;
    }
    std::partial_sort(atoms.begin(), atoms.begin() + std::min<std::ptrdiff_t>(2, std::ssize(atoms)),
                      atoms.end(),
                      [](const LossAtom& a, const LossAtom& b) { return a.mass > b.mass; });
    one.spec.offset = atoms[0].loss;
    if (atoms.size() > 1 && !gap) gap = std::abs(atoms[0].loss - atoms[1].loss);
  }
  return gap;
}

bool ChoiceOption::Transform(const ChoiceCircle& circle) {
  const auto n = static_cast<double>(circle.points);
  const kissfft<double> forward(circle.points, false);
  std::vector<std::complex<double>> input(circle.points);
  std::vector<std::complex<double>> output(circle.points);
  const std::vector<double> zeros(circle.points, 0.0);
  Frequencies sums{zeros, zeros, zeros};
  double offset = 0;
  for (Step& one : steps_) {
    one.spec.spacing = circle.spacing;
    one.spec.tilt = circle.tilt;
    one.spec.log_scale = one.nodes.LogMoment(circle.tilt);
    const auto [low, high] = std::minmax_element(one.nodes.loss.begin(), one.nodes.loss.end());
    if (!((*high - *low) / circle.spacing < kMaxPairCells)) return false;
    one.grid = Discretise(one.pair, one.spec, circle.bound);
    double sum = 0;
    for (const double mass : one.grid.mass) sum += mass;
    if (!(sum > 0)) return false;
    std::fill(input.begin(), input.end(), std::complex<double>());
    double square = 0;
    for (std::size_t i = 0; i < one.grid.mass.size(); ++i) {
      const std::int64_t index = one.grid.first + static_cast<std::int64_t>(i);
      input[circle.Place(index)] += one.grid.mass[i] / sum;
    }
    for (const std::complex<double>& value : input) square += std::norm(value);
    forward.transform(input.data(), output.data());
    const double error = kStageRounding * kUnitRoundoff * std::log2(n) * std::sqrt(n * square);
    for (std::size_t k = 0; k < circle.points; ++k) {
      const double modulus = std::abs(output[k]);
      sums.log_modulus[k] += one.count * std::log(std::max(modulus, 1e-300));
      sums.log_largest[k] += one.count * std::log(modulus + error);
      sums.phase[k] += std::remainder(one.count * std::arg(output[k]), 2 * std::numbers::pi);
    }
    log_mass_ += one.count * (one.spec.log_scale + std::log(sum));
    log_mass_error_ +=
        one.count *
        (kCellRounding + 4 * kUnitRoundoff * std::abs(one.spec.log_scale) +
         (circle.bound == Bound::kLower ? circle.tilt * circle.spacing * kMergeError : 0.0));
    offset += one.count * one.spec.offset;
    log_survival_ += one.count * std::log1p(-one.grid.infinite_mass);
  }
  Finish(circle, offset, sums);
  return true;
}

// Losses were moved by a cell at most where offsets were put on the grid.
double ChoiceOption::CircleMoment(double d, double spacing) const {
  double sum = std::abs(d) * spacing;
  for (const Step& one : steps_) sum += one.count * LogMomentOf(one.grid, one.spec, d);
  return sum;
}

double ChoiceOption::infinite() const { return -std::expm1(log_survival_); }

// All offsets together are some cells and a rest: kUpper splits it between two points such that
// both masses are kept, kLower leaves it out.
void ChoiceOption::Finish(const ChoiceCircle& circle, double offset, const Frequencies& sums) {
  const double start = std::floor(offset / circle.spacing);
  const double rest = offset - start * circle.spacing;
  log_mass_error_ += circle.tilt * std::abs(offset) * 8 * kUnitRoundoff;
  const auto n = static_cast<double>(circle.points);
  const bool split = circle.bound == Bound::kUpper;
  const double up = split ? std::expm1(-rest) / std::expm1(-circle.spacing) : 0;
  const double low = (1 - up) * std::exp(-circle.tilt * rest);
  const double high = up * std::exp(circle.tilt * (circle.spacing - rest));
  log_mass_ += std::log(low + high);
  transform_.resize(circle.points);
  const double counts = Steps();
  for (std::size_t k = 0; k < circle.points; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / n;
    const double turn =
        -2 * std::numbers::pi * std::fmod(static_cast<double>(k) * std::fmod(start, n), n) / n;
    const double modulus = std::exp(sums.log_modulus[k]);
    transform_[k] = std::polar(modulus, sums.phase[k] + turn) *
                    (low + high * std::polar(1.0, angle)) / (low + high);
    const double rounding =
        modulus * kUnitRoundoff * 8 * (16 + std::abs(sums.log_modulus[k]) + 4 * counts);
    transform_error_ =
        std::max(transform_error_, std::exp(sums.log_largest[k]) - modulus + rounding);
  }
}

}  // namespace sordino
