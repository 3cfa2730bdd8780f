#include "sordino/accounting/internal/contour/tilted_loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sordino/accounting/internal/contour/stride_search.h"
#include "sordino/accounting/internal/rounding.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Each layer is this much lower than the one inside it.
constexpr double kLayerRatio = 0.8;
constexpr double kLowestLayer = 1e-7;
constexpr int kStacks = 4;
constexpr double kNegligibleStack = 1e-3;
constexpr std::size_t kLanes = 8;
// The rotation recurrence starts anew from sines after so many turns.
constexpr std::size_t kRefresh = 64;

// sup over u >= v of |sin u / u|: the first side lobe has height 0.2172.
double SincMajorant(double v) {
  constexpr double kSideLobe = 0.21724;
  if (v < 1e-4) return 1 - v * v / 6 + v * v * v * v / 120;
  if (v < 2.6) return std::max(kSideLobe, std::sin(v) / v);
  return std::min(kSideLobe, 1 / v);
}

// The logarithm of E[e^{cL}] with its rounding, as 1 plus the sum of gaussian (e^{cL} - 1), which
// keeps the digits of a moment near one.
struct RoundedMoment {
  double value;
  double error;
};
RoundedMoment MomentNearOne(const MixtureTable& table, double c, std::size_t stride) {
  const double sigma = table.density().sigma();
  const double step = static_cast<double>(stride) * table.spacing();
  CarefulSum sum;
  double rounding = 0;
  for (std::size_t i = 0; i < table.size(); i += stride) {
    const double gaussian = std::exp(table.LogGaussian(i));
    const double log_weight = table.LogWeight(i, c);
    const double term = gaussian * std::expm1(log_weight);
    sum.Add(term);
    const double z = table.X(i) / sigma;
    rounding += std::abs(term) * (0.5 * z * z + 6) +
                gaussian * std::exp(log_weight) * 3 * std::abs(log_weight);
  }
  const double minus_one = sum.Total();
  return {std::log1p(minus_one * step), kUnitRoundoff *
                                            (rounding * step + 4e-1 * std::abs(minus_one * step)) /
                                            (1 + minus_one * step)};
}

}  // namespace

std::optional<TiltedLoss> TiltedLoss::FromTable(const MixtureTable& table, double c, double count,
                                                double max_frequency, std::size_t& strip) {
  const std::size_t n = table.size();
  const double sigma = table.density().sigma();
  const TiltedTable tilted(table, c);
  StrideSearch search(table, tilted, c, max_frequency);
  search.Run(strip);
  if (search.stride() < 1) return std::nullopt;

  TiltedLoss result;
  result.count_ = count;
  result.quadrature_error_ = std::exp(search.log_error());
  const auto stride = static_cast<std::size_t>(std::min(search.stride(), static_cast<double>(n)));
  std::vector<double> losses;
  double sum = 0;
  double dropped = 0;
  double rounding = 0;
  double largest_weight = 0;
  for (std::size_t i = 0; i < n; i += stride) {
    const double log_weight = table.LogWeight(i, c);
    largest_weight = std::max(largest_weight, log_weight);
    const double log_ratio = tilted.log_tilted[i] - tilted.top;
    const double w = std::exp(log_ratio);
    if (log_ratio < -kDroppedWeight) {
      dropped += w;
      continue;
    }
    result.weights_.push_back(w);
    losses.push_back(table.Loss(i));
    sum += w;
    // The exponent is a difference of terms of this size, each rounded.
    const double z = table.X(i) / sigma;
    rounding += w * (0.5 * z * z + 2 * std::abs(log_weight) + std::abs(c * table.Loss(i)) + 4);
  }
  result.exponent_rounding_ = kUnitRoundoff * rounding / sum;
  const double step = static_cast<double>(stride) * table.spacing();
  const double log_sum = tilted.top + std::log(sum * step);
  const RoundedMoment moment =
      largest_weight < 500
          ? MomentNearOne(table, c, stride)
          : RoundedMoment{log_sum, result.exponent_rounding_ +
                                       8 * kUnitRoundoff * (1 + std::abs(tilted.top))};
  result.log_moment_ = moment.value;
  // The theorem is about the sum over the whole line; the table has the terms that count. To the
  // left of -9.5 sigma the weight is at most that of the Gaussian, and E[e^{cL}] is at least one;
  // on the right the table ends 9.5 sigma after the mode or deep in the falling cut (Cover). Both
  // ends together are below 1e-20 of the sum.
  result.log_moment_error_ = moment.error + result.quadrature_error_ + dropped / sum + 1e-20;
  result.quadrature_error_ += dropped / sum + 1e-20;
  for (double& w : result.weights_) w /= sum;
  result.Centre(std::move(losses));
  result.BuildLayers(table, c, log_sum);
  return result;
}

