#include "sordino/accounting/internal/pairs/adaptive_choice.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <kissfft/kissfft.hh>
#include <optional>
#include <utility>

#include "sordino/accounting/internal/contour/tilt_search.h"
#include "sordino/accounting/internal/pairs/choice_option.h"
#include "sordino/accounting/internal/rounding.h"

namespace sordino {
namespace {

using Complex = std::complex<double>;

// Mass left out of a pair's range, relative to delta, and of the circle, relative to all:
// e^-margin.
constexpr double kLostMargin = 26;
constexpr double kCircleMargin = 30;
// The tilt may shrink the standard deviation of the loss to this share of what it was.
constexpr double kLeastDeviation = 0.1;
// Transforms times points, and the points of one circle.
constexpr double kMaxWork = 1 << 22;
constexpr double kLeastPoints = 1 << 11;
constexpr double kMostPoints = 1 << 16;
constexpr double kMostQuickPoints = 1 << 12;
constexpr double kDeviations[] = {0.5, 1, 2, 4, 6, 9, 14};

struct Stage {
  std::vector<ChoiceOption> options;
  std::uint64_t count = 1;
  double log_mass = 0;  // the largest of the options
};

class AdaptiveGrid {
 public:
  AdaptiveGrid(const AdaptiveComposition& composition, Bound bound, Effort effort)
      : quick_(effort == Effort::kQuick) {
    circle_.bound = bound;
    for (const ChosenSteps& steps : composition.choices) {
      Stage stage;
      for (const std::vector<CountedPair>& option : steps.options)
        stage.options.emplace_back(option);
      stage.count = steps.count;
      if (!stage.options.empty()) stages_.push_back(std::move(stage));
    }
    // The others are a choice of one option that is made first, so last in the induction.
    others_ = stages_.size();
    stages_.push_back({{ChoiceOption(composition.others)}, 1, 0});
  }

  // False: nothing is certified. `objective` of (log moment, c) is minimised to choose the tilt.
  bool Compose(double log_delta, Interval epsilons,
               const std::function<double(double, double)>& objective) {
    log_delta_ = log_delta;
    epsilons_ = epsilons;
    double states = 1;
    double steps = 0;
    double most = 0;
    for (std::size_t s = 0; s < others_; ++s) {
      const auto count = static_cast<double>(stages_[s].count);
      states *= count + 1;
      most += static_cast<double>(stages_[s].options.size());
    }
    const double transforms = states * (1 + 0.5 * (most + 1));
    if (transforms * kLeastPoints > kMaxWork) return false;
    for (const Stage& stage : stages_) {
      double longest = 0;
      for (const ChoiceOption& option : stage.options) longest = std::max(longest, option.Steps());
      steps += static_cast<double>(stage.count) * longest;
    }
    const double log_lost = log_delta - kLostMargin - std::log(steps + 1) - std::log(most + 1);
    for (Stage& stage : stages_) {
      for (ChoiceOption& option : stage.options) {
        if (!option.ChooseRanges(log_lost)) return false;
      }
    }
    if (!ChooseTilt(objective) || !ChooseCircle(steps, transforms)) return false;
    for (Stage& stage : stages_) {
      stage.log_mass = -kInfinity;
      for (ChoiceOption& option : stage.options) {
        if (!option.Transform(circle_)) return false;
        stage.log_mass = std::max(stage.log_mass, option.log_mass());
      }
    }
    BoundCircle();
    GoThroughChoices();
    return true;
  }

  double spacing() const { return circle_.spacing; }
  // Bounds on delta over e^log_delta at epsilon = i * spacing, of the pairs on the grid.
  double Above(std::int64_t i) const { return At(i, 1); }
  double Below(std::int64_t i) const { return At(i, -1); }

 private:
  template <typename Of>
  double OverStages(Of of) const {
    double sum = 0;
    for (const Stage& stage : stages_) {
      double largest = -kInfinity;
      for (const ChoiceOption& option : stage.options)
        largest = std::max(largest, of(stage, option));
      sum += static_cast<double>(stage.count) * largest;
    }
    return sum;
  }
  double LogMoment(double c) const {
    return OverStages(
        [c](const Stage&, const ChoiceOption& option) { return option.LogMoment(c); });
  }
  double Deviation(double c) const {
    return std::sqrt(
        OverStages([c](const Stage&, const ChoiceOption& option) { return option.Variance(c); }));
  }

