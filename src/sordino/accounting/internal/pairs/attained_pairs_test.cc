#include "sordino/accounting/internal/pairs/attained_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"

namespace sordino {
namespace {

using Centres = std::map<int, double>;

// delta(epsilon) of two mixtures of Gaussians on the line, by a midpoint rule.
double MixtureDelta(const Centres& p, const Centres& q, double sigma, double epsilon) {
  const double step = sigma / 400;
  const auto density = [&](const Centres& centres, double x) {
    double sum = 0;
    for (const auto& [centre, weight] : centres) {
      const double z = (x - centre) / sigma;
      sum += weight * std::exp(-0.5 * z * z);
    }
    return sum / (sigma * std::sqrt(2 * M_PI));
  };
  const double low = std::min(p.begin()->first, q.begin()->first) - 9 * sigma;
  const double high = std::max(p.rbegin()->first, q.rbegin()->first) + 9 * sigma;
  double delta = 0;
  for (double x = low + 0.5 * step; x < high; x += step) {
    delta += step * std::max(0.0, density(p, x) - std::exp(epsilon) * density(q, x));
  }
  return delta;
}

// Every set of sampled records, and every subset that a cap leaves of it. The last of the records
// contributes `own`, the others -1.
Centres CentresByEnumeration(int records, double rate, int cap, int own) {
  Centres centres;
  for (unsigned sampled = 0; sampled < (1U << records); ++sampled) {
    const int size = std::popcount(sampled);
    const double chance = std::pow(rate, size) * std::pow(1 - rate, records - size);
    std::vector<unsigned> left;
    for (unsigned kept = 0; kept < (1U << records); ++kept) {
      if ((kept & ~sampled) == 0 && std::popcount(kept) == std::min(size, cap))
        left.push_back(kept);
    }
    for (const unsigned kept : left) {
      const bool with = (kept >> (records - 1)) & 1U;
      const int centre = -(std::popcount(kept) - (with ? 1 : 0)) + (with ? own : 0);
      centres[centre] += chance / static_cast<double>(left.size());
    }
  }
  return centres;
}

TEST(AttainedPairs, APushedOutRecordMatchesTheEnumerationOfAllBatches) {
  const int records = 6;
  const double rate = 0.6;
  for (const int cap : {2, 3, 5}) {
    for (const double sigma : {0.5, 1.5}) {
      for (const Adjacency adjacency :
           {Adjacency::kAddRemove, Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
        const Centres with = CentresByEnumeration(records, rate, cap, 1);
        const Centres without =
            adjacency == Adjacency::kAddRemove
                ? CentresByEnumeration(records - 1, rate, cap, -1)
                : CentresByEnumeration(records, rate, cap,
                                       adjacency == Adjacency::kZeroOut ? 0 : -1);
        const Event event =
            Event::TruncatedPoisson(records, SamplingRate(rate), static_cast<std::uint64_t>(cap),
                                    Event::Gaussian(NoiseMultiplier(sigma), adjacency));
        const DominatingPairs pairs = DominatingPairsOf(event);
        ASSERT_GE(pairs.lower.size(), 3U);
        const std::size_t last = pairs.lower.size() - 1;
        for (const double epsilon : {0.0, 0.3, 1.0}) {
          const std::string where = event.ToString() + " " + std::to_string(epsilon);
          const double forward = MixtureDelta(with, without, sigma, epsilon);
          const double back = MixtureDelta(without, with, sigma, epsilon);
          EXPECT_NEAR(std::exp(ExactLogDelta(pairs.lower[last - 1], epsilon)), forward,
                      2e-3 * forward + 1e-5)
              << where;
          EXPECT_LE(std::exp(ExactLogDelta(pairs.lower[last - 1], epsilon)), forward + 1e-6)
              << where;
          EXPECT_NEAR(std::exp(ExactLogDelta(pairs.lower[last], epsilon)), back, 2e-3 * back + 1e-5)
              << where;
          EXPECT_LE(std::exp(ExactLogDelta(pairs.lower[last], epsilon)), back + 1e-6) << where;
          double upper = -kInfinity;
          for (const LossPair& pair : pairs.upper) {
            upper = std::max(upper, ExactLogDelta(pair, epsilon));
          }
          EXPECT_LE(std::max(forward, back), std::exp(upper) * (1 + 1e-6)) << where;
        }
      }
    }
  }
}

// (1-q) M(y) + q M(x) against (1-q) M(y) + q M(x') in the plane, by a midpoint rule.
TEST(AttainedPairs, TheTriangleMatchesAnIntegralOverThePlane) {
  const double q = 0.2;
  const double sigma = 0.8;
  const auto pair = TriangleOfFixedBatch(Event::Gaussian(NoiseMultiplier(sigma)), q);
  ASSERT_TRUE(pair.has_value());
  for (const double epsilon : {-0.5, 0.0, 0.2, 0.8}) {
    const double step = 0.02;
    double delta = 0;
    for (double a = -6; a < 7; a += step) {
      for (double b = -6.5; b < 6.5; b += step) {
        const auto density = [&](double x, double y) {
          return std::exp(-0.5 * ((a - x) * (a - x) + (b - y) * (b - y)) / (sigma * sigma)) /
                 (2 * M_PI * sigma * sigma);
        };
        const double stay = (1 - q) * density(0, 0);
        const double p = stay + q * density(1, 0);
        const double other = stay + q * density(0.5, 0.5 * std::sqrt(3.0));
        delta += step * step * std::max(0.0, p - std::exp(epsilon) * other);
      }
    }
    EXPECT_NEAR(std::exp(ExactLogDelta(*pair, epsilon)), delta, 5e-3 * delta) << epsilon;
    EXPECT_LE(std::exp(ExactLogDelta(*pair, epsilon)), delta + 1e-5) << epsilon;
  }
}

TEST(AttainedPairs, TrianglesAreDominatedByTheGluedPair) {
  for (const Event& child : {Event::Gaussian(NoiseMultiplier(1.3), Adjacency::kZeroOut),
                             Event::Laplace(NoiseMultiplier(0.7), Adjacency::kZeroOut),
                             Event::Laplace(NoiseMultiplier(4), Adjacency::kZeroOut),
                             Event::Pure(Epsilon(1.5), Adjacency::kZeroOut)}) {
    for (const double rate : {1e-3, 0.3, 0.9}) {
      const auto triangle = TriangleOfFixedBatch(child, rate);
      ASSERT_TRUE(triangle.has_value());
      const DominatingPairs pairs = DominatingPairsOf(Event::Fixed(SamplingRate(rate), child));
      for (const double epsilon : {-1.0, -0.1, 0.0, 1e-3, 0.1, 0.6, 2.0}) {
        EXPECT_LE(ExactLogDelta(*triangle, epsilon), ExactLogDelta(pairs.upper[0], epsilon) + 1e-11)
            << child.ToString() << " " << rate << " " << epsilon;
      }
    }
  }
}

// Given values that neighbouring datasets attain; the lower ends were 10.99, 0.0225 and 13.03.
TEST(AttainedPairs, LowerEndsReachWhatIsAttained) {
  struct Row {
    const char* event;
    double delta;
    double attained;
  };
  for (const Row& row :
       {Row{"add-remove: 1000*truncated-poisson(2000, 0.1, 100, gaussian(1))", 1e-5, 59.5756},
        Row{"replace-one: 45*fixed(0.00105, gaussian(1.116))", 3.671e-7, 0.0548},
        Row{"zero-out: 100000*fixed(0.001, gaussian(0.5))", 1e-5, 15.28}}) {
    const Interval spent = CertifiedEpsilon(Event::Parse(row.event), std::log(row.delta)).value;
    EXPECT_GE(spent.lower, row.attained * 0.995) << row.event;
    EXPECT_GE(spent.upper, row.attained) << row.event;
  }
}

}  // namespace
}  // namespace sordino
