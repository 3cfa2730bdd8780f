#include "sordino/accounting/internal/pairs/full_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"

namespace sordino {
namespace {

struct PlanePoint {
  double x = 0;
  double y = 0;
};
using Cloud = std::vector<std::pair<PlanePoint, double>>;  // centres and their chances

PlanePoint RandomPoint(std::mt19937_64& random, double radius) {
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double angle = 2 * M_PI * uniform();
  // Most lie on the rim, and many on one line.
  const double length = radius * std::min(1.0, 2 * uniform());
  if (uniform() < 0.5) return {angle < M_PI ? length : -length, 0};
  return {length * std::cos(angle), length * std::sin(angle)};
}

// All sampled sets of records, each cut to a uniform subset of `cap`.
Cloud TruncatedOutputs(const std::vector<PlanePoint>& records, double rate, int cap) {
  const auto n = static_cast<int>(records.size());
  Cloud cloud(std::size_t{1} << n);
  for (unsigned kept = 0; kept < cloud.size(); ++kept) {
    for (int i = 0; i < n; ++i) {
      if (((kept >> i) & 1U) == 0) continue;
      cloud[kept].first.x += records[static_cast<std::size_t>(i)].x;
      cloud[kept].first.y += records[static_cast<std::size_t>(i)].y;
    }
  }
  for (unsigned sampled = 0; sampled < cloud.size(); ++sampled) {
    const int size = std::popcount(sampled);
    std::vector<unsigned> left;
    for (unsigned kept = 0; kept < cloud.size(); ++kept) {
      if ((kept & ~sampled) == 0 && std::popcount(kept) == std::min(size, cap))
        left.push_back(kept);
    }
    const double chance = std::pow(rate, size) * std::pow(1 - rate, n - size);
    for (const unsigned kept : left) {
      cloud[kept].second += chance / static_cast<double>(left.size());
    }
  }
  return cloud;
}

// Masses of the cells of the plane, without a common factor.
std::vector<double> CellsOf(const Cloud& cloud, double sigma, double reach, double step) {
  const auto half = static_cast<int>(reach / step);
  const auto side = static_cast<std::size_t>(2 * half + 1);
  std::vector<double> cells(side * side, 0.0);
  std::vector<double> across(side);
  std::vector<double> up(side);
  for (const auto& [centre, chance] : cloud) {
    if (!(chance > 0)) continue;
    for (int i = -half; i <= half; ++i) {
      const auto at = static_cast<std::size_t>(i + half);
      const double x = (i * step - centre.x) / sigma;
      const double y = (i * step - centre.y) / sigma;
      across[at] = std::exp(-0.5 * x * x);
      up[at] = std::exp(-0.5 * y * y);
    }
    const double weight = chance * step * step / (2 * M_PI * sigma * sigma);
    for (std::size_t i = 0; i < side; ++i) {
      for (std::size_t k = 0; k < side; ++k) cells[i * side + k] += weight * across[i] * up[k];
    }
  }
  return cells;
}

// No pair of clouds is above the upper pairs, to either side.
void ExpectDominated(const Cloud& p, const Cloud& q, double sigma, const DominatingPairs& pairs,
                     const std::string& where) {
  const double step = sigma / 8;
  const std::vector<double> p_cells = CellsOf(p, sigma, 5 + 5 * sigma, step);
  const std::vector<double> q_cells = CellsOf(q, sigma, 5 + 5 * sigma, step);
  for (const double epsilon : {0.0, 0.1, 0.4, 1.0, 2.0, 4.0}) {
    const double u = std::exp(epsilon);
    double there = 0;
    double back = 0;
    for (std::size_t i = 0; i < p_cells.size(); ++i) {
      there += std::max(0.0, p_cells[i] - u * q_cells[i]);
      back += std::max(0.0, q_cells[i] - u * p_cells[i]);
    }
    double to = 0;
    double from = 0;
    for (std::size_t d = 0; d < pairs.upper.size(); ++d) {
      const double delta = std::exp(ExactLogDelta(pairs.upper[d], epsilon));
      const bool both = pairs.upper.size() == 1;
      if (both || d % 2 == 0) to = std::max(to, delta);
      if (both || d % 2 == 1) from = std::max(from, delta);
    }
    ASSERT_LE(there, to * (1 + 2e-3) + 1e-6) << where << " " << epsilon;
    ASSERT_LE(back, from * (1 + 2e-3) + 1e-6) << where << " " << epsilon;
  }
}

TEST(NearlyFullBatch, DominatesEveryBatchOfVectorsInThePlane) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 60; ++trial) {
    const int others = 1 + trial % 4;
    const int cap = 1 + trial % 3;
    const double rate = trial % 5 == 0 ? 0.9 : 0.3;
    const double sigma = trial % 2 == 0 ? 0.6 : 1.4;
    std::vector<PlanePoint> records;
    for (int i = 0; i < others; ++i) records.push_back(RandomPoint(random, 1));
    const Cloud without = TruncatedOutputs(records, rate, cap);
    records.push_back(RandomPoint(random, 1));
    const Cloud with = TruncatedOutputs(records, rate, cap);
    records.back() = RandomPoint(random, 1);
    const Cloud replaced = TruncatedOutputs(records, rate, cap);
    records.back() = {};
    const Cloud null = TruncatedOutputs(records, rate, cap);
    for (const auto& [adjacency, other] :
         {std::pair(Adjacency::kAddRemove, &without), std::pair(Adjacency::kReplaceOne, &replaced),
          std::pair(Adjacency::kZeroOut, &null)}) {
      const Event event = Event::TruncatedPoisson(
          static_cast<std::uint64_t>(others) + 1, SamplingRate(rate),
          static_cast<std::uint64_t>(cap), Event::Gaussian(NoiseMultiplier(sigma), adjacency));
      ExpectDominated(with, *other, sigma, DominatingPairsOf(event), event.ToString());
      if (HasFatalFailure()) return;
    }
  }
}

