#include "sordino/accounting/internal/grid/composed_grid.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <numbers>

#include "sordino/accounting/internal/contour/tilt_search.h"
#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

// Mass left out of a pair's range, relative to delta: e^-kRangeMargin.
constexpr double kRangeMargin = 26;
// Tilted mass left out of the window: e^-kWindowMargin.
constexpr double kWindowMargin = 28;
constexpr std::size_t kMaxPairs = 256;
// Losses that are closer than this are one value.
constexpr double kOneValue = 1e-6;
// The tilt may shrink the standard deviation of the loss to this share of what it was.
constexpr double kMinDeviation = 0.1;
// kSpread: the chance that the grid's errors add up to more than is allowed for, e^-kExceedMargin
// of delta.
constexpr double kExceedMargin = 9;

std::size_t TransformSize(double wanted) {
  // Powers of two times 1, 3 or 5 halves and quarters: within a quarter of what is wanted.
  std::size_t size = 64;
  while (static_cast<double>(size) < wanted) size *= 2;
  for (const std::size_t candidate : {size / 8 * 5, size / 4 * 3}) {
    if (static_cast<double>(candidate) >= wanted) return candidate;
  }
  return size;
}

}  // namespace

ComposedGrid::ComposedGrid(std::span<const CountedPair> pairs, Bound bound, Effort effort)
    : bound_(bound),
      resolution_(effort == Effort::kQuick ? kQuick : kFull),
      groups_(GridStepsOf(pairs, log_survival_)) {}

bool ComposedGrid::TooMany() const { return groups_.size() > kMaxPairs; }

bool ComposedGrid::Compose(double log_delta_guess, const Objective& objective) {
  log_delta_ = log_delta_guess;
  double total = 0;
  for (const GridStep& group : groups_) total += group.count;
  const double log_lost =
      log_delta_guess - kRangeMargin - std::log(total * static_cast<double>(groups_.size()));
  if (!ChooseRanges(groups_, log_lost)) return false;
  const double h = 1e-3;
  const double sd = std::sqrt(std::max(2 * LogMoment(h) / (h * (1 + h)), 1e-300));
  tilt_ = MinimiseOverTilt([&](double c) { return objective(LogMoment(c), c); },
                           std::sqrt(std::max(1.0, -2 * log_delta_guess)) / sd);
  // Where the loss is bounded the best tilt is infinite, and useless: all mass would sit on the
  // largest loss.
  const double least = kMinDeviation * Deviation(0);
  while (tilt_ > 1e-9 && Deviation(tilt_) < least) tilt_ *= 0.7;
  const double value = objective(LogMoment(tilt_), tilt_);
  if (!std::isfinite(value)) return false;
  return Build();
}

ComposedGrid::Reading ComposedGrid::Read(double epsilon) const {
  if (bound_ != Bound::kSpread) return ReadGrid(epsilon);
  // delta(epsilon) >= (delta of the grid at epsilon + t) - Pr[the errors exceed t].
  Reading shifted = ReadGrid(epsilon + spread_);
  const double share = std::exp(log_exceed_ - shifted.log_delta);
  shifted.log_delta = share < 1 ? shifted.log_delta + std::log1p(-share) : -kInfinity;
  return shifted;
}

