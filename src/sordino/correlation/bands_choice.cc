#include "sordino/correlation/bands_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "sordino/accounting/calibration.h"
#include "sordino/base/error.h"
#include "sordino/correlation/internal/banded_optimum.h"
#include "sordino/correlation/sensitivity.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

// What a run can be expected to remember: bands - 1 copies of the model's parameters.
constexpr std::int64_t kMostBands = 256;
// Steps times bands, so that a choice takes about a second.
constexpr double kMostBandWork = 1e7;
// Error over the best so far at which more bands are no longer tried: rounds are whole numbers, so
// that the error is not quite a smooth function of the bands.
constexpr double kHopeless = 1.03;
constexpr std::size_t kMostBetween = 5;
// Promised error over the best so far below which a number of bands is looked at.
constexpr double kWorthTrying = 0.9995;

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

// RMSE of prefix sums at noise multiplier 1 for one contribution: columns of the steps of one group
// do not overlap, so each round counts by itself.
double UnitRmse(std::int64_t steps, std::int64_t bands) {
  const Participation round{.steps = steps, .separation = bands, .count = 1};
  const std::vector<double> column = QuickBandedOptimum(bands, steps, CorrelationObjective::kRmse);
  const std::vector<double> errors = RowNorms(PrefixSums(InverseColumn(column, steps)));
  const double mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(steps);
  return ToeplitzSensitivity(column, round).value * std::sqrt(mean);
}

std::int64_t MostBandsOf(const BandsQuestion& question) {
  return static_cast<std::int64_t>(
      std::min({std::floor(1 / question.rate.value() * (1 + 1e-12)),
                static_cast<double>(question.steps), static_cast<double>(kMostBands),
                std::max(16.0, kMostBandWork / static_cast<double>(question.steps))}));
}

// The answers of one question, by their bands.
class BandsSearch {
 public:
  explicit BandsSearch(const BandsQuestion& question)
      : question_(question), most_(MostBandsOf(question)) {}

  // False: no noise meets the budget.
  bool Try(std::int64_t bands) {
    if (rows_.contains(bands)) return true;
    std::optional<BandsRow> row = CalibrateBands(question_, bands);
    if (!row) return false;
    rows_.insert({bands, *row});
    return true;
  }

  const BandsRow& Best() const {
    return std::min_element(
               rows_.begin(), rows_.end(),
               [](const auto& a, const auto& b) { return a.second.rmse < b.second.rmse; })
        ->second;
  }

  // 1, 2, 4, ... while they are not hopeless.
  void TryPowers() {
    for (std::int64_t bands = 2; bands <= most_; bands *= 2) {
      if (!Try(bands) || rows_.at(bands).rmse > kHopeless * Best().rmse) return;
    }
    Try(most_);
  }

  // Between the neighbours of the best: those that promise most, by an error in between that would
  // be reached with as many rounds as steps over bands.
  void TryBetween() {
    const auto best = rows_.find(Best().bands);
    std::vector<BandsRow> around;
    if (best != rows_.begin()) around.push_back(std::prev(best)->second);
    around.push_back(best->second);
    if (std::next(best) != rows_.end()) around.push_back(std::next(best)->second);
    std::vector<std::pair<double, std::int64_t>> promises;
    for (std::int64_t bands = around.front().bands; bands < around.back().bands; ++bands) {
      if (!rows_.contains(bands)) promises.emplace_back(Promise(bands, around), bands);
    }
    std::sort(promises.begin(), promises.end());
    for (std::size_t i = 0; i < std::min(promises.size(), kMostBetween); ++i) {
      if (promises[i].first < kWorthTrying * Best().rmse) Try(promises[i].second);
    }
  }

  std::vector<BandsRow> Rows() const {
    std::vector<BandsRow> rows;
    for (const auto& [bands, row] : rows_) rows.push_back(row);
    return rows;
  }

 private:
  // Noise grows about as the square root of this factor, over that of a whole number of rounds.
  double RoundingUp(std::int64_t bands) const {
    return static_cast<double>(RoundsOf(question_.steps, bands)) * static_cast<double>(bands) /
           static_cast<double>(question_.steps);
  }
  // The logarithm of the error against that of the bands, without what rounding up adds.
  double Smooth(const BandsRow& row) const {
    return std::log(row.rmse) - 0.5 * std::log(RoundingUp(row.bands));
  }
  // The parabola through the rows.
  double Promise(std::int64_t bands, const std::vector<BandsRow>& rows) const {
    const auto place = [](std::int64_t number) { return std::log(static_cast<double>(number)); };
    double sum = 0;
    for (const BandsRow& row : rows) {
      double share = Smooth(row);
      for (const BandsRow& other : rows) {
        if (other.bands == row.bands) continue;
        share *= (place(bands) - place(other.bands)) / (place(row.bands) - place(other.bands));
      }
      sum += share;
    }
    return std::exp(sum) * std::sqrt(RoundingUp(bands));
  }

  BandsQuestion question_;
  std::int64_t most_;
  std::map<std::int64_t, BandsRow> rows_;
};

}  // namespace

std::string BandsChoice::strategy() const {
  return best.bands == 1 ? "none" : fmt::format("banded:{}", best.bands);
}

Event CyclicPoissonEvent(std::int64_t steps, SamplingRate rate, std::int64_t bands,
                         NoiseMultiplier noise, Adjacency adjacency) {
  const double each = rate.value() * static_cast<double>(bands);
  if (bands < 1 || each > 1 + 1e-9) {
    throw Error(
        fmt::format("{} bands at a sampling rate of {:g} would take each record with a probability "
                    "above 1; use "
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
  CheckBandsQuestion(question);
  BandsSearch search(question);
  if (!search.Try(1)) return std::nullopt;
  search.TryPowers();
  search.TryBetween();
  std::vector<BandsRow> rows = search.Rows();
  const BandsRow independent = rows.front();
  return BandsChoice{.best = search.Best(), .independent = independent, .rows = std::move(rows)};
}

std::unique_ptr<Strategy> ChooseUnsampled(const Participation& participation) {
  std::unique_ptr<Strategy> best = MakeStrategy("none", participation);
  double least = best->Rmse();
  for (const char* name : {"banded", "blt"}) {
    std::unique_ptr<Strategy> strategy = MakeStrategy(name, participation);
    const double rmse = strategy->Rmse();
    if (rmse >= least) continue;
    least = rmse;
    best = std::move(strategy);
  }
  return best;
}

}  // namespace sordino
