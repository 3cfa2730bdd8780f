#include "sordino/accounting/internal/allocation/lattice_sum.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <numbers>
#include <numeric>

#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

using Complex = std::complex<double>;

double TransformError(std::size_t size) {
  return kStageRounding * kUnitRoundoff * std::log2(static_cast<double>(size));
}

// Masses that sum to one, with the logarithm of what they were divided by.
struct Normalised {
  std::vector<double> mass;
  double log_total;
};

Normalised Normalise(std::vector<double> mass) {
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  for (double& m : mass) m /= total;
  return {std::move(mass), std::log(total)};
}

// The transform of a law, and a bound on the error of each of its values.
struct Spectrum {
  std::vector<Complex> values;
  double error;
};

Spectrum Transform(const std::vector<double>& mass, std::size_t size) {
  const auto n = static_cast<double>(size);
  std::vector<Complex> input(size, Complex(0, 0));
  Spectrum spectrum{std::vector<Complex>(size), 0};
  // The heaviest point is transformed by hand: the error is in proportion to the rest, which is
  // little where the spacing is wide.
  const auto heaviest =
      static_cast<std::size_t>(std::max_element(mass.begin(), mass.end()) - mass.begin());
  double light = 0;
  for (std::size_t j = 0; j < mass.size(); ++j) {
    if (j == heaviest) continue;
    input[j % size] += mass[j];
    light += mass[j];
  }
  const kissfft<double> forward(size, false);
  forward.transform(input.data(), spectrum.values.data());
  for (std::size_t k = 0; k < size; ++k) {
    const std::size_t turns = k * heaviest % size;  // sizes are far below 2^32
    spectrum.values[k] +=
        std::polar(mass[heaviest], -2 * std::numbers::pi * static_cast<double>(turns) / n);
  }
  // Besides the transform: the division, and the heaviest point (an angle up to 2 pi).
  spectrum.error = TransformError(size) * light * (1 + 1e-9) + 16 * kUnitRoundoff;
  return spectrum;
}

// log E[e^{d X}], rounded up.
double LogMoment(const LatticeLaw& law, const std::vector<double>& mass, double d) {
  const double last = law.Value(mass.size() - 1);
  const double reference = d > 0 ? last : law.offset;
  double sum = 0;
  for (std::size_t j = 0; j < mass.size(); ++j) {
    if (mass[j] > 0) sum += mass[j] * std::exp(d * (law.Value(j) - reference));
  }
  return std::log(sum) + d * reference + 1e-15 * (1 + std::abs(d * reference)) + 1e-11;
}

}  // namespace

LatticeSum SumOfCopies(const LatticeLaw& law, std::uint64_t count, const SumWindow& window,
                       bool size_biased) {
  const std::size_t size = window.size;
  const auto n = static_cast<double>(size);
  const auto times = static_cast<double>(count) - (size_biased ? 1 : 0);
  const Normalised plain = Normalise(law.mass);
  Normalised biased;
  if (size_biased) {
    std::vector<double> mass(law.mass.size());
    for (std::size_t j = 0; j < mass.size(); ++j) mass[j] = law.mass[j] * law.Value(j);
    biased = Normalise(std::move(mass));
  }
  const Spectrum f = Transform(plain.mass, size);
  const Spectrum g = size_biased ? Transform(biased.mass, size) : Spectrum{};

  LatticeSum sum;
  sum.spacing = law.spacing;
  sum.tilt = law.tilt;
  sum.log_scale = times * (law.log_scale + plain.log_total) +
                  (size_biased ? law.log_scale + biased.log_total : 0.0);
  sum.offset = static_cast<double>(count) * law.offset;
  sum.first = std::floor((window.start - sum.offset) / law.spacing);
  const double shift = std::fmod(sum.first, n);
  double power_error = 0;
  double moduli = 0;
  std::vector<Complex> product(size);
  for (std::size_t k = 0; k < size; ++k) {
    const double modulus = std::abs(f.values[k]);
    const double log_power = times * std::log(std::max(modulus, 1e-300));
    const double turn = 2 * std::numbers::pi * std::fmod(static_cast<double>(k) * shift, n) / n;
    const double phase = std::remainder(times * std::arg(f.values[k]), 2 * std::numbers::pi);
    const double front = size_biased ? std::abs(g.values[k]) : 1;
    const double front_error = size_biased ? g.error : 0;
    const double power = std::exp(log_power);
    const double largest = std::exp(times * std::log(modulus + f.error));
    const double rounding = 8 * kUnitRoundoff * (24 + std::abs(log_power) + 4 * times);
    power_error +=
        (front + front_error) * largest * (1 + rounding) - front * power * (1 - rounding);
    moduli += front * power;
    product[k] = std::polar(power, phase + turn);
    if (size_biased) product[k] *= g.values[k];
  }
  std::vector<Complex> output(size);
  const kissfft<double> inverse(size, true);
  inverse.transform(product.data(), output.data());
  sum.mass.resize(size);
  for (std::size_t k = 0; k < size; ++k) sum.mass[k] = output[k].real() / n;

  // No sum is smaller than all copies at their least, nor larger than all at their largest.
  const auto outside = [&](double d, double end) {
    return std::exp(times * LogMoment(law, plain.mass, d) +
                    (size_biased ? LogMoment(law, biased.mass, d) : 0.0) - d * end) *
           (1 + 1e-9);
  };
  const double low = sum.Value(0);
  const double high = sum.Value(size - 1);
  const double largest = static_cast<double>(count) * law.Value(law.mass.size() - 1);
  sum.error = (power_error + TransformError(size) * moduli) / n +
              (high < largest ? outside(window.exponent_above, high) : 0.0) +
              (low > sum.offset ? outside(-window.exponent_below, low) : 0.0);
  return sum;
}

}  // namespace sordino