ComposedGrid::Reading ComposedGrid::ReadGrid(double epsilon) const {
  const double ratio = std::exp(-tilt_ * spacing_);
  const double ratio_one = std::exp(-(tilt_ + 1) * spacing_);
  const double position = (epsilon - origin_) / spacing_;
  const double start = std::max(0.0, std::floor(position) + 1);
  double sum = 0;
  if (start < static_cast<double>(mass_.size())) {
    auto j = static_cast<std::size_t>(start);
    const double distance = origin_ + start * spacing_ - epsilon;
    double weight = std::exp(-tilt_ * distance);
    double weight_one = std::exp(-(tilt_ + 1) * distance);
    for (; j < mass_.size() && weight > 1e-18; ++j) {
      sum += mass_[j] * (weight - weight_one);
      weight *= ratio;
      weight_one *= ratio_one;
    }
  }
  // Recurrences and sums are relative; the transforms' rounding is spread over all points.
  const double spread = std::sqrt(1 / -std::expm1(-2 * tilt_ * spacing_));
  double error = 1e-9 * kUnitRoundoff + transform_error_ * spread + 1e-12 * std::max(sum, 0.0);
  const double log_front = log_moment_ - tilt_ * epsilon;
  const double front_error =
      log_moment_error_ + 8 * kUnitRoundoff * (std::abs(log_moment_) + std::abs(tilt_ * epsilon));
  error += above_window_;
  const double infinite = -std::expm1(log_survival_);
  if (bound_ == Bound::kUpper) {
    if (epsilon > last_loss()) error += 1;
    // Losses between epsilon and the window were folded up, where their weight is less.
    if (epsilon < origin_) error += below_window_;
    const double share = error / (std::max(0.0, sum) + error);
    const double finite = log_front + front_error + std::log(std::max(0.0, sum) + error + 1e-18);
    if (infinite == 0) return {std::min(0.0, finite), share};
    const double all = std::exp(std::min(finite, 1.0)) + infinite * (1 + 1e-12);
    return {std::min(0.0, std::log(all)), share};
  }
  error += below_window_;
  const double rest = sum - error;
  const double finite = rest > 0 ? log_front - front_error + std::log(rest) : -kInfinity;
  const double share = rest > 0 ? error / sum : 1;
  if (infinite == 0) return {finite, share};
  return {std::log(std::exp(finite) + infinite * (1 - 1e-12)), share};
}

bool ComposedGrid::Build() {
  double mean = 0;
  double variance = 0;
  double steps = 0;
  double largest_range = 0;
  for (GridStep& group : groups_) {
    TrimLowEnd(group);
    const LossNodes::Moments m = group.nodes.Tilted(tilt_);
    mean += group.count * m.mean;
    variance += group.count * m.variance;
    steps += group.count;
    const auto [low, high] = std::minmax_element(group.nodes.loss.begin(), group.nodes.loss.end());
    largest_range = std::max(largest_range, *high - *low);
  }
  const double sd = std::max(std::sqrt(variance), 1e-12 * std::abs(mean));
  // A deviation that underflows is not that of one value.
  if (!(sd > 0)) return largest_range < kOneValue && BuildDegenerate(mean);
  const double base = LogMoment(tilt_);
  const double above = WindowReach(base, mean, sd, 1);
  const double below = WindowReach(base, mean, sd, -1);
  // Spacing: the two-sided error of epsilon is about c T h^2 / 12.
  double h =
      std::sqrt(12 * resolution_.tolerance * std::max(std::abs(mean), 0.1 * sd) / (tilt_ * steps));
  h = std::min(h, sd / resolution_.cells_per_deviation);
  h = std::max(
      {h, (above + below) / (0.9 * resolution_.max_window), largest_range / resolution_.max_cells});
  AlignSpacing(above + below, h);
  // Losses that the tilt cannot resolve leave no window; nothing is certified then.
  if (!(h > 0) || !((above + below) / h < 16 * resolution_.max_window)) return false;
  if (!(largest_range / h < 16 * resolution_.max_cells)) return false;
  spacing_ = h;
  log_exceed_ = log_delta_ - kExceedMargin;
  spread_ = h * std::sqrt(-0.5 * log_exceed_ * steps) + 0.126 * steps * h * h;
  const std::size_t size = TransformSize((above + below) / h + 8);
  if (!Transform(size, mean - below)) return false;
  BoundWindow(origin_, last_loss(), sd);
  return true;
}

bool ComposedGrid::BuildDegenerate(double mean) {
  spacing_ = std::max(1e-9, 1e-9 * std::abs(mean));
  for (GridStep& group : groups_) group.spec.offset = group.nodes.loss[0];
  if (!Transform(64, mean - 32 * spacing_)) return false;
  above_window_ = below_window_ = 0;
  return true;
}

