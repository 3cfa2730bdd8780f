#include "sordino/correlation/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

std::int64_t SizeFrom(std::string_view text, std::string_view digits, std::int64_t steps) {
  std::int64_t size = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (problem != std::errc() || end != digits.data() + digits.size() || size < 1) {
    throw Error(fmt::format(
        "the noise correlation '{}' has no whole number above 0 after the colon; write 'banded:8'.",
        text));
  }
  if (size > steps) {
    throw Error(
        fmt::format("the noise correlation '{}' is for more than {} steps; give at most {}.", text,
                    steps, steps));
  }
  return size;
}

struct StrategyText {
  const StrategyKind& kind;
  std::optional<std::int64_t> size = {};
};

StrategyText Read(std::string_view text, std::int64_t steps) {
  const std::size_t colon = text.find(':');
  const StrategyKind& kind = Strategies().Find(text.substr(0, colon));
  if (colon == std::string_view::npos) return {kind};
  if (!kind.HasSize()) {
    throw Error(
        fmt::format("the noise correlation '{}' takes no number; write '{}'.", text, kind.name()));
  }
  return {kind, SizeFrom(text, text.substr(colon + 1), steps)};
}

}  // namespace

Strategy::Strategy(std::string text, const Participation& participation)
    : text_(std::move(text)), participation_(participation) {}

double Strategy::Rmse(const Participation& participation) const {
  const std::vector<double> errors = SquaredErrors(participation.steps);
  const double mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  return Sensitivity(participation) * std::sqrt(mean);
}

double Strategy::MaxError(const Participation& participation) const {
  const std::vector<double> errors = SquaredErrors(participation.steps);
  return Sensitivity(participation) * std::sqrt(*std::max_element(errors.begin(), errors.end()));
}

std::int64_t BandsOf(std::string_view text, std::int64_t steps) {
  const StrategyText read = Read(text, kMaxCorrelatedSteps);
  return read.kind.BandsOf(read.size, steps);
}

std::unique_ptr<Strategy> MakeStrategy(std::string_view text, const Participation& participation,
                                       CorrelationObjective objective) {
  participation.Check();
  const StrategyText read = Read(text, participation.steps);
  return read.kind.Make(read.size.value_or(read.kind.DefaultSize(participation)), participation,
                        objective);
}

}  // namespace sordino
