// Decisions of every kind against 100 digits, and statistics with the rates of false alarms of
// discrete_gaussian_test.cc: p-values above 1e-6, scores below 6.
#include "sordino/random/indexed_gaussian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/random/testing/test_support.h"

namespace sordino {
namespace {

using Real = boost::multiprecision::cpp_bin_float_100;

constexpr double kSigmas[] = {0.5, 1, 1.7, 39.3, 50, 777.7, 0x1p20, 0x1.8p39, 0x1p40};

ChaChaKey KeyOf(std::uint64_t seed) {
  InsecureSeededGenerator generator(seed);
  return DrawChaChaKey(generator);
}

std::vector<std::int64_t> Values(const IndexedGaussian& gaussian, std::uint64_t seed,
                                 std::uint64_t draw, std::size_t count, std::uint64_t first = 0) {
  std::vector<std::int64_t> values(count);
  gaussian.Fill(KeyOf(seed), draw, first, values);
  return values;
}

// M rho(x) / H_j; the weight is doubled where zero is halved.
Real ExactAcceptance(const IndexedTable& table, double sigma, std::uint64_t bin,
                     std::uint64_t magnitude) {
  const Real ratio = Real(magnitude) / Real(sigma);
  return Real(table.factor) / Real(table.weight[bin]) * exp(Real(-ratio * ratio / 2));
}

std::uint64_t FirstOf(const IndexedTable& table, std::uint64_t bin) {
  return bin << table.quick.position_bits;
}

TEST(IndexedGaussian, DoublesAreWithinTheirSlack) {
  std::mt19937_64 random(5);
  double largest_exponent = 0;
  for (const double sigma : kSigmas) {
    const IndexedGaussian gaussian(sigma);
    const IndexedTable& table = gaussian.table();
    const std::uint64_t width = std::uint64_t{1} << table.quick.position_bits;
    for (std::uint64_t bin = 0; bin < table.quick.bins; ++bin) {
      for (const std::uint64_t position : {std::uint64_t{0}, random() % width, width - 1}) {
        const std::uint64_t first = FirstOf(table, bin);
        const double t = static_cast<double>(position) * static_cast<double>(2 * first + position) *
                         table.exponent_factor;
        largest_exponent = std::max(largest_exponent, t);
        const double bound = table.acceptance[bin] * IndexedExponential(t);
        const Real exact =
            ldexp(ExactAcceptance(table, sigma, bin, first + position), kIndexedUBits);
        ASSERT_LT(abs(Real(bound) / exact - 1), 0x1p-31) << sigma << " bin " << bin;
      }
      const Real lowest = ExactAcceptance(table, sigma, bin, FirstOf(table, bin) + width - 1);
      ASSERT_LE(Real(table.quick.sure_below[bin]), ldexp(lowest, kIndexedUBits));
      // Acceptance is a probability.
      ASSERT_LE(ExactAcceptance(table, sigma, bin, FirstOf(table, bin)), 1);
    }
  }
  EXPECT_LT(largest_exponent, 1.33);
}

// What lies beyond is what the distance in total variation counts.
TEST(IndexedGaussian, CoversThirteenSigmas) {
  for (const double sigma : kSigmas) {
    const IndexedGaussian gaussian(sigma);
    const IndexedQuickTable& table = gaussian.table().quick;
    EXPECT_GT(static_cast<double>(std::uint64_t{table.bins} << table.position_bits), 13 * sigma);
    EXPECT_LE(table.position_bits, kIndexedPositionBits);
  }
}

// The probability that a candidate is accepted, which the bound on retries rests on.
TEST(IndexedGaussian, CandidatesAreMostlyAccepted) {
  for (const double sigma : kSigmas) {
    const IndexedGaussian gaussian(sigma);
    const IndexedTable& table = gaussian.table();
    double accepted = 0;
    for (std::uint32_t bin = 0; bin < table.quick.bins; ++bin) {
      // The lowest acceptance of a bin, weighted by how often the bin comes.
      const double weight =
          static_cast<double>(table.weight[bin]) / (table.quick.zero_is_halved && bin == 0 ? 2 : 1);
      accepted += weight * table.quick.sure_below[bin];
    }
    EXPECT_GT(accepted / 0x1p41 / 0x1p25, 0.9) << sigma;
  }
}

// u agrees with the acceptance in all its 25 bits: blocks of many keys decide, as their digits say.
TEST(IndexedGaussian, BorderlineCandidatesAreDecidedAsTheirDigitsSay) {
  std::mt19937_64 random(6);
  int accepted = 0;
  int rejected = 0;
  for (const double sigma : kSigmas) {
    const IndexedGaussian gaussian(sigma);
    const IndexedTable& table = gaussian.table();
    const std::uint64_t width = std::uint64_t{1} << table.quick.position_bits;
    for (int round = 0; round < 300; ++round) {
      IndexedCandidate candidate{};
      candidate.bin = static_cast<std::uint32_t>(random() % table.quick.bins);
      candidate.magnitude = FirstOf(table, candidate.bin) + random() % width;
      const Real bound =
          ldexp(ExactAcceptance(table, sigma, candidate.bin, candidate.magnitude), kIndexedUBits);
      const auto whole = static_cast<std::uint64_t>(bound);
      if (whole >= std::uint64_t{1} << kIndexedUBits) continue;
      const ChaChaKey key = KeyOf(random());
      const IndexedBlockName name = {random(), random() >> 16, 3};
      const auto c = static_cast<std::uint32_t>(random() % kIndexedCandidates);
      const auto decide = [&](std::uint64_t u) {
        candidate.u = static_cast<std::uint32_t>(u);
        return IndexedAccepts(key, name, c, candidate, table);
      };
      // The further bits of u, read as the header says.
      const ChaChaBlock more = ChaCha20(key, IndexedInput(name, 1 + c));
      Real further = ldexp(Real(more.word[4] >> kIndexedUBits), -7);
      for (int i = 3; i >= 0; --i) further += ldexp(Real(more.word[i]), -7 - 32 * (4 - i));
      const bool wanted = Real(whole) + further < bound;
      EXPECT_EQ(decide(whole), wanted) << sigma;
      (wanted ? accepted : rejected) += 1;
      if (whole > 0) {
        EXPECT_TRUE(decide(whole - 1));
      }
      if (whole + 1 < std::uint64_t{1} << kIndexedUBits) {
        EXPECT_FALSE(decide(whole + 1));
      }
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(rejected, 500);
}

// The three steps are one decision: values are the same when integers decide all of them.
TEST(IndexedGaussian, ValuesAreThoseOfExactDecisions) {
  for (const double sigma : kSigmas) {
    const IndexedGaussian gaussian(sigma);
    IndexedTable exact = gaussian.table();
    for (std::uint32_t& sure : exact.quick.sure_below) sure = 0;
    exact.slack = 0x1p200;
    const ChaChaKey key = KeyOf(7);
    constexpr std::uint64_t kGroups = 2000;
    const std::vector<std::int64_t> values = Values(gaussian, 7, 11, kIndexedGroup * kGroups);
    for (std::uint64_t group = 0; group < kGroups; ++group) {
      std::int64_t wanted[kIndexedGroup];
      ASSERT_TRUE(DrawIndexedGroup(key, 11, group, exact.quick, exact, wanted));
      for (std::size_t k = 0; k < kIndexedGroup; ++k) {
        ASSERT_EQ(values[kIndexedGroup * group + k], wanted[k]) << sigma << " group " << group;
      }
    }
  }
}

// Candidates one by one, accepted by 100 digits, in the order of the header.
TEST(IndexedGaussian, ValuesAreTheFirstFourAcceptedCandidates) {
  for (const double sigma : {1.7, 50.0, 0x1.8p39}) {
    const IndexedGaussian gaussian(sigma);
    const IndexedTable& table = gaussian.table();
    const ChaChaKey key = KeyOf(8);
    int second_blocks = 0;
    constexpr std::uint64_t kGroups = 3000;
    const std::vector<std::int64_t> values = Values(gaussian, 8, 5, kIndexedGroup * kGroups);
    for (std::uint64_t group = 0; group < kGroups; ++group) {
      std::vector<std::int64_t> wanted;
      for (std::uint32_t retry = 0; wanted.size() < kIndexedGroup; ++retry) {
        second_blocks += retry == 1 ? 1 : 0;
        const ChaChaBlock block = ChaCha20(key, IndexedInput({5, group, retry}, 0));
        for (std::size_t c = 0; c < kIndexedCandidates; ++c) {
          const IndexedCandidate candidate = IndexedCandidateOf(block, c, table.quick);
          if (candidate.bin == table.quick.bins) continue;
          const Real u = ldexp(Real(candidate.u), -kIndexedUBits);
          const Real bound = ExactAcceptance(table, sigma, candidate.bin, candidate.magnitude);
          ASSERT_GT(abs(u - bound), 0x1p-40) << "take another key";
          if (u > bound) continue;
          if (candidate.negative && candidate.magnitude == 0 && !table.quick.zero_is_halved) {
            continue;
          }
          const auto value = static_cast<std::int64_t>(candidate.magnitude);
          wanted.push_back(candidate.negative ? -value : value);
        }
      }
      for (std::size_t k = 0; k < kIndexedGroup; ++k) {
        ASSERT_EQ(values[kIndexedGroup * group + k], wanted[k]);
      }
    }
    if (sigma > 39) {
      EXPECT_GT(second_blocks, 0);
    }
  }
}

TEST(IndexedGaussian, AValueDependsOnItsCoordinateAlone) {
  const IndexedGaussian gaussian(0x1.8p39);
  const std::vector<std::int64_t> all = Values(gaussian, 9, 3, 1000);
  for (const std::size_t first : {0, 1, 2, 3, 4, 5, 997}) {
    for (const std::size_t count : {1, 2, 3, 4, 7}) {
      if (first + count > all.size()) continue;
      const std::vector<std::int64_t> part = Values(gaussian, 9, 3, count, first);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<long>(first)));
    }
  }
}

// A table of zeros accepts nothing: nobody may take that for noise.
TEST(IndexedGaussian, ABrokenTableGivesNoValues) {
  const IndexedTable broken{};
  std::int64_t values[kIndexedGroup];
  EXPECT_FALSE(DrawIndexedGroup(KeyOf(1), 0, 0, broken.quick, broken, values));
}

TEST(IndexedGaussian, RefusesASigmaOutOfRange) {
  EXPECT_THROW(IndexedGaussian(0.49), Error);
  EXPECT_THROW(IndexedGaussian(0x1.0000000000001p40), Error);
}

// Probabilities of the integers up to 13 sigma.
std::map<std::int64_t, double> Probabilities(double sigma) {
  std::map<std::int64_t, double> exact;
  const auto reach = static_cast<std::int64_t>(std::ceil(13 * sigma));
  double total = 0;
  for (std::int64_t x = -reach; x <= reach; ++x) {
    exact[x] = std::exp(-static_cast<double>(x * x) / (2 * sigma * sigma));
    total += exact[x];
  }
  for (auto& [x, probability] : exact) probability /= total;
  return exact;
}

// Five p-values.
TEST(IndexedGaussian, ChiSquareMatchesTheProbabilities) {
  for (const double sigma : {0.5, 1.0, 1.7, 39.3, 50.0}) {
    const std::map<std::int64_t, double> exact = Probabilities(sigma);
    std::map<std::int64_t, std::uint64_t> counted;
    for (const std::int64_t value : Values(IndexedGaussian(sigma), 10, 0, Draws(4'000'000))) {
      ++counted[value];
    }
    std::vector<std::uint64_t> counts;
    std::vector<double> probabilities;
    for (const auto& [x, probability] : exact) {
      counts.push_back(counted[x]);
      probabilities.push_back(probability);
    }
    EXPECT_GT(GoodnessOfFit(counts, probabilities), 1e-6) << sigma;
  }
}

// Kolmogorov's statistic and four moments at the sigmas of training.
TEST(IndexedGaussian, LargeSigmasHaveTheDistributionOfAGaussian) {
  for (const double sigma : {0x1p39, 0x1.5555p39, 0x1.fffffp39}) {
    std::vector<std::int64_t> values = Values(IndexedGaussian(sigma), 11, 1, Draws(4'000'000));
    const auto n = static_cast<double>(values.size());
    double sums[5] = {};
    for (const std::int64_t value : values) {
      const double z = static_cast<double>(value) / sigma;
      double power = 1;
      for (int k = 1; k <= 4; ++k) sums[k] += power *= z;
    }
    // Variances of z, z^2, z^3, z^4: 1, 2, 15, 96.
    EXPECT_LT(std::abs(sums[1]), 6 * std::sqrt(n));
    EXPECT_LT(std::abs(sums[2] - n), 6 * std::sqrt(2 * n));
    EXPECT_LT(std::abs(sums[3]), 6 * std::sqrt(15 * n));
    EXPECT_LT(std::abs(sums[4] - 3 * n), 6 * std::sqrt(96 * n));
    std::sort(values.begin(), values.end());
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double cdf = std::erfc(-static_cast<double>(values[i]) / sigma / M_SQRT2) / 2;
      const auto rank = static_cast<double>(i);
      largest = std::max({largest, std::abs(cdf - rank / n), std::abs(cdf - (rank + 1) / n)});
    }
    EXPECT_LT(largest, 2.7 / std::sqrt(n));  // crossed with probability 9e-7
  }
}

// The position inside a bin, whose bits the moments do not see.
TEST(IndexedGaussian, LowBitsAreUniform) {
  const std::vector<std::int64_t> values =
      Values(IndexedGaussian(0x1.5555p39), 12, 2, Draws(4'000'000));
  for (int bit = 0; bit < 37; bit += 3) {
    double ones = 0;
    for (const std::int64_t value : values) ones += static_cast<double>((value >> bit) & 1);
    const auto n = static_cast<double>(values.size());
    EXPECT_LT(std::abs(2 * ones - n), 6 * std::sqrt(n)) << bit;
  }
}

double Product(const std::vector<std::int64_t>& a, std::size_t skip_a,
               const std::vector<std::int64_t>& b, std::size_t skip_b, double sigma) {
  double sum = 0;
  const std::size_t count = a.size() - std::max(skip_a, skip_b);
  for (std::size_t i = 0; i < count; ++i) {
    sum +=
        static_cast<double>(a[i + skip_a]) / sigma * (static_cast<double>(b[i + skip_b]) / sigma);
  }
  return sum / std::sqrt(static_cast<double>(count));
}

// Standard scores of products, for values and for their squares less one.
TEST(IndexedGaussian, CoordinatesDrawsAndKeysAreIndependent) {
  const double sigma = 0x1.5555p39;
  const IndexedGaussian gaussian(sigma);
  const std::size_t count = Draws(1'000'000);
  const std::vector<std::int64_t> one = Values(gaussian, 13, 0, count);
  for (const std::size_t lag : {1, 2, 3, 4, 5, 8, 20}) {
    EXPECT_LT(std::abs(Product(one, 0, one, lag, sigma)), 6) << lag;
  }
  const std::uint64_t draws[] = {1, 2, std::uint64_t{1} << 32, std::uint64_t{1} << 63};
  for (const std::uint64_t draw : draws) {
    EXPECT_LT(std::abs(Product(one, 0, Values(gaussian, 13, draw, count), 0, sigma)), 6) << draw;
  }
  EXPECT_LT(std::abs(Product(one, 0, Values(gaussian, 14, 0, count), 0, sigma)), 6);
  // A group 2^32 further, where the low word of the group is the same.
  const std::vector<std::int64_t> far = Values(gaussian, 13, 0, count, std::uint64_t{1} << 34);
  EXPECT_LT(std::abs(Product(one, 0, far, 0, sigma)), 6);
}

TEST(IndexedGaussian, ASourceGivesAKeyThatItsSeedRepeats) {
  const auto words = [](Generator& generator) {
    const ChaChaKey key = DrawChaChaKey(generator);
    return std::vector<std::uint32_t>(key.word, key.word + 8);
  };
  InsecureSeededGenerator one(1);
  InsecureSeededGenerator same(1);
  EXPECT_EQ(words(one), words(same));
  SecureGenerator secure;
  EXPECT_NE(words(secure), words(secure));
  ChaChaKey key = DrawChaChaKey(secure);
  ForgetKey(key);
  for (const std::uint32_t word : key.word) EXPECT_EQ(word, 0U);
}

}  // namespace
}  // namespace sordino