void ComposedGrid::TrimLowEnd(GridStep& group) const {
  const double scale = group.nodes.LogMoment(tilt_);
  const double goal = -kWindowMargin - 6 - std::log(group.count);
  for (DensityPiece& piece : group.pair.pieces) {
    const LossDensity& d = *piece.density;
    const auto negligible = [&](double x) {
      const double below = d.MassBelow(x);
      return !(below > 0) || std::log(below) + tilt_ * d.Loss(x) - scale < goal;
    };
    if (piece.clip_low > -1e300 || !negligible(piece.low_x)) continue;
    double low = piece.low_x;
    double high = piece.high_x;
    for (int i = 0; i < 40; ++i) {
      const double middle = 0.5 * (low + high);
      (negligible(middle) ? low : high) = middle;
    }
    piece.low_x = low;
  }
  group.nodes = SampleNodes(group.pair);
}

double ComposedGrid::WindowReach(double base, double mean, double sd, int side) const {
  double reach = kInfinity;
  for (const double deviations : {0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 14.0}) {
    const double d = deviations / sd;
    const double bound = (LogMoment(tilt_ + side * d) - base - side * d * mean + kWindowMargin) / d;
    if (std::isfinite(bound)) reach = std::min(reach, bound);
  }
  return std::max(reach, 2 * sd);
}

void ComposedGrid::AlignSpacing(double window, double& h) {
  bool aligned = false;
  for (GridStep& group : groups_) {
    const std::optional<double> gap = ChooseOffset(group);
    if (aligned || !gap) continue;
    if (*gap >= h) {
      h = *gap / std::ceil(*gap / h);
      aligned = true;
    } else if (*gap > h / 8 && window / *gap < resolution_.max_window) {
      h = *gap;
      aligned = true;
    }
  }
}

bool ComposedGrid::Transform(std::size_t size, double window_start) {
  using Complex = std::complex<double>;
  const auto n = static_cast<double>(size);
  const std::optional<CircleProduct> found =
      ProductOnCircle(groups_, {spacing_, tilt_, size, bound_});
  if (!found) return false;
  log_moment_ = found->log_mass;
  log_moment_error_ = found->log_mass_error;
  log_survival_ += found->log_survival;
  const double start_index = std::floor((window_start - found->offset) / spacing_);
  origin_ = found->offset + start_index * spacing_;
  double energy = 0;
  double error_energy = 0;
  const double shift = std::fmod(start_index, n);
  std::vector<Complex> product(size);
  for (std::size_t k = 0; k < size; ++k) {
    const double log_modulus = found->log_modulus[k];
    const double phase = found->phase[k];
    const double modulus = std::exp(log_modulus);
    // Moves the window's first point to index zero.
    const double turn = 2 * std::numbers::pi * std::fmod(static_cast<double>(k) * shift, n) / n;
    product[k] = std::polar(modulus, phase + turn);
    energy += modulus * modulus;
    const double largest = std::exp(found->log_largest[k]);
    const double rounding =
        modulus * kUnitRoundoff * 8 * (8 + std::abs(log_modulus) + std::abs(phase));
    error_energy += std::pow(largest - modulus + rounding, 2);
  }
  const kissfft<double> inverse(size, true);
  std::vector<Complex> output(size);
  inverse.transform(product.data(), output.data());
  mass_.resize(size);
  for (std::size_t k = 0; k < size; ++k) mass_[k] = output[k].real() / n;
  transform_error_ = std::sqrt(error_energy / n) +
                     kStageRounding * kUnitRoundoff * std::log2(n) * std::sqrt(energy / n);
  return true;
}

void ComposedGrid::BoundWindow(double low, double high, double sd) {
  double log_above = 0;
  double log_below = 0;
  for (const double deviations : {0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 14.0}) {
    const double d = deviations / sd;
    double up = -d * high;
    double down = d * low;
    for (const GridStep& group : groups_) {
      up += group.count * LogMomentOf(group.grid, group.spec, d);
      down += group.count * LogMomentOf(group.grid, group.spec, -d);
    }
    if (std::isfinite(up)) log_above = std::min(log_above, up);
    if (std::isfinite(down)) log_below = std::min(log_below, down);
  }
  above_window_ = std::exp(log_above) * (1 + 1e-9);
  below_window_ = std::exp(log_below) * (1 + 1e-9);
}

}  // namespace sordino