  bool ChooseTilt(const std::function<double(double, double)>& objective) {
    const double sd = Deviation(0);
    if (!(sd > 0)) return false;
    double& tilt = circle_.tilt;
    tilt = MinimiseOverTilt([&](double c) { return objective(LogMoment(c), c); },
                            std::sqrt(std::max(1.0, -2 * log_delta_)) / sd);
    while (tilt > 1e-9 && Deviation(tilt) < kLeastDeviation * sd) tilt *= 0.7;
    deviation_ = Deviation(tilt);
    return std::isfinite(objective(LogMoment(tilt), tilt)) && deviation_ > 0;
  }

  bool ChooseCircle(double steps, double transforms) {
    const double base = LogMoment(circle_.tilt);
    double high = kInfinity;
    double low = -kInfinity;
    for (const double deviations : kDeviations) {
      const double d = deviations / deviation_;
      const double up = (LogMoment(circle_.tilt + d) - base + kCircleMargin) / d;
      const double down = -(LogMoment(circle_.tilt - d) - base + kCircleMargin) / d;
      if (std::isfinite(up)) high = std::min(high, up);
      if (std::isfinite(down)) low = std::max(low, down);
    }
    if (!std::isfinite(high) || !std::isfinite(low)) return false;
    const double length = high - low + epsilons_.upper - epsilons_.lower;
    const double most =
        std::clamp(kMaxWork / transforms, kLeastPoints, quick_ ? kMostQuickPoints : kMostPoints);
    // The error of epsilon is about c T h^2 / 12 on either side.
    const double tolerance = quick_ ? 1e-3 : 1e-6;
    double h = std::sqrt(12 * tolerance * std::max(epsilons_.upper, 0.1 * deviation_) /
                         (circle_.tilt * steps));
    h = std::max(std::min(h, deviation_ / (quick_ ? 16 : 128)), length / (0.9 * most));
    std::optional<double> gap;
    for (Stage& stage : stages_) {
      for (ChoiceOption& option : stage.options) {
        const std::optional<double> one = option.ChooseOffsets();
        if (!gap) gap = one;
      }
    }
    // From below, atoms that are not on the grid are rounded down.
    if (gap && circle_.bound == Bound::kLower) h = length / (0.9 * most);
    if (gap && *gap >= h) h = *gap / std::ceil(*gap / h);
    double points = kLeastPoints;
    while (points < length / h + 16) points *= 2;
    circle_.points = static_cast<std::size_t>(points);
    circle_.spacing = h;
    first_ = static_cast<std::int64_t>(std::floor((epsilons_.lower - high) / h)) - 2;
    return h > 0 && points <= 2 * most && std::abs(static_cast<double>(first_)) < 1e15;
  }

  // What the losses beyond the circle can add, for the epsilons that are asked about.
  void BoundCircle() {
    const double start = static_cast<double>(first_) * circle_.spacing;
    const double length = static_cast<double>(circle_.points) * circle_.spacing;
    double above = 0;
    double below = 0;
    for (const double deviations : kDeviations) {
      const double d = deviations / deviation_;
      const auto moment = [&](double at) {
        return OverStages([&](const Stage& stage, const ChoiceOption& option) {
          return option.CircleMoment(at, circle_.spacing) + option.log_mass() - stage.log_mass;
        });
      };
      const double reach = epsilons_.lower - 2 * circle_.spacing - start;
      const double depth = epsilons_.upper + 4 * circle_.spacing - start - length;
      above = std::min(above, moment(d) - d * reach);
      below = std::min(below, moment(-d) + d * depth);
    }
    beyond_ = std::exp(LogChernoffConstant(circle_.tilt)) * (std::exp(above) + std::exp(below)) *
              (1 + 1e-9);
  }

  struct State {
    std::vector<Complex> transform;
    double norm = 0;   // of the values
    double error = 0;  // of each of them
  };

  State StateOf(const std::vector<double>& values, double error, const kissfft<double>& forward) {
    State state{std::vector<Complex>(values.size()), 0, error};
    std::vector<Complex> input(values.begin(), values.end());
    forward.transform(input.data(), state.transform.data());
    for (const double value : values) state.norm += value * value;
    state.norm = std::sqrt(state.norm);
    return state;
  }

