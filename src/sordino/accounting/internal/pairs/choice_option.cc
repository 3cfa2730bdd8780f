#include "sordino/accounting/internal/pairs/choice_option.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

constexpr double kMaxPairCells = 1 << 20;

}  // namespace

double ChoiceOption::Steps() const {
  double steps = 0;
  for (const GridStep& one : steps_) steps += one.count;
  return steps;
}

std::optional<double> ChoiceOption::ChooseOffsets() {
  std::optional<double> gap;
  for (GridStep& one : steps_) {
    const std::optional<double> own = ChooseOffset(one);
    if (!gap) gap = own;
  }
  return gap;
}

bool ChoiceOption::Transform(const GridCircle& circle) {
  for (const GridStep& one : steps_) {
    const auto [low, high] = std::minmax_element(one.nodes.loss.begin(), one.nodes.loss.end());
    if (!((*high - *low) / circle.spacing < kMaxPairCells)) return false;
  }
  const std::optional<CircleProduct> product = ProductOnCircle(steps_, circle);
  if (!product) return false;
  log_mass_ = product->log_mass;
  log_mass_error_ = product->log_mass_error;
  log_survival_ += product->log_survival;
  Finish(circle, *product);
  return true;
}

// Losses were moved by a cell at most where offsets were put on the grid.
double ChoiceOption::CircleMoment(double d, double spacing) const {
  double sum = std::abs(d) * spacing;
  for (const GridStep& one : steps_) sum += one.count * LogMomentOf(one.grid, one.spec, d);
  return sum;
}

double ChoiceOption::infinite() const { return -std::expm1(log_survival_); }

// All offsets together are some cells and a rest: kUpper splits it between two points such that
// both masses are kept, kLower leaves it out.
void ChoiceOption::Finish(const GridCircle& circle, const CircleProduct& product) {
  const double offset = product.offset;
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
    const double modulus = std::exp(product.log_modulus[k]);
    transform_[k] = std::polar(modulus, product.phase[k] + turn) *
                    (low + high * std::polar(1.0, angle)) / (low + high);
    const double rounding =
        modulus * kUnitRoundoff * 8 * (16 + std::abs(product.log_modulus[k]) + 4 * counts);
    transform_error_ =
        std::max(transform_error_, std::exp(product.log_largest[k]) - modulus + rounding);
  }
}

}  // namespace sordino
