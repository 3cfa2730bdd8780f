#include "sordino/theory/learned_influence.h"

#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

// gamma^T lies between these.
constexpr double kMinLogDecay = -60;
constexpr double kMaxLogDecay = 6;
constexpr int kGridPoints = 2000;

struct Fit {
  double scale = 0;
  double scale_error = 0;
  double misfit = kInfinity;
};

// The mean of gamma^(T - 1 - t) over a block.
double MeanPower(const BlockInfluence& block, double log_gamma, std::int64_t steps) {
  double sum = 0;
  for (std::int64_t t = block.first; t < block.first + block.steps; ++t) {
    sum += std::exp(log_gamma * static_cast<double>(steps - 1 - t));
  }
  return sum / static_cast<double>(block.steps);
}

Fit FitScale(std::span<const BlockInfluence> blocks, double log_gamma, std::int64_t steps) {
  double weighted = 0;
  double squares = 0;
  double total = 0;
  for (const BlockInfluence& block : blocks) {
    const double power = MeanPower(block, log_gamma, steps);
    const double weight = 1 / (block.error * block.error);
    weighted += weight * block.weight * power;
    squares += weight * power * power;
    total += weight * block.weight * block.weight;
  }
  Fit fit;
  fit.scale = weighted / squares;
  fit.scale_error = 1 / std::sqrt(squares);
  fit.misfit = fit.scale > 0 ? total - weighted * fit.scale : total;
  return fit;
}

void CheckBlocks(std::span<const BlockInfluence> blocks, std::int64_t steps) {
  if (blocks.size() < 2) throw Error("influence is learned from at least two blocks of steps.");
  for (const BlockInfluence& block : blocks) {
    if (block.first < 0 || block.steps < 1 || block.first + block.steps > steps) {
      throw Error("a block of steps lies outside of the run.");
    }
    if (!std::isfinite(block.weight) || !(block.error > 0) || !std::isfinite(block.error)) {
      throw Error(
          "the final losses are not finite or do not differ from run to run; use less noise, a "
          "smaller learning rate or more seeds.");
    }
  }
}

}  // namespace

DecayTest TestDecay(std::span<const BlockInfluence> blocks,
                    std::span<const std::vector<double>> measured, std::int64_t steps) {
  CheckBlocks(blocks, steps);
  SORDINO_CHECK(measured.size() == blocks.size(), "each block was measured");
  const std::size_t seeds = measured.front().size();
  if (seeds < 2) throw Error("a decay is tested over at least two seeds.");
  const auto count = static_cast<double>(blocks.size());
  std::vector<double> place;  // of the middle of each block, from the mean of them
  double mean_place = 0;
  for (const BlockInfluence& block : blocks) {
    place.push_back(static_cast<double>(block.first) + static_cast<double>(block.steps - 1) / 2);
    mean_place += place.back() / count;
  }
  double spread = 0;
  for (double& at : place) {
    at -= mean_place;
    spread += at * at;
  }
  std::vector<double> slopes(seeds, 0);
  DecayTest test;
  for (std::size_t s = 0; s < seeds; ++s) {
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      SORDINO_CHECK(measured[k].size() == seeds, "each block was measured for every seed");
      slopes[s] += place[k] * measured[k][s] / spread;
    }
    test.slope += slopes[s] / static_cast<double>(seeds);
  }
  double squares = 0;
  for (const double slope : slopes) squares += (slope - test.slope) * (slope - test.slope);
  const auto freedom = static_cast<double>(seeds - 1);
  test.error = std::sqrt(squares / freedom / static_cast<double>(seeds));
  if (!(test.error > 0)) {
    test.p_value = test.slope == 0 ? 1 : 0;
  } else {
    const boost::math::students_t distribution(freedom);
    test.p_value = 2 * boost::math::cdf(boost::math::complement(distribution,
                                                                std::abs(test.slope / test.error)));
  }
  test.is_significant = test.p_value <= kDecayLevel;
  return test;
}

LearnedInfluence EqualInfluence(std::span<const BlockInfluence> blocks, std::int64_t steps) {
  CheckBlocks(blocks, steps);
  const Fit fit = FitScale(blocks, /*log_gamma=*/0, steps);
  LearnedInfluence learned;
  learned.kappa = kInfinity;
  learned.scale = fit.scale;
  learned.scale_error = fit.scale_error;
  learned.weights.assign(static_cast<std::size_t>(steps),
                         std::max(std::numeric_limits<double>::min(), fit.scale));
  return learned;
}

std::optional<LearnedInfluence> FitDecay(std::span<const BlockInfluence> blocks,
                                         std::int64_t steps) {
  CheckBlocks(blocks, steps);
  double best_log = 0;
  Fit best;
  const auto length = static_cast<double>(steps);
  for (int i = 0; i <= kGridPoints; ++i) {
    const double log_gamma =
        (kMinLogDecay + (kMaxLogDecay - kMinLogDecay) * i / kGridPoints) / length;
    const Fit fit = FitScale(blocks, log_gamma, steps);
    if (fit.misfit < best.misfit) {
      best = fit;
      best_log = log_gamma;
    }
  }
  if (!(best_log < 0) || !std::isfinite(best.scale) || !(best.scale >= 2 * best.scale_error)) {
    return std::nullopt;
  }
  LearnedInfluence learned;
  learned.decay = std::exp(best_log);
  learned.kappa = -1 / std::expm1(best_log);
  learned.scale = best.scale;
  learned.scale_error = best.scale_error;
  learned.weights.reserve(static_cast<std::size_t>(steps));
  for (std::int64_t t = 0; t < steps; ++t) {
    learned.weights.push_back(
        std::max(std::numeric_limits<double>::min(),
                 best.scale * std::exp(best_log * static_cast<double>(steps - 1 - t))));
  }
  return learned;
}

InfluenceSchedule ScheduleOf(std::span<const BlockInfluence> blocks, const DecayTest& test,
                             std::int64_t steps) {
  const std::vector<double> ones(static_cast<std::size_t>(steps), 1);
  const std::optional<LearnedInfluence> fitted =
      test.is_significant ? FitDecay(blocks, steps) : std::nullopt;
  if (!fitted) {
    return {.influence = EqualInfluence(blocks, steps),
            .noise = ones,
            .equal = test.is_significant ? EqualNoise::kNoDecay : EqualNoise::kChance};
  }
  InfluenceSchedule schedule;
  schedule.influence = *fitted;
  schedule.noise = OptimalNoise(fitted->weights, static_cast<double>(steps));
  schedule.gain = NoiseTerm(fitted->weights, ones) / NoiseTerm(fitted->weights, schedule.noise);
  return schedule;
}

}  // namespace sordino