  // Raises `best` to what each option of the stage makes of the state; its error.
  double RaiseByStage(const State& state, const Stage& stage, const kissfft<double>& inverse,
                      std::vector<double>& best) const {
    const auto n = static_cast<double>(circle_.points);
    double error = 0;
    std::vector<Complex> product(circle_.points);
    std::vector<Complex> values(circle_.points);
    for (std::size_t o = 0; o < stage.options.size(); o += 2) {
      // Two real results as one complex one.
      const ChoiceOption& first = stage.options[o];
      const ChoiceOption* second = o + 1 < stage.options.size() ? &stage.options[o + 1] : nullptr;
      const double share = std::exp(first.log_mass() - stage.log_mass) / n;
      const double other = second ? std::exp(second->log_mass() - stage.log_mass) / n : 0;
      for (std::size_t k = 0; k < circle_.points; ++k) {
        Complex factor = share * first.transform()[k];
        if (second != nullptr) factor += Complex(0, other) * second->transform()[k];
        product[k] = state.transform[k] * factor;
      }
      inverse.transform(product.data(), values.data());
      for (std::size_t k = 0; k < circle_.points; ++k) {
        best[k] = std::max(best[k], values[k].real());
        if (second != nullptr) best[k] = std::max(best[k], values[k].imag());
      }
      const double rounding = first.transform_error() + (second ? second->transform_error() : 0) +
                              4 * kStageRounding * kUnitRoundoff * std::log2(n) +
                              32 * kUnitRoundoff;
      error = std::max(error, state.error * (1 + 1e-9) + 2 * state.norm * rounding);
    }
    return error;
  }

  void GoThroughChoices() {
    const kissfft<double> forward(circle_.points, false);
    const kissfft<double> inverse(circle_.points, true);
    std::vector<double> values(circle_.points, 0.0);
    for (std::size_t i = 0; i < circle_.points; ++i) {
      const double epsilon =
          static_cast<double>(first_ + static_cast<std::int64_t>(i)) * circle_.spacing;
      if (epsilon < 0) values[i] = std::exp(circle_.tilt * epsilon) * -std::expm1(epsilon);
    }
    std::vector<State> states = {StateOf(values, 16 * kUnitRoundoff, forward)};
    // State number: how many steps of each stage are still to come, the last stage fastest.
    std::vector<std::uint64_t> left(others_, 0);
    std::vector<std::size_t> stride(others_, 1);
    for (std::size_t s = others_; s-- > 1;) {
      stride[s - 1] = stride[s] * static_cast<std::size_t>(stages_[s].count + 1);
    }
    while (true) {
      std::size_t s = others_;
      while (s > 0 && left[s - 1] == stages_[s - 1].count) left[--s] = 0;
      if (s == 0) break;
      ++left[s - 1];
      std::fill(values.begin(), values.end(), 0.0);
      double error = 0;
      const std::size_t number = states.size();
      for (std::size_t g = 0; g < others_; ++g) {
        if (left[g] == 0) continue;
        error =
            std::max(error, RaiseByStage(states[number - stride[g]], stages_[g], inverse, values));
      }
      states.push_back(StateOf(values, error, forward));
      // With one stage the state before is all that is needed.
      if (others_ == 1) states[number - 1].transform = {};
    }
    std::fill(values.begin(), values.end(), 0.0);
    error_ = RaiseByStage(states.back(), stages_[others_], inverse, values);
    values_ = std::move(values);
    for (const Stage& stage : stages_) {
      const auto count = static_cast<double>(stage.count);
      double rounding = 0;
      double infinite = circle_.bound == Bound::kUpper ? 0 : 1;
      for (const ChoiceOption& option : stage.options) {
        rounding = std::max(rounding, option.log_mass_error());
        infinite = circle_.bound == Bound::kUpper ? std::max(infinite, option.infinite())
                                                  : std::min(infinite, option.infinite());
      }
      front_ += count * stage.log_mass;
      front_error_ += count * (rounding + 4 * kUnitRoundoff * std::abs(stage.log_mass));
      log_survival_ += count * std::log1p(-infinite);
    }
  }

