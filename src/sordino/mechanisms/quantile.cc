#include "sordino/mechanisms/quantile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/mechanisms/internal/additive_statistic.h"

namespace sordino {
namespace {

using internal::Int128;
__extension__ using Uint128 = unsigned __int128;

constexpr std::size_t kCells = std::size_t{1} << 16;
constexpr int kRankBits = 30;  // ranks are multiples of 2^-30
constexpr double kExponentCap = 40;
constexpr int kWeightBits = 106;  // 2^16 cells of 2^106 stay below 2^128
constexpr double kSamplingCharge = 0x1p-42;
constexpr double kMinEpsilon = 0x1p-20;

// Uniform on [0, total), by rejection from the next power of two.
Uint128 UniformBelow(Uint128 total, Generator& generator) {
  SORDINO_CHECK(total > 0, "a choice needs a weight");
  int bits = 0;
  while (bits < 128 && (total - 1) >> bits != 0) ++bits;
  const Uint128 mask =
      bits == 128 ? ~Uint128{0} : (Uint128{1} << bits) - 1;  // a shift by 128 is undefined
  while (true) {
    const Uint128 high = generator.Next64();
    const Uint128 draw = ((high << 64) | generator.Next64()) & mask;
    if (draw < total) return draw;
  }
}

class Quantile final : public StreamedStatistic {
 public:
  Quantile(double q, const Bounds& bounds, const PrivacyUnit& unit, const NoiseBudget& budget)
      : rank_(std::llrint(std::ldexp(q, kRankBits))),
        bounds_(bounds),
        unit_(unit),
        budget_(budget),
        counts_(unit.groups * kCells, 0) {
    budget_.delta = Delta(0);
    const double units = unit.count_is_public
                             ? 1
                             : unit.rows * (unit.adjacency == Adjacency::kReplaceOne ? 2.0 : 1.0);
    shifted_sensitivity_ = units;
    sensitivity_ = unit.count_is_public ? 1 : units * std::max(q, 1 - q) * (1 + 0x1p-28);
  }

  void Add(std::size_t group, double value) override {
    const double place =
        (bounds_.Clamp(value) - bounds_.low()) / bounds_.width() * static_cast<double>(kCells);
    const std::size_t cell =
        place < static_cast<double>(kCells) ? static_cast<std::size_t>(place) : kCells - 1;
    ++counts_[group * kCells + cell];
  }

  std::vector<Release> Finish(Generator& generator) const override {
    const double epsilon = budget_.epsilon.value();
    std::vector<Release> releases;
    for (std::size_t group = 0; group < unit_.groups; ++group) {
      Release release;
      release.confidence = budget_.confidence;
      release.epsilon = budget_.epsilon;
      release.is_private = generator.IsPrivate();
      release.event = GroupEvent();
      release.noise_scale = 2 * sensitivity_ / (epsilon / 2);
      const double shift = 2 * shifted_sensitivity_ / (epsilon / 4 - kSamplingCharge) *
                           std::log(2 * static_cast<double>(kCells) / (1 - budget_.confidence));
      const std::size_t cell = Choose(group, 0, sensitivity_, epsilon / 2, generator);
      const std::size_t low = Choose(group, -shift, shifted_sensitivity_, epsilon / 4, generator);
      const std::size_t high = Choose(group, shift, shifted_sensitivity_, epsilon / 4, generator);
      const double value = Edge(static_cast<double>(cell) + 0.5);
      release.values = {value};
      release.intervals = {{std::min(value, Edge(static_cast<double>(low))),
                            std::max(value, Edge(static_cast<double>(high) + 1))}};
      releases.push_back(std::move(release));
    }
    return releases;
  }

  Event event() const override {
    if (unit_.groups == 1) return GroupEvent();
    if (unit_.adjacency != Adjacency::kReplaceOne && unit_.rows == 1) {
      return Event::Parallel(std::vector<Event>(unit_.groups, GroupEvent()), unit_.adjacency);
    }
    return Event::Pure(budget_.epsilon, unit_.adjacency);
  }

