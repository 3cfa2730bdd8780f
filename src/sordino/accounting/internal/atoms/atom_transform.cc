#include "sordino/accounting/internal/atoms/atom_transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sordino/accounting/internal/rounding.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Relative error of a mass, from its quadrature and its exponential.
constexpr double kMassError = 1e-13;
constexpr std::size_t kBlock = 64;
// Atoms with |s l| up to this go into the series, whose kTerms terms are then good to 1e-17.
constexpr double kSeriesReach = 0.5;
constexpr int kTerms = 15;
constexpr double kMaxExponent = 650;

// Sums over the atoms with |l| below a bound.
struct Series {
  std::array<double, kTerms + 1> moment{};  // sum of mass l^k / k!, k = 2 ...
  double square = 0;                        // sum of |mass| l^2 e^{max(0, c l, -l)} / 2
};

// Sums over the others, tilted.
struct Explicit {
  std::vector<double> loss;
  std::vector<double> weight;  // mass e^{cl}
  double mass = 0;
  double other = 0;  // sum of mass (e^-l - 1)
  // Sums of absolute values.
  double absolute_mass = 0;
  double weights = 0;
  double absolute_other = 0;
  double weighted_loss = 0;  // sum of weight |l|
};

}  // namespace

AtomTransform::AtomTransform(AtomList list, double count)
    : list_(std::move(list)),
      count_(count),
      largest_(list_.loss.empty() ? 0 : *std::max_element(list_.loss.begin(), list_.loss.end())) {}

double AtomTransform::Excess(double c) const {
  if (list_.loss.empty()) return -list_.absent_p;
  if (c * largest_ > kMaxExponent) return kInfinity;
  double sum = 0;
  for (std::size_t i = 0; i < list_.loss.size(); ++i) {
    sum += list_.mass[i] * (ExpRest(c * list_.loss[i]) + c * ExpRest(-list_.loss[i]));
  }
  return sum - list_.absent_p - c * (list_.absent_p - list_.absent_q);
}

double AtomTransform::ExcessError(double c) const {
  double sum = 0;
  for (std::size_t i = 0; i < list_.loss.size(); ++i) {
    sum +=
        std::abs(list_.mass[i]) * (ExpRest(c * list_.loss[i]) * (1 + std::abs(c * list_.loss[i])) +
                                   c * ExpRest(-list_.loss[i]));
  }
  const double terms = static_cast<double>(list_.loss.size());
  return sum * (2 * kMassError + terms * kUnitRoundoff) + c * list_.q_rounding +
         1e-12 * (std::abs(list_.absent_p) + c * std::abs(list_.absent_p - list_.absent_q));
}

AtomTransform::Moments AtomTransform::Tilted(double c) const {
  double total = 0;
  Moments m{0, 0};
  for (std::size_t i = 0; i < list_.loss.size(); ++i) {
    const double w = list_.mass[i] * std::exp(c * list_.loss[i]);
    total += w;
    m.mean += w * list_.loss[i];
  }
  m.mean /= total;
  for (std::size_t i = 0; i < list_.loss.size(); ++i) {
    const double w = list_.mass[i] * std::exp(c * list_.loss[i]);
    m.variance += w * (list_.loss[i] - m.mean) * (list_.loss[i] - m.mean);
  }
  m.variance /= total;
  return m;
}