  double At(std::int64_t i, int side) const {
    const double epsilon = static_cast<double>(i) * circle_.spacing;
    const double value = values_[circle_.Place(i - first_)];
    const double front = front_ - circle_.tilt * epsilon;
    const double error =
        front_error_ + 8 * kUnitRoundoff * (std::abs(front_) + std::abs(circle_.tilt * epsilon));
    const double finite = std::max(0.0, value + side * (error_ + beyond_)) *
                          std::exp(std::min(700.0, front + side * error - log_delta_));
    return finite + -std::expm1(log_survival_) * std::exp(-log_delta_) * (1 + side * 1e-12);
  }

  bool quick_;
  std::vector<Stage> stages_;
  std::size_t others_ = 0;
  GridCircle circle_;
  double log_delta_ = 0;
  Interval epsilons_ = {0, 0};
  double deviation_ = 0;
  std::int64_t first_ = 0;  // epsilon of the first point of the circle, in cells
  double beyond_ = 0;
  std::vector<double> values_;
  double error_ = 0;
  double front_ = 0;
  double front_error_ = 0;
  double log_survival_ = 0;
};

}  // namespace

double AdaptiveEpsilon(const AdaptiveComposition& composition, double log_delta, Interval known,
                       Bound bound, Effort effort) {
  const double nothing = bound == Bound::kUpper ? kInfinity : 0;
  if (!std::isfinite(known.upper) || known.upper <= 0 || log_delta == -kInfinity) return nothing;
  constexpr double kAround = 0.01;
  AdaptiveGrid grid(composition, bound, effort);
  const Interval asked{known.lower * (1 - kAround), known.upper * (1 + kAround)};
  const bool composed = grid.Compose(log_delta, asked, [&](double moment, double c) {
    return (moment - log_delta + LogChernoffConstant(c)) / c;
  });
  if (!composed) return nothing;
  const double h = grid.spacing();
  const auto first = static_cast<std::int64_t>(std::ceil(asked.lower / h));
  const auto last = static_cast<std::int64_t>(std::floor(asked.upper / h));
  if (bound == Bound::kUpper) {
    for (std::int64_t i = first; i <= last; ++i) {
      const double here = grid.Above(i);
      if (here > 1) continue;
      const double at = static_cast<double>(i) * h;
      if (i == first) return at;
      // The line through two points of a convex function of e^epsilon lies above it.
      const double before = grid.Above(i - 1);
      const double share = (before - 1) / (before - here);
      return std::min(at, at - h + std::log1p(share * std::expm1(h)) + 1e-14 * at);
    }
    return nothing;
  }
  for (std::int64_t i = last; i >= first; --i) {
    const double here = grid.Below(i);
    if (!(here > 1)) continue;
    const double at = static_cast<double>(i) * h;
    // Beyond two points the line through them lies below.
    const double fall = grid.Above(i - 1) - here;
    const double more = fall > 0 ? -std::expm1(-h) * (here - 1) / fall : 0;
    return (at + std::min(std::log1p(more), h)) * (1 - 1e-14);
  }
  return nothing;
}

double AdaptiveLogDelta(const AdaptiveComposition& composition, double epsilon, double guess,
                        Bound bound, Effort effort) {
  const double nothing = bound == Bound::kUpper ? 0 : -kInfinity;
  if (!std::isfinite(guess)) return nothing;
  AdaptiveGrid grid(composition, bound, effort);
  const bool composed = grid.Compose(guess, {epsilon, epsilon}, [&](double moment, double c) {
    return moment - c * epsilon + LogChernoffConstant(c);
  });
  if (!composed) return nothing;
  const double h = grid.spacing();
  const auto i = static_cast<std::int64_t>(std::floor(epsilon / h));
  const double share =
      std::clamp(std::expm1(epsilon - static_cast<double>(i) * h) / std::expm1(h), 0.0, 1.0);
  if (bound == Bound::kUpper) {
    const double ratio = grid.Above(i) * (1 - share) + grid.Above(i + 1) * share;
    return std::min(0.0, guess + std::log(ratio) + 1e-13);
  }
  const double left = grid.Below(i) - share * std::exp(h) * (grid.Above(i - 1) - grid.Below(i));
  const double ratio = std::max(left, grid.Below(i + 1));
  return ratio > 0 ? guess + std::log(ratio) - 1e-13 : nothing;
}

}  // namespace sordino
