#include "sordino/accounting/internal/pairs/outcomes.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "sordino/accounting/internal/renyi/renyi_moments.h"

namespace sordino {
namespace {

// Beyond this the atoms of a discrete Gaussian are too many; Renyi accounting serves there.
constexpr double kMaxDiscreteSigma = 4000;
constexpr double kMaxShift = 100000;

// Integer-valued noise; the record moves the answer by `shift`.
// P = (1-q) f(x) + q f(x - shift) against Q = (1-r) f(x) + r f(x + shift), for x in -reach..reach;
// log_ratio(x, t) is log f(x - t) - log f(x).
template <typename LogMass, typename LogRatio>
Outcomes ShiftedOutcomes(LogMass log_mass, LogRatio log_ratio, std::int64_t reach,
                         std::int64_t shift, double q, double r) {
  Outcomes outcomes;
  for (std::int64_t x = -reach; x <= reach; ++x) {
    const double with = SampledLoss(q, log_ratio(x, shift));
    const double without = SampledLoss(r, log_ratio(x, -shift));
    outcomes.push_back({log_mass(x) + with, log_mass(x) + without, with - without});
  }
  return outcomes;
}

}  // namespace

LossPair FromOutcomes(const Outcomes& outcomes) {
  LossPair pair;
  for (const Outcome& o : outcomes) {
    const double mass = std::exp(o.log_p);
    if (!(mass > 0)) {
      if (o.log_p == -kInfinity) pair.absent_q += std::exp(o.log_q);
      continue;
    }
    if (o.log_q > -kInfinity) {
      pair.atoms.push_back({o.loss, mass});
    } else {
      pair.infinite_mass += mass;
    }
  }
  return pair;
}

Outcomes Swapped(Outcomes outcomes) {
  for (Outcome& o : outcomes) {
    std::swap(o.log_p, o.log_q);
    o.loss = -o.loss;
  }
  return outcomes;
}

Outcomes ApproximateOutcomes(double epsilon, double delta) {
  const double log_high = std::log1p(-delta) - std::log1p(std::exp(-epsilon));
  const double log_low = log_high - epsilon;
  Outcomes outcomes = {OutcomeOf(log_low, epsilon), OutcomeOf(log_high, -epsilon)};
  if (delta > 0) {
    outcomes.push_back({std::log(delta), -kInfinity, kInfinity});
    outcomes.push_back({-kInfinity, std::log(delta), -kInfinity});
  }
  return outcomes;
}

std::optional<Outcomes> DiscreteGaussianOutcomes(double sigma, double sensitivity, double q,
                                                 double r) {
  if (sigma > kMaxDiscreteSigma || sensitivity > kMaxShift) return std::nullopt;
  const auto shift = static_cast<std::int64_t>(sensitivity);
  // Beyond 38.5 sigma of both centres the probabilities are below 1e-300.
  const auto reach = static_cast<std::int64_t>(std::ceil(38.5 * sigma)) + 2 + shift;
  double total = 0;
  const auto exponent = [&](std::int64_t x) {
    const double z = static_cast<double>(x) / sigma;
    return -0.5 * z * z;
  };
  for (std::int64_t x = reach; x >= 1; --x) total += 2 * std::exp(exponent(x));
  const double log_total = std::log1p(total);
  const auto log_ratio = [&](std::int64_t x, std::int64_t t) {
    const auto moved = static_cast<double>(t);
    return moved * (2 * static_cast<double>(x) - moved) / (2 * sigma * sigma);
  };
  return ShiftedOutcomes([&](std::int64_t x) { return exponent(x) - log_total; }, log_ratio, reach,
                         shift, q, r);
}

// f(x) ~ a^|x|: beyond the shifts every ratio is constant, so that the two tails are one outcome
// each.
std::optional<Outcomes> DiscreteLaplaceOutcomes(double scale, double sensitivity, double q,
                                                double r) {
  if (sensitivity > kMaxShift) return std::nullopt;
  const auto shift = static_cast<std::int64_t>(sensitivity);
  const double log_one_plus = std::log1p(std::exp(-1 / scale));
  const double log_norm = std::log(-std::expm1(-1 / scale)) - log_one_plus;
  const auto log_mass = [&](std::int64_t x) {
    return log_norm - static_cast<double>(std::abs(x)) / scale;
  };
  const auto log_ratio = [&](std::int64_t x, std::int64_t t) {
    return static_cast<double>(std::abs(x) - std::abs(x - t)) / scale;
  };
  Outcomes outcomes = ShiftedOutcomes(log_mass, log_ratio, shift - 1, shift, q, r);
  // x >= shift and x <= -shift: f sums to e^{-shift/scale} / (1 + e^{-1/scale}).
  const double tail = -sensitivity / scale - log_one_plus;
  const double up = sensitivity / scale;
  for (const double side : {up, -up}) {
    const double with = SampledLoss(q, side);
    const double without = SampledLoss(r, -side);
    outcomes.push_back({tail + with, tail + without, with - without});
  }
  return outcomes;
}

// Poisson sampling of a pair of outcomes: ((1-q)B + qA, B).
Outcomes SampleOutcomes(Outcomes outcomes, double q) {
  for (Outcome& o : outcomes) {
    if (o.log_q == -kInfinity) {
      o.log_p += std::log(q);
    } else {
      o.loss = o.log_p == -kInfinity ? std::log1p(-q) : SampledLoss(q, o.loss);
      o.log_p = o.log_q + o.loss;
    }
  }
  return outcomes;
}

}  // namespace sordino