namespace {

void Sort(const AtomList& list, double c, double bound, Series& series, Explicit& rest) {
  series = {};
  rest = {};
  for (std::size_t i = 0; i < list.loss.size(); ++i) {
    const double l = list.loss[i];
    const double m = list.mass[i];
    if (std::abs(l) <= bound) {
      double term = m * l;
      for (int k = 2; k <= kTerms; ++k) {
        term *= l / k;
        series.moment[static_cast<std::size_t>(k)] += term;
      }
      series.square += 0.5 * std::abs(m) * l * l * std::exp(std::max({0.0, c * l, -l}));
    } else {
      const double w = m * std::exp(c * l);
      const double other = m * std::expm1(-l);
      rest.loss.push_back(l);
      rest.weight.push_back(w);
      rest.mass += m;
      rest.other += other;
      rest.absolute_mass += std::abs(m);
      rest.weights += std::abs(w);
      rest.absolute_other += std::abs(other);
      rest.weighted_loss += std::abs(w * l);
    }
  }
}

// Turns all explicit atoms through `count` frequencies from y on, and sums them.
void Turn(const Explicit& rest, double y, double step, std::size_t count,
          std::complex<double>* out) {
  const std::size_t n = rest.loss.size();
  constexpr std::size_t kLanes = 4;
  std::vector<double> re(n);
  std::vector<double> im(n);
  std::vector<double> turn_re(n);
  std::vector<double> turn_im(n);
  for (std::size_t i = 0; i < n; ++i) {
    re[i] = rest.weight[i] * std::cos(y * rest.loss[i]);
    im[i] = rest.weight[i] * std::sin(y * rest.loss[i]);
    turn_re[i] = std::cos(step * rest.loss[i]);
    turn_im[i] = std::sin(step * rest.loss[i]);
  }
  for (std::size_t k = 0; k < count; ++k) {
    std::array<double, kLanes> sum_re = {};
    std::array<double, kLanes> sum_im = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t j = i + lane;
        sum_re[lane] += re[j];
        sum_im[lane] += im[j];
        const double turned = re[j] * turn_re[j] - im[j] * turn_im[j];
        im[j] = re[j] * turn_im[j] + im[j] * turn_re[j];
        re[j] = turned;
      }
    }
    for (; i < n; ++i) {
      sum_re[0] += re[i];
      sum_im[0] += im[i];
      const double turned = re[i] * turn_re[i] - im[i] * turn_im[i];
      im[i] = re[i] * turn_im[i] + im[i] * turn_re[i];
      re[i] = turned;
    }
    out[k] = {sum_re[0] + sum_re[1] + sum_re[2] + sum_re[3],
              sum_im[0] + sum_im[1] + sum_im[2] + sum_im[3]};
  }
}

}  // namespace

void AtomTransform::Line(double c, double step, std::vector<std::complex<double>>& out,
                         std::vector<double>& error) const {
  Series series;
  Explicit rest;
  double bound = kInfinity;
  const double p = list_.absent_p;
  const double gap = p - list_.absent_q;
  for (std::size_t first = 0; first < out.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - first);
    const double y = step * static_cast<double>(first);
    const double largest = std::hypot(c, step * static_cast<double>(first + count)) + 1;
    // The bound falls by powers of two, so that the sums are made anew a few times only.
    const double wanted = kSeriesReach / largest;
    if (wanted < bound) {
      bound = std::exp2(std::floor(std::log2(wanted)));
      Sort(list_, c, bound, series, rest);
    }
    Turn(rest, y, step, count, out.data() + first);
    // Rotations cost four roundings each, angles and sines a few more, sums one a term of a lane.
    const double turns = 6.0 * kBlock + 0.25 * static_cast<double>(rest.loss.size()) + 16;
    for (std::size_t k = 0; k < count; ++k) {
      const std::complex<double> s(c, step * static_cast<double>(first + k));
      std::complex<double> forward = 0;
      double backward = 0;
      for (std::size_t j = kTerms; j >= 2; --j) {
        forward = (forward + series.moment[j]) * s;
        backward += (j % 2 == 0 ? 1.0 : -1.0) * series.moment[j];
      }
      forward *= s;
      const double size = std::abs(s);
      out[first + k] += forward + s * backward - rest.mass + s * rest.other - p - s * gap;
      error[first + k] =
          size * (size + 1) * series.square * (2 * kMassError) +
          (rest.weights + rest.absolute_mass + size * rest.absolute_other) *
              (kMassError + kUnitRoundoff * (8 + static_cast<double>(rest.loss.size()))) +
          kUnitRoundoff * (turns * rest.weights + 4 * size * rest.weighted_loss) +
          size * list_.q_rounding + 1e-12 * (std::abs(p) + size * std::abs(gap));
    }
  }
}

}  // namespace sordino