TiltedLoss TiltedLoss::FromAtoms(const std::vector<LossAtom>& atoms, double c, double count) {
  TiltedLoss result;
  result.count_ = count;
  double top = -kInfinity;
  for (const LossAtom& atom : atoms) {
    if (atom.mass > 0) top = std::max(top, std::log(atom.mass) + c * atom.loss);
  }
  std::vector<double> losses;
  double sum = 0;
  double rounding = 0;
  for (const LossAtom& atom : atoms) {
    if (!(atom.mass > 0)) continue;
    const double exponent = std::log(atom.mass) + c * atom.loss - top;
    const double w = std::exp(exponent);
    result.weights_.push_back(w);
    losses.push_back(atom.loss);
    sum += w;
    rounding += w * (4 + std::abs(c * atom.loss) + std::abs(top));
  }
  result.exponent_rounding_ = kUnitRoundoff * rounding / sum;
  result.log_moment_ = top + std::log(sum);
  result.log_moment_error_ = result.exponent_rounding_ + 8 * kUnitRoundoff * (1 + std::abs(top));
  for (double& w : result.weights_) w /= sum;
  result.Centre(std::move(losses));
  return result;
}

void TiltedLoss::Centre(std::vector<double> losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) mean_ += weights_[i] * losses[i];
  offsets_ = std::move(losses);
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    offsets_[i] -= mean_;
    variance_ += weights_[i] * offsets_[i] * offsets_[i];
    mean_deviation_ += weights_[i] * std::abs(offsets_[i]);
  }
}

void TiltedLoss::BuildLayers(const MixtureTable& table, double c, double log_scale) {
  // Lower bounds of the tilted density of the loss, cell by cell.
  const std::size_t n = table.size();
  const double sigma = table.density().sigma();
  const double d = table.spacing();
  std::vector<double> height(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const double left = table.LogWeight(i, c) + table.LogGaussian(i);
    const double right = table.LogWeight(i + 1, c) + table.LogGaussian(i + 1);
    if (std::max(left, right) - log_scale < -40 - std::log(sigma)) continue;
    const double lowest = table.LowestSlope(i, c);
    const double highest = table.HighestSlope(i, c);
    const double from_left = left + std::min(0.0, lowest) * d;
    const double from_right = right - std::max(0.0, highest) * d;
    const double slope = table.HighestLossSlope(i);
    if (!(slope > 0)) continue;
    height[i] = std::exp(std::max(from_left, from_right) - log_scale) / slope;
  }
  std::vector<double> width(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    if (height[i] > 0) width[i] = table.LossWidth(i);
  }
  // The first stack stands on the highest cell; the others, for a density with several humps, on
  // the heaviest cell that is still free.
  for (int stack = 0; stack < kStacks; ++stack) {
    std::size_t base = 0;
    double best = 0;
    double free_mass = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const double mass = height[i] * width[i];
      const double merit = stack == 0 ? height[i] : mass;
      free_mass += mass;
      if (merit > best) {
        best = merit;
        base = i;
      }
    }
    if (free_mass < kNegligibleStack) break;
    StackLayers(base, width, height);
  }
}

