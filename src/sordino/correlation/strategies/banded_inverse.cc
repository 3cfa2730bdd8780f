// bisr:P and bifr:P: C^-1 has P bands, the first coefficients of (1 - x)^gamma; gamma is 1/2 for
// bisr (banded inverse square root; Kalinin, Upadhyay, Lampert, arXiv 2505.12128) and optimised for
// bifr (a fractional power of the matrix of ones).
//
// The noise of a step is made of its draw and P - 1 earlier ones: n_t = w_t + r_1 w_{t-1} + ...
//
// Sensitivity: exact. With r_i < 0 for 1 <= i < P, the coefficients of C are c_t = sum_i |r_i|
// c_{t-i}, which are positive. They do not rise: below P they are those of (1 - x)^-gamma, which
// fall, and from t = P - 1 on c_{t+1} - c_t = sum_i |r_i| (c_{t+1-i} - c_{t-i}) <= 0 by induction.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sordino/correlation/internal/minimise.h"
#include "sordino/correlation/internal/toeplitz_strategy.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

constexpr std::int64_t kDefaultInverseBands = 4;

class BandedInverse final : public ToeplitzStrategy {
 public:
  BandedInverse(std::string_view name, double gamma, std::int64_t bands,
                const Participation& participation)
      : ToeplitzStrategy(fmt::format("{}:{}", name, bands), participation),
        filter_(BinomialSeries(gamma, bands)) {}
  std::int64_t Bands() const override { return filter_.size() == 1 ? 1 : participation().steps; }
  std::vector<double> Coefficients(std::int64_t steps) const override {
    return InverseColumn(filter_, steps);
  }
  std::vector<double> NoiseCoefficients(std::int64_t steps) const override {
    std::vector<double> column = filter_;
    column.resize(static_cast<std::size_t>(steps), 0.0);
    return column;
  }
  NoiseFilter Filter(std::int64_t) const override {
    return {.earlier_draws = {filter_.begin() + 1, filter_.end()}};
  }

 private:
  std::int64_t RecursionLength() const override {
    return static_cast<std::int64_t>(filter_.size());
  }

  std::vector<double> filter_;
};

class BandedInverseKind : public StrategyKind {
 public:
  using StrategyKind::StrategyKind;
  std::string_view suffix() const override { return ":P"; }
  std::int64_t DefaultSize(const Participation& participation) const override {
    return std::min(kDefaultInverseBands, participation.steps);
  }
};

class BisrKind final : public BandedInverseKind {
 public:
  BisrKind()
      : BandedInverseKind({.name = "bisr", .help = "the inverse square root with P bands"}) {}
  std::unique_ptr<Strategy> Make(std::int64_t bands, const Participation& participation,
                                 CorrelationObjective) const override {
    return std::make_unique<BandedInverse>(name(), 0.5, bands, participation);
  }
};

class BifrKind final : public BandedInverseKind {
 public:
  BifrKind() : BandedInverseKind({.name = "bifr", .help = "the best inverse power with P bands"}) {}
  std::unique_ptr<Strategy> Make(std::int64_t bands, const Participation& participation,
                                 CorrelationObjective objective) const override {
    const auto error = [&](double gamma) {
      const BandedInverse strategy(name(), gamma, bands, participation);
      return objective == CorrelationObjective::kRmse ? strategy.Rmse() : strategy.MaxError();
    };
    const double gamma = bands == 1 ? 0.5 : MinimiseOnInterval(error, 0, 1);
    return std::make_unique<BandedInverse>(name(), gamma, bands, participation);
  }
};

}  // namespace

const StrategyKind& BisrStrategy() {
  static const BisrKind kind;
  return kind;
}

const StrategyKind& BifrStrategy() {
  static const BifrKind kind;
  return kind;
}

}  // namespace sordino
