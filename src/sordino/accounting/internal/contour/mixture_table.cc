#include "sordino/accounting/internal/contour/mixture_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/accounting/internal/rounding.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Range of x in standard deviations: what lies outside is below 1e-21 of the tilted mass.
constexpr double kTailDeviations = 9.5;
constexpr std::size_t kMaxTable = 40000;
// A cut table ends this many cut widths after the cut.
constexpr double kCutDeviations = 36;

}  // namespace

MixtureTable::MixtureTable(const GaussianMixtureDensity& density, int refinement,
                           std::optional<Cutoff> cutoff)
    : density_(&density),
      cutoff_(cutoff),
      start_(-kTailDeviations * density.sigma()),
      spacing_(std::min(density.Scale() / 5, cutoff ? cutoff->width / 4 : kInfinity) / refinement),
      log_normaliser_(std::log(density.sigma()) + 0.5 * std::log(2 * std::numbers::pi)) {}

double MixtureTable::LogGaussian(std::size_t i) const {
  const double z = X(i) / density_->sigma();
  return -0.5 * z * z - log_normaliser_;
}

bool MixtureTable::Cover(double c) {
  // The tilt moves the mode to at most (c+1) s_num + c s_den. A cut ends the table earlier, where
  // chi is below 1e-300, provided that the tilted density falls there.
  double reach = (c + 1) * density_->max_numerator_shift() + c * density_->max_denominator_shift() +
                 kTailDeviations * density_->sigma();
  bool ends_at_cut = false;
  if (cutoff_ && cutoff_->position + kCutDeviations * cutoff_->width < reach) {
    reach = cutoff_->position + kCutDeviations * cutoff_->width;
    ends_at_cut = true;
  }
  const double wanted = (reach - start_) / spacing_ + 2;
  if (!(wanted < static_cast<double>(kMaxTable))) return false;
  const auto target = static_cast<std::size_t>(wanted);
  const GaussianMixtureDensity& d = *density_;
  for (std::vector<double>* column :
       {&log_numerator_, &log_denominator_, &numerator_hit_, &denominator_hit_, &numerator_slope_,
        &denominator_slope_, &log_cut_, &cut_slope_}) {
    column->reserve(target);
  }
  while (size() < target) {
    const double x = X(size());
    const GaussianMixtureDensity::Side numerator = d.Numerator(x);
    const GaussianMixtureDensity::Side denominator = d.Denominator(x);
    log_numerator_.push_back(numerator.log_ratio);
    log_denominator_.push_back(denominator.log_ratio);
    numerator_hit_.push_back(numerator.hit);
    denominator_hit_.push_back(denominator.hit);
    numerator_slope_.push_back(numerator.shift);
    denominator_slope_.push_back(denominator.shift);
    if (cutoff_) {
      const double z = (x - cutoff_->position) / cutoff_->width;
      const double upper_tail = 0.5 * std::erfc(z / std::numbers::sqrt2);
      log_cut_.push_back(z < 0 ? std::log1p(-0.5 * std::erfc(-z / std::numbers::sqrt2))
                               : std::log(upper_tail));
      const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
      cut_slope_.push_back(density / upper_tail / cutoff_->width);
    } else {
      log_cut_.push_back(0);
      cut_slope_.push_back(0);
    }
  }
  if (!ends_at_cut) return true;
  const std::size_t last = size() - 1;
  // The slope of the numerator and of the denominator rises to the shifts at most, and that of the
  // cut falls, so a slope that is negative with them stays negative to infinity.
  const double precision = 1 / (density_->sigma() * density_->sigma());
  const double steepest = precision * ((c + 1) * density_->max_numerator_shift() +
                                       c * density_->max_denominator_shift() - X(last)) -
                          cut_slope_[last];
  if (!(steepest < 0)) return false;
  double top = -kInfinity;
  for (std::size_t i = 0; i <= last; ++i) top = std::max(top, LogWeight(i, c) + LogGaussian(i));
  return LogWeight(last, c) + LogGaussian(last) < top - kDroppedWeight - 40;
}

double MixtureTable::LowestSlope(std::size_t i, double c) const {
  const double precision = 1 / (density_->sigma() * density_->sigma());
  return precision * (-X(i + 1) + (c + 1) * numerator_slope_[i] - c * denominator_slope_[i + 1]) -
         cut_slope_[i + 1];
}

double MixtureTable::HighestSlope(std::size_t i, double c) const {
  const double precision = 1 / (density_->sigma() * density_->sigma());
  return precision * (-X(i) + (c + 1) * numerator_slope_[i + 1] - c * denominator_slope_[i]) -
         cut_slope_[i];
}

double MixtureTable::LossWidth(std::size_t i) const {
  const double precision = 1 / (density_->sigma() * density_->sigma());
  const double slope = precision * (numerator_slope_[i] - denominator_slope_[i + 1]);
  const double a = Loss(i);
  const double b = Loss(i + 1);
  return std::max(slope * spacing_ * (1 - 1e-12),
                  b - a - 8 * kUnitRoundoff * (std::abs(a) + std::abs(b)));
}

double MixtureTable::HighestLossSlope(std::size_t i) const {
  const double precision = 1 / (density_->sigma() * density_->sigma());
  return precision * (numerator_slope_[i + 1] - denominator_slope_[i]);
}

double MixtureTable::LogMoment(double c) {
  if (!Cover(c)) return kInfinity;
  // M - 1 = E_{N(0, sigma^2)}[w - 1]: no cancellation where the loss is tiny.
  double sum = 0;
  double largest = 0;
  for (std::size_t i = 0; i < size(); ++i) largest = std::max(largest, LogWeight(i, c));
  if (largest < 500) {
    for (std::size_t i = 0; i < size(); ++i) {
      sum += std::exp(LogGaussian(i)) * std::expm1(LogWeight(i, c));
    }
    return std::log1p(sum * spacing_);
  }
  double top = -kInfinity;
  for (std::size_t i = 0; i < size(); ++i) top = std::max(top, LogWeight(i, c) + LogGaussian(i));
  for (std::size_t i = 0; i < size(); ++i) {
    sum += std::exp(LogWeight(i, c) + LogGaussian(i) - top);
  }
  return top + std::log(sum * spacing_);
}

}  // namespace sordino