 private:
  Event GroupEvent() const {
    const double epsilon = budget_.epsilon.value();
    return Event::Compose({{Event::Exponential(Epsilon(epsilon / 2), unit_.adjacency), 1},
                           {Event::Exponential(Epsilon(epsilon / 4), unit_.adjacency), 2}},
                          unit_.adjacency);
  }

  double Edge(double cell) const {
    return bounds_.Clamp(bounds_.low() + bounds_.width() * (cell / static_cast<double>(kCells)));
  }

  // In multiples of 2^-30. Half of what an Int128 holds is plenty for a shift, and more than any n.
  static Int128 Steps(double shift) {
    return static_cast<Int128>(
        std::rint(std::clamp(std::ldexp(shift, kRankBits), -0x1p100, 0x1p100)));
  }

  std::size_t Choose(std::size_t group, double shift, double sensitivity, double epsilon,
                     Generator& generator) const {
    const std::uint64_t* counts = &counts_[group * kCells];
    Int128 rows = 0;
    for (std::size_t j = 0; j < kCells; ++j) rows += counts[j];
    // A target may lie below the first row, or after the last one: the outer cells reach there, so
    // that a target near an end is missed by no more than others are.
    const Int128 steps = Steps(shift);
    const Int128 target = rows * rank_ + steps;
    const double rate = (epsilon - kSamplingCharge) / (2 * sensitivity) * 0x1p-30;

    std::vector<Uint128> cumulative(kCells);
    Uint128 total = 0;
    Int128 left = std::min<Int128>(0, steps);
    // Runs of empty cells share one utility, and the exponential is what takes the time.
    Int128 last_miss = -1;
    Uint128 weight = 0;
    for (std::size_t j = 0; j < kCells; ++j) {
      Int128 right = std::max<Int128>(left, 0) + (static_cast<Int128>(counts[j]) << kRankBits);
      if (j + 1 == kCells) right += std::max<Int128>(0, steps);
      const Int128 miss = std::max<Int128>({0, left - target, target - right});
      if (miss != last_miss) {
        const double exponent = std::min(kExponentCap, static_cast<double>(miss) * rate);
        weight = static_cast<Uint128>(std::ldexp(std::exp(-exponent), kWeightBits));
        last_miss = miss;
      }
      total += weight;
      cumulative[j] = total;
      left = right;
    }
    const Uint128 draw = UniformBelow(total, generator);
    std::size_t chosen = 0;
    for (const Uint128 end : cumulative) chosen += end <= draw ? 1 : 0;
    return chosen;
  }

  std::int64_t rank_;
  Bounds bounds_;
  PrivacyUnit unit_;
  NoiseBudget budget_;
  double sensitivity_ = 1;
  double shifted_sensitivity_ = 1;
  std::vector<std::uint64_t> counts_;
};

}  // namespace

std::unique_ptr<StreamedStatistic> MakeQuantile(double q, const Bounds& bounds,
                                                const PrivacyUnit& unit,
                                                const NoiseBudget& budget) {
  CheckRange("the quantile", q, 0, true, 1, true);
  CheckRange("the confidence", budget.confidence, 0, true, 1, true);
  if (!(budget.epsilon.value() >= kMinEpsilon && budget.epsilon.value() < kInfinity)) {
    throw Error(fmt::format("a quantile needs a finite epsilon of at least 1e-6, not {}.",
                            budget.epsilon.value()));
  }
  if (unit.rows == 0 || unit.groups == 0) {
    throw Error("a quantile needs at least one row per user and one group.");
  }
  SORDINO_CHECK(!unit.count_is_public || (unit.adjacency == Adjacency::kReplaceOne &&
                                          unit.rows == 1 && unit.groups == 1),
                "the number of rows is private here");
  return std::make_unique<Quantile>(q, bounds, unit, budget);
}

}  // namespace sordino
