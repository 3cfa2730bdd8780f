// The conditions under which envelope.h proves the sampler exact, checked in 100-digit
// arithmetic for every bin of many tables, and its decisions with scripted bits.
#include "sordino/random/internal/envelope.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <map>
#include <vector>

#include "sordino/random/testing/test_support.h"

namespace sordino::internal {
namespace {

using Real = boost::multiprecision::cpp_bin_float_100;
using Sampler = EnvelopeSampler;

struct Case {
  EnvelopeShape shape;
  double parameter;
};

double Reach(EnvelopeShape shape) { return shape == EnvelopeShape::kGaussian ? 13 : 26; }

Sampler Build(const Case& c) { return Sampler(c.shape, c.parameter, Reach(c.shape)); }

Real Rho(const Case& c, std::uint64_t magnitude) {
  const Real ratio = Real(magnitude) / Real(c.parameter);
  return exp(c.shape == EnvelopeShape::kGaussian ? Real(-ratio * ratio / 2) : Real(-ratio));
}

// M rho(x), with the weight of zero where it is halved.
Real Target(const Case& c, const Sampler& sampler, std::uint64_t magnitude) {
  const Real target = Real(sampler.factor()) * Rho(c, magnitude);
  return sampler.halves_zero() && magnitude == 0 ? Real(target / 2) : target;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const double sigma : {0.5, 0.7, 1.0, 3.3, 39.2, 39.4, 50.0, 777.7, 0x1p20, 1e9, 0x1p40}) {
    cases.push_back({EnvelopeShape::kGaussian, sigma});
  }
  for (const double scale : {0x1p-6, 0.1, 0.5, 1.0, 7.3, 19.6, 20.0, 1234.5, 0x1p18, 0x1p40}) {
    cases.push_back({EnvelopeShape::kLaplace, scale});
  }
  return cases;
}

TEST(Envelope, CoversTheAskedReach) {
  for (const Case& c : Cases()) {
    const Sampler sampler = Build(c);
    EXPECT_GT(static_cast<double>(sampler.Period()), Reach(c.shape) * c.parameter);
    EXPECT_LT(sampler.bins(), Sampler::kColumns);
  }
}

TEST(Envelope, AliasTableHoldsTheWeightsExactly) {
  for (const Case& c : Cases()) {
    const Sampler sampler = Build(c);
    std::vector<std::uint64_t> held(Sampler::kColumns);
    for (std::size_t i = 0; i < Sampler::kColumns; ++i) {
      const Sampler::Column column = sampler.columns()[i];
      held[i] += column.cut;
      held[column.alias] += (std::uint64_t{1} << 32) - column.cut;
    }
    for (std::size_t j = 0; j < Sampler::kColumns; ++j) EXPECT_EQ(held[j], sampler.weight(j)) << j;
    EXPECT_LT(static_cast<double>(sampler.weight(sampler.bins())), 0x1p41 * 0x1p-19);
  }
}

TEST(Envelope, WeightsBoundTheTargetAndSureAcceptanceStaysBelowIt) {
  for (const Case& c : Cases()) {
    const Sampler sampler = Build(c);
    for (std::size_t j = 0; j < sampler.bins(); ++j) {
      const std::uint64_t first = std::uint64_t{j} << sampler.position_bits();
      const std::uint64_t last = ((std::uint64_t{j} + 1) << sampler.position_bits()) - 1;
      const Real weight(sampler.weight(j));
      ASSERT_GE(weight, Target(c, sampler, first)) << c.parameter << " bin " << j;
      ASSERT_LE(Real(sampler.sure_below(j)) * weight,
                ldexp(Target(c, sampler, last), Sampler::kUBits))
          << c.parameter << " bin " << j;
    }
    // The quick path would be useless if the bound were too low.
    EXPECT_GT(sampler.sure_below(0), 0.89 * (1 << Sampler::kUBits)) << c.parameter;
  }
}

// The words of a candidate in `bin`; the tests of the table show that such a column exists.
Sampler::Candidate Make(const Sampler& sampler, std::size_t bin, std::uint64_t position,
                        std::uint64_t u, bool negative) {
  constexpr std::uint64_t kSpare = std::uint64_t{1} << 42;
  for (std::size_t i = 0; i < Sampler::kColumns; ++i) {
    const Sampler::Column column = sampler.columns()[i];
    for (const std::uint64_t fraction : {std::uint64_t{0}, std::uint64_t{column.cut}}) {
      if ((fraction < column.cut ? i : column.alias) != bin) continue;
      return {kSpare | (negative ? std::uint64_t{1} << 41 : 0) | std::uint64_t{i} << 32 | fraction,
              u << Sampler::kMaxPositionBits | position};
    }
  }
  ADD_FAILURE() << "no column holds bin " << bin;
  return {};
}

// What comes out when `candidate` is examined first and, should it be rejected, `fallback`;
// `further` are the bits that exact decisions draw.
std::int64_t Outcome(const Sampler& sampler, const Sampler::Candidate& candidate,
                     const Sampler::Candidate& fallback,
                     const std::vector<std::uint64_t>& further = {}) {
  std::int64_t value = 0;
  ScriptedGenerator counting({}, std::uint64_t{1} << 42);
  sampler.Fill(counting, {&value, 1});
  const std::size_t block = counting.words_drawn();
  std::vector<std::uint64_t> script = {candidate.low, candidate.high};
  while (script.size() < block) {
    script.push_back(fallback.low);
    script.push_back(fallback.high);
  }
  script.insert(script.end(), further.begin(), further.end());
  ScriptedGenerator generator(script, ~std::uint64_t{0});
  sampler.Fill(generator, {&value, 1});
  return value;
}

// 256 bits as the generator gives them, the most significant word first.
std::vector<std::uint64_t> WordsOf(boost::multiprecision::cpp_int bits) {
  std::vector<std::uint64_t> words(4);
  for (std::size_t i = 4; i-- > 0;) {
    words[i] = static_cast<std::uint64_t>(bits & ~std::uint64_t{0});
    bits >>= 64;
  }
  EXPECT_EQ(bits, 0);
  return words;
}

TEST(Envelope, DecidesEveryUOnTheRightSideOfTheTarget) {
  for (const Case& c : Cases()) {
    const Sampler sampler = Build(c);
    const Sampler::Candidate fallback = Make(sampler, 0, 0, 0, false);
    const std::uint64_t width = std::uint64_t{1} << sampler.position_bits();
    for (std::size_t bin = 1; bin < sampler.bins(); bin += 1 + sampler.bins() / 7) {
      for (const std::uint64_t position : {std::uint64_t{0}, width / 3, width - 1}) {
        const std::uint64_t magnitude = bin * width + position;
        const Real bound =
            ldexp(Target(c, sampler, magnitude) / Real(sampler.weight(bin)), Sampler::kUBits);
        const auto whole = static_cast<std::uint64_t>(bound);
        const auto accepted = static_cast<std::int64_t>(magnitude);
        const auto outcome = [&](std::uint64_t u, const std::vector<std::uint64_t>& further) {
          return Outcome(sampler, Make(sampler, bin, position, u, false), fallback, further);
        };
        if (whole > 0) {
          EXPECT_EQ(outcome(whole - 1, {}), accepted);
        }
        if (whole + 1 < (1u << Sampler::kUBits)) {
          EXPECT_EQ(outcome(whole + 1, {}), 0);
        }
        // u agrees with the bound in its 28 bits: the next 256 decide.
        const boost::multiprecision::cpp_int next(ldexp(Real(bound - whole), 256));
        EXPECT_EQ(outcome(whole, WordsOf(next - 1)), accepted);
        EXPECT_EQ(outcome(whole, WordsOf(next + 1)), 0);
      }
    }
  }
}

TEST(Envelope, SignBitGivesTheSignAndZeroCountsOnce) {
  for (const Case& c : Cases()) {
    const Sampler sampler = Build(c);
    const Sampler::Candidate one =
        sampler.position_bits() > 0 ? Make(sampler, 0, 1, 0, false) : Make(sampler, 1, 0, 0, false);
    Sampler::Candidate minus_one = one;
    minus_one.low |= std::uint64_t{1} << 41;
    const Sampler::Candidate zero = Make(sampler, 0, 0, 0, false);
    const Sampler::Candidate minus_zero = Make(sampler, 0, 0, 0, true);
    // Zeros as further bits of u: at scale 1/64 even u = 0 is not surely below exp(-64).
    const std::vector<std::uint64_t> zeros(4);
    EXPECT_EQ(Outcome(sampler, one, zero, zeros), 1);
    EXPECT_EQ(Outcome(sampler, minus_one, zero, zeros), -1);
    EXPECT_EQ(Outcome(sampler, zero, one), 0);
    EXPECT_EQ(Outcome(sampler, minus_zero, one, zeros), sampler.halves_zero() ? 0 : 1);
  }
}

TEST(Envelope, PaddingBinIsAlwaysRejected) {
  for (const Case& c : Cases()) {
    const Sampler sampler = Build(c);
    const Sampler::Candidate zero = Make(sampler, 0, 0, 0, false);
    EXPECT_EQ(Outcome(sampler, Make(sampler, sampler.bins(), 0, 0, false), zero), 0);
  }
}

// For w = 1 the outcome of every (column, side of the cut, sign) is looked at; the total weight
// of an outcome must be in proportion to the probability that the distribution gives it.
TEST(Envelope, EnumeratedCandidatesGiveTheExactProbabilities) {
  const Case c{EnvelopeShape::kGaussian, 1.7};
  const Sampler sampler = Build(c);
  ASSERT_EQ(sampler.position_bits(), 0);
  std::map<std::int64_t, std::uint64_t> weights;
  const std::vector<std::uint64_t> zeros(4);
  const Sampler::Candidate marker = Make(sampler, sampler.bins() - 1, 0, 0, false);
  for (std::size_t i = 0; i < Sampler::kColumns; ++i) {
    const Sampler::Column column = sampler.columns()[i];
    for (const bool own : {true, false}) {
      const std::uint64_t weight = own ? column.cut : (std::uint64_t{1} << 32) - column.cut;
      if (weight == 0 || (own ? i : column.alias) == sampler.bins()) continue;
      for (const std::uint64_t sign : {0, 1}) {
        const std::uint64_t fraction = own ? 0 : column.cut;
        const Sampler::Candidate candidate{sign << 41 | std::uint64_t{i} << 32 | fraction, 0};
        weights[Outcome(sampler, candidate, marker, zeros)] += weight;
      }
    }
  }
  Real total = 0;
  for (std::int64_t x = -30; x <= 30; ++x) total += Rho(c, static_cast<std::uint64_t>(std::abs(x)));
  Real weight_total = 0;
  for (const auto& [x, weight] : weights) weight_total += Real(weight);
  for (std::int64_t x = -8; x <= 8; ++x) {
    const Real exact = Rho(c, static_cast<std::uint64_t>(std::abs(x))) / total;
    // Weights are integers out of 2^41, rounded up; acceptance takes away what is too much.
    EXPECT_LT(abs(Real(weights[x]) / weight_total - exact), ldexp(Real(1), -38)) << x;
  }
}

TEST(Envelope, LaplacePeriodsComeFromCoinsOfTheExactProbability) {
  for (const double scale : {0.1, 0.5, 30.0, 0x1p40}) {
    const Case c{EnvelopeShape::kLaplace, scale};
    const Sampler sampler = Build(c);
    Sampler::Candidate candidate = Make(sampler, 1, 0, 0, true);
    candidate.low &= (std::uint64_t{1} << 42) - 1;
    const Sampler::Candidate zero = Make(sampler, 0, 0, 0, false);
    const std::int64_t base = std::int64_t{1} << sampler.position_bits();
    // 22 zero bits are known; the next 256 are compared with those of exp(-Period / scale).
    const boost::multiprecision::cpp_int bits(
        ldexp(Rho(c, static_cast<std::uint64_t>(sampler.Period())), 22 + 256));
    EXPECT_EQ(Outcome(sampler, candidate, zero, WordsOf(bits - 1)), -(base + sampler.Period()));
    EXPECT_EQ(Outcome(sampler, candidate, zero, WordsOf(bits + 1)), -base);
    std::vector<std::uint64_t> twice(8, 0);
    EXPECT_EQ(Outcome(sampler, candidate, zero, twice), -(base + 2 * sampler.Period())) << scale;
  }
}

// Work must not depend on the values: one value always takes one block, of at least 17
// candidates, whatever is drawn (checked for 10^5 draws; a second block has probability 2^-70).
TEST(Envelope, OneValueTakesOneBlockOfFixedSize) {
  class Counting final : public Generator {
   public:
    void Fill(std::span<std::byte> out) override {
      generator_.Fill(out);
      sizes.push_back(out.size());
    }
    bool IsPrivate() const override { return false; }
    std::vector<std::size_t> sizes;

   private:
    InsecureSeededGenerator generator_{6};
  } generator;
  const Sampler sampler = Build({EnvelopeShape::kGaussian, 300.0});
  constexpr std::size_t kCalls = 100'000;
  for (std::size_t i = 0; i < kCalls; ++i) {
    std::int64_t value = 0;
    sampler.Fill(generator, {&value, 1});
  }
  ASSERT_EQ(generator.sizes.size(), kCalls);
  for (const std::size_t size : generator.sizes) ASSERT_EQ(size, 17 * sizeof(Sampler::Candidate));
}

}  // namespace
}  // namespace sordino::internal
