// none: independent noise, C = I.
#include <memory>
#include <vector>

#include "sordino/correlation/internal/toeplitz_strategy.h"

namespace sordino {
namespace {

class Independent final : public ToeplitzStrategy {
 public:
  explicit Independent(const Participation& participation)
      : ToeplitzStrategy("none", participation) {}
  std::int64_t Bands() const override { return 1; }
  std::vector<double> Coefficients(std::int64_t steps) const override {
    std::vector<double> column(static_cast<std::size_t>(steps), 0.0);
    column[0] = 1;
    return column;
  }
  std::vector<double> NoiseCoefficients(std::int64_t steps) const override {
    return Coefficients(steps);
  }
  NoiseFilter Filter(std::int64_t) const override { return {}; }

 private:
  std::int64_t RecursionLength() const override { return 0; }
};

class IndependentKind final : public StrategyKind {
 public:
  IndependentKind() : StrategyKind({.name = "none", .help = "independent noise in each step"}) {}
  std::int64_t BandsOf(std::optional<std::int64_t>, std::int64_t) const override { return 1; }
  std::int64_t DefaultSize(const Participation&) const override { return 1; }
  std::unique_ptr<Strategy> Make(std::int64_t, const Participation& participation,
                                 CorrelationObjective) const override {
    return std::make_unique<Independent>(participation);
  }
};

}  // namespace

const StrategyKind& NoStrategy() {
  static const IndependentKind kind;
  return kind;
}

}  // namespace sordino
