// blt:K: a buffered linear Toeplitz matrix with K buffers (internal/blt_optimum.h).
//
// The strategy is what its noise does: n_t = w_t - sum_i weight_i s_i with the buffers
// s_i <- decay_i s_i + w_t, whose numbers are used as they are. The coefficients of C are those of
// the inverse of that series, c_t = sum_i weight_i r_i(t) with r_i(t + 1) = decay_i r_i(t) + c_t:
// sums of terms >= 0.
//
// Sensitivity: exact where these coefficients do not rise, as those of the optimum do not; an upper
// bound otherwise (sensitivity.h).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/correlation/internal/blt_optimum.h"
#include "sordino/correlation/internal/toeplitz_strategy.h"

namespace sordino {
namespace {

constexpr std::int64_t kDefaultBuffers = 4;
constexpr std::int64_t kMostBuffers = 12;

class Blt final : public ToeplitzStrategy {
 public:
  Blt(std::int64_t size, std::vector<NoiseBuffer> buffers, const Participation& participation)
      : ToeplitzStrategy(fmt::format("blt:{}", size), participation),
        buffers_(std::move(buffers)) {}
  std::int64_t Bands() const override { return participation().steps; }
  std::vector<double> Coefficients(std::int64_t steps) const override {
    std::vector<double> column(static_cast<std::size_t>(steps));
    std::vector<double> state(buffers_.size(), 0.0);
    for (std::size_t t = 0; t < column.size(); ++t) {
      column[t] = t == 0 ? 1 : 0;
      for (std::size_t i = 0; i < state.size(); ++i) column[t] += buffers_[i].weight * state[i];
      for (std::size_t i = 0; i < state.size(); ++i) {
        state[i] = buffers_[i].decay * state[i] + column[t];
      }
    }
    return column;
  }
  std::vector<double> NoiseCoefficients(std::int64_t steps) const override {
    std::vector<double> column(static_cast<std::size_t>(steps), 0.0);
    column[0] = 1;
    for (const NoiseBuffer& buffer : buffers_) {
      double value = buffer.weight;
      for (std::size_t t = 1; t < column.size(); ++t, value *= buffer.decay) column[t] -= value;
    }
    return column;
  }
  NoiseFilter Filter(std::int64_t) const override {
    NoiseFilter filter{.buffers = buffers_};
    for (NoiseBuffer& buffer : filter.buffers) buffer.weight = -buffer.weight;
    return filter;
  }
  // (1 - sum_i weight_i x / (1 - decay_i x)) = P(x) / Q(x) with Q = prod (1 - decay_i x).
  NoiseFilter ArmaFilter(std::int64_t) const override {
    std::vector<double> poles{1.0};
    for (const NoiseBuffer& buffer : buffers_) poles = TimesPole(poles, buffer.decay);
    std::vector<double> zeros = poles;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      std::vector<double> others{0.0, buffers_[i].weight};
      for (std::size_t j = 0; j < buffers_.size(); ++j) {
        if (j != i) others = TimesPole(others, buffers_[j].decay);
      }
      for (std::size_t t = 0; t < others.size(); ++t) zeros[t] -= others[t];
    }
    return {.earlier_draws = {zeros.begin() + 1, zeros.end()},
            .earlier_noise = {poles.begin() + 1, poles.end()}};
  }

 private:
  std::int64_t RecursionLength() const override {
    return 2 * static_cast<std::int64_t>(buffers_.size());
  }

  static std::vector<double> TimesPole(const std::vector<double>& series, double decay) {
    std::vector<double> product = series;
    product.push_back(0.0);
    for (std::size_t t = 0; t < series.size(); ++t) product[t + 1] -= decay * series[t];
    return product;
  }

  std::vector<NoiseBuffer> buffers_;  // with weights > 0
};

class BltKind final : public StrategyKind {
 public:
  BltKind()
      : StrategyKind({.name = "blt", .help = "a buffered linear Toeplitz matrix with K buffers"}) {}
  std::string_view suffix() const override { return ":K"; }
  std::int64_t DefaultSize(const Participation& participation) const override {
    return std::min(kDefaultBuffers, participation.steps);
  }
  std::unique_ptr<Strategy> Make(std::int64_t size, const Participation& participation,
                                 CorrelationObjective objective) const override {
    if (size > kMostBuffers) {
      throw Error(
          fmt::format("the noise correlation 'blt:{}' has too many buffers; use at most {}.", size,
                      kMostBuffers));
    }
    return std::make_unique<Blt>(size, BltInverse(BltOptimum(size, participation, objective)),
                                 participation);
  }
};

}  // namespace

const StrategyKind& BltStrategy() {
  static const BltKind kind;
  return kind;
}

}  // namespace sordino
