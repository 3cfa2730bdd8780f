#include "sordino/correlation/bands_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/calibration.h"
#include "sordino/base/error.h"
#include "sordino/correlation/strategy.h"

namespace sordino {
namespace {

// Steps times bands up to which all numbers of bands are considered.
constexpr double kMostBandWork = 2e6;
constexpr std::int64_t kMostBands = 256;

void CheckBandsQuestion(const BandsQuestion& question) {
  if (question.steps < 1 || question.steps > kMaxCorrelatedSteps) {
    throw Error(fmt::format("correlated noise over {} steps; give a number of steps from 1 to {}.",
                            question.steps, kMaxCorrelatedSteps));
  }
  if (!(question.rate.value() > 0)) {
    throw Error("the sampling rate is 0; nobody would take part.");
  }
}

std::int64_t RoundsOf(std::int64_t steps, std::int64_t bands) { return (steps - 1) / bands + 1; }

// RMSE of prefix sums at noise multiplier 1 for one contribution: columns do not overlap, so a
// round counts once.
double UnitRmse(std::int64_t steps, std::int64_t bands) {
  const Participation round{.steps = steps, .separation = bands, .count = 1};
  if (bands == 1) return MakeStrategy("none", round)->Rmse();
  return MakeStrategy(fmt::format("banded:{}", bands), round)->Rmse();
}

// All numbers of bands that may be taken: those whose rounds are not those of more bands, since
// more bands with as many rounds have less error, at a higher rate.
std::vector<std::int64_t> CandidatesOf(const BandsQuestion& question) {
  const double most = std::min({std::floor(1 / question.rate.value() * (1 + 1e-12)),
                                static_cast<double>(question.steps),
                                kMostBandWork / static_cast<double>(question.steps) + 32,
                                static_cast<double>(kMostBands)});
  std::vector<std::int64_t> candidates;
  for (std::int64_t bands = 1; static_cast<double>(bands) <= most; ++bands) {
    candidates.push_back(bands);
  }
  return candidates;
}

}  // namespace

std::string BandsChoice::strategy() const {
  return best.bands == 1 ? "none" : fmt::format("banded:{}", best.bands);
}

Event CyclicPoissonEvent(std::int64_t steps, SamplingRate rate, std::int64_t bands,
                         NoiseMultiplier noise, Adjacency adjacency) {
  const double each = rate.value() * static_cast<double>(bands);
  if (bands < 1 || each > 1 + 1e-9) {
    throw Error(fmt::format(
        "{} bands at a sampling rate of {:g} would take each record with a probability above 1; use "
        "at most {} bands.",
        bands, rate.value(), std::floor(1 / rate.value())));
  }
  const Event round = Event::Gaussian(noise, adjacency);
  return Event::Repeat(each >= 1 ? round : Event::Poisson(SamplingRate(each), round),
                       static_cast<std::uint64_t>(RoundsOf(steps, bands)));
}

std::optional<BandsRow> CalibrateBands(const BandsQuestion& question, std::int64_t bands) {
  CheckBandsQuestion(question);
  const auto found = CalibrateNoise(
      [&](NoiseMultiplier noise) {
        return CyclicPoissonEvent(question.steps, question.rate, bands, noise, question.adjacency);
      },
      question.epsilon, question.delta);
  if (!found) return std::nullopt;
  return BandsRow{.bands = bands,
                  .noise = found->noise,
                  .epsilon = found->epsilon,
                  .rmse = found->noise.value() * UnitRmse(question.steps, bands)};
}

std::optional<BandsChoice> ChooseBands(const BandsQuestion& question) {
  CandidatesOf(question);
  return std::nullopt;
}

}  // namespace sordino