TEST(NearlyFullBatch, ABatchOfOneIsExact) {
  for (const std::string text : {"210*truncated-poisson(16, 0.0036, 1, gaussian(0.4))",
                                 "2044*truncated-poisson(103, 0.005, 1, gaussian(1.65))",
                                 "26692*truncated-poisson(60, 0.0074, 1, gaussian(0.92))"}) {
    const AccountReport report = Account(Event::Parse("add-remove: " + text), Delta(1e-9));
    EXPECT_LT(report.value.upper - report.value.lower, 5e-3 * report.value.upper) << text;
  }
}

TEST(NearlyFullBatch, IsFarBelowTwoUnitsForFullBatches) {
  const AccountReport report =
      Account(Event::Parse("add-remove: 95548*truncated-poisson(1834, 0.00326, 7, gaussian(0.77))"),
              Delta(2e-9));
  EXPECT_LT(report.value.upper, 22);
}

TEST(MixtureReplaceOne, DominatesRandomShiftsInThePlane) {
  std::mt19937_64 random(6);
  for (int trial = 0; trial < 40; ++trial) {
    const double sigma = trial % 2 == 0 ? 0.7 : 1.5;
    const double q = trial % 3 == 0 ? 0.6 : 0.1;
    const std::vector<std::pair<double, double>> shifts = {{0, 0.3}, {0.5, 0.45}, {2, 0.25}};
    Cloud with = {{{}, 1 - q}};
    Cloud other = with;
    for (const auto& [shift, chance] : shifts) {
      with.emplace_back(trial == 0 ? PlanePoint{shift, 0} : RandomPoint(random, shift), q * chance);
      other.emplace_back(trial == 0 ? PlanePoint{-shift, 0} : RandomPoint(random, shift),
                         q * chance);
    }
    const Event event = Event::Poisson(
        SamplingRate(q),
        Event::MixtureGaussian(NoiseMultiplier(sigma), shifts, Adjacency::kReplaceOne));
    const DominatingPairs pairs = DominatingPairsOf(event);
    ASSERT_TRUE(pairs.exact);
    ExpectDominated(with, other, sigma, pairs, event.ToString());
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace sordino