void TiltedLoss::StackLayers(std::size_t peak, const std::vector<double>& widths,
                             std::vector<double>& height) {
  // Nested intervals around the peak, each with the lowest height inside it: the density is at
  // least the sum over j of (level_j - level_{j+1}) on interval j.
  struct Step {
    double level;
    double width;
  };
  std::vector<Step> steps;
  std::size_t left = peak;
  std::size_t right = peak;
  double level = height[peak];
  double width = widths[peak];
  while (true) {
    const double to_left = left > 0 ? height[left - 1] : 0;
    const double to_right = right + 1 < height.size() ? height[right + 1] : 0;
    const double next = std::max(to_left, to_right);
    if (!(next > kLowestLayer * height[peak])) break;
    if (next < kLayerRatio * (steps.empty() ? height[peak] : steps.back().level)) {
      steps.push_back({level, width});
    }
    if (to_left >= to_right) {
      width += widths[--left];
    } else {
      width += widths[++right];
    }
    level = std::min(level, next);
  }
  steps.push_back({level, width});
  for (std::size_t j = 0; j < steps.size(); ++j) {
    const double below = j + 1 < steps.size() ? steps[j + 1].level : 0;
    layers_.push_back({(steps[j].level - below) * steps[j].width, steps[j].width});
  }
  std::fill(height.begin() + static_cast<std::ptrdiff_t>(left),
            height.begin() + static_cast<std::ptrdiff_t>(right) + 1, 0.0);
}

void TiltedLoss::Characteristic(double step, bool recurrence,
                                std::vector<std::complex<double>>& out) const {
  const std::size_t n = weights_.size();
  std::vector<double> re(weights_);
  std::vector<double> im(n, 0.0);
  std::vector<double> turn_re(n);
  std::vector<double> turn_im(n);
  for (std::size_t i = 0; recurrence && i < n; ++i) {
    turn_re[i] = std::cos(step * offsets_[i]);
    turn_im[i] = std::sin(step * offsets_[i]);
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!recurrence || k % kRefresh == 0) {
      const double y = step * static_cast<double>(k);
      for (std::size_t i = 0; i < n; ++i) {
        re[i] = weights_[i] * std::cos(y * offsets_[i]);
        im[i] = weights_[i] * std::sin(y * offsets_[i]);
      }
    }
    // Eight partial sums: an eighth of the rounding, and the compiler can use its vectors.
    std::array<double, kLanes> sum_re = {};
    std::array<double, kLanes> sum_im = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        sum_re[lane] += re[i + lane];
        sum_im[lane] += im[i + lane];
      }
    }
    for (; i < n; ++i) {
      sum_re[0] += re[i];
      sum_im[0] += im[i];
    }
    out[k] = {std::accumulate(sum_re.begin(), sum_re.end(), 0.0),
              std::accumulate(sum_im.begin(), sum_im.end(), 0.0)};
    if (recurrence && (k + 1) % kRefresh != 0) {
      for (std::size_t j = 0; j < n; ++j) {
        const double turned = re[j] * turn_re[j] - im[j] * turn_im[j];
        im[j] = re[j] * turn_im[j] + im[j] * turn_re[j];
        re[j] = turned;
      }
    }
  }
}

double TiltedLoss::CharacteristicError(double y, bool recurrence) const {
  // Summation in kLanes chains of terms whose moduli sum to one; the rounding of the angle, of each
  // sine and product; with the recurrence, one complex product (4 roundings) a turn.
  const double sums = static_cast<double>(weights_.size()) / kLanes + 2 * kLanes;
  return quadrature_error_ + 2 * exponent_rounding_ +
         kUnitRoundoff * (sums + 8 + 2 * y * mean_deviation_ + (recurrence ? 6.0 * kRefresh : 0.0));
}

double TiltedLoss::LogModulusBound(double y) const {
  double loss = 0;
  for (const Layer& layer : layers_) {
    loss += layer.mass * (1 - SincMajorant(0.5 * y * layer.width));
  }
  // The layers were computed in floating point from certified values; a part in 10^9 covers that.
  return std::log1p(-std::min(loss * (1 - 1e-9), 1 - 1e-12));
}

}  // namespace sordino
