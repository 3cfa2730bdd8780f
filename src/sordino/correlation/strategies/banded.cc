// banded:B: C has B bands, whose coefficients are optimised (BandMF, Toeplitz form; Choquette-Choo
// et al., arXiv 2306.08153; McKenna, arXiv 2405.15913).
//
// C n = w, so the noise of a step is its draw without what B - 1 earlier noises bring:
// n_t = w_t - c_1 n_{t-1} - ... - c_{B-1} n_{t-B+1}.
//
// Sensitivity: exact for B <= separation, and where the coefficients do not rise, which those of
// the optimum do not.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/correlation/internal/banded_optimum.h"
#include "sordino/correlation/internal/toeplitz_strategy.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

// Operations of one step of the optimiser; about a second in all at the limit.
constexpr double kMaxWork = 5e7;
constexpr std::int64_t kDefaultBands = 32;

class Banded final : public ToeplitzStrategy {
 public:
  Banded(std::vector<double> column, const Participation& participation)
      : ToeplitzStrategy(fmt::format("banded:{}", column.size()), participation),
        column_(std::move(column)) {
    column_.resize(static_cast<std::size_t>(BandsOf(column_)));
  }
  std::int64_t Bands() const override { return static_cast<std::int64_t>(column_.size()); }
  std::vector<double> Coefficients(std::int64_t steps) const override {
    std::vector<double> column = column_;
    column.resize(static_cast<std::size_t>(steps), 0.0);
    return column;
  }
  std::vector<double> NoiseCoefficients(std::int64_t steps) const override {
    return InverseColumn(column_, steps);
  }
  NoiseFilter Filter(std::int64_t) const override {
    return {.earlier_noise = {column_.begin() + 1, column_.end()}};
  }

 private:
  std::int64_t RecursionLength() const override { return 0; }

  std::vector<double> column_;
};

class BandedKind final : public StrategyKind {
 public:
  BandedKind() : StrategyKind({.name = "banded", .help = "B bands with optimised coefficients"}) {}
  std::string_view suffix() const override { return ":B"; }
  std::int64_t BandsOf(std::optional<std::int64_t> size, std::int64_t steps) const override {
    return std::min(size.value_or(steps), steps);
  }
  // Bands that do not overlap, within reason.
  std::int64_t DefaultSize(const Participation& participation) const override {
    const std::int64_t most =
        participation.Fitting() == 1 ? participation.steps : participation.separation;
    return std::min({most, participation.steps, kDefaultBands});
  }
  std::unique_ptr<Strategy> Make(std::int64_t bands, const Participation& participation,
                                 CorrelationObjective objective) const override {
    const double work = static_cast<double>(bands) * static_cast<double>(participation.steps);
    if (work > kMaxWork) {
      throw Error(fmt::format(
          "{} bands over {} steps are more than an optimiser does in a minute; use at most {} "
          "bands, "
          "or 'blt'.",
          bands, participation.steps,
          static_cast<std::int64_t>(kMaxWork / static_cast<double>(participation.steps))));
    }
    return std::make_unique<Banded>(BandedOptimum(bands, participation, objective), participation);
  }
};

}  // namespace

const StrategyKind& BandedStrategy() {
  static const BandedKind kind;
  return kind;
}

}  // namespace sordino
