// The bounds of wide_fraction.h against 100 decimal digits.
#include "sordino/random/wide_fraction.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <random>

#include "sordino/random/indexed_gaussian.h"

namespace sordino {
namespace {

using Integer = boost::multiprecision::cpp_int;
using Real = boost::multiprecision::cpp_bin_float_100;

Integer UnitsOf(const WideFraction& fraction) {
  Integer units = 0;
  for (int i = kWideLimbs; i-- > 0;) units = (units << 32) | fraction.limb[i];
  return units;
}

WideFraction RandomFraction(std::mt19937& random) {
  WideFraction fraction{};
  // Limbs of zeros and of ones carry furthest.
  for (std::uint32_t& limb : fraction.limb) {
    const std::uint32_t kind = random() % 4;
    limb = kind == 0 ? 0 : kind == 1 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(random());
  }
  return fraction;
}

TEST(WideFraction, ProductsAndDifferencesAreThoseOfIntegers) {
  std::mt19937 random(1);
  const Integer one = Integer(1) << kWideBits;
  for (int round = 0; round < 20'000; ++round) {
    const WideFraction a = RandomFraction(random);
    const WideFraction b = RandomFraction(random);
    ASSERT_EQ(UnitsOf(WideProduct(a, b)), (UnitsOf(a) * UnitsOf(b)) >> kWideBits);
    Integer difference = UnitsOf(a) - UnitsOf(b);
    if (difference < 0) difference += one;
    ASSERT_EQ(UnitsOf(WideDifference(a, b)), difference);
  }
}

TEST(WideFraction, ComparesAsIntegers) {
  std::mt19937_64 random(2);
  std::mt19937 limbs(3);
  for (int round = 0; round < 20'000; ++round) {
    const WideFraction a = RandomFraction(limbs);
    const WideFraction b = round % 3 == 0 ? a : RandomFraction(limbs);
    const std::uint64_t m = random() >> 22;
    const std::uint64_t n = round % 2 == 0 ? m : random() >> 22;
    ASSERT_EQ(WideIsBelow(a, m, n, b), UnitsOf(a) * m < UnitsOf(b) * n);
  }
}

TEST(WideFraction, CoefficientsAreReciprocalFactorials) {
  const WideSeries series = MakeWideSeries();
  Integer factorial = 1;
  for (int k = 0; k < WideSeries::kTerms; ++k) {
    factorial *= k + 1;
    const Integer exact = (Integer(1) << kWideBits) / factorial;
    EXPECT_LE(exact - UnitsOf(series.coefficient[k]), 2) << k;
    EXPECT_GE(exact, UnitsOf(series.coefficient[k])) << k;
  }
}

constexpr double kWideSigmas[] = {
    0.5, 0.7, 1, 3.3, 39.3, 777.7, 0x1.23456789abcdep20, 0x1p39, 0x1.fffffffffffffp39, 0x1p40};

// exp(-x^2 / (2 sigma^2)) * 2^160.
Real ExactHeight(std::uint64_t x, double sigma) {
  const Real ratio = Real(x) / Real(sigma);
  return ldexp(exp(Real(-ratio * ratio / 2)), kWideBits);
}

TEST(WideFraction, RateHasItsDigits) {
  for (const double sigma : kWideSigmas) {
    const IndexedGaussian gaussian(sigma);
    const GaussianRate& rate = gaussian.table().rate;
    const Integer significand = UnitsOf(rate.significand);
    EXPECT_EQ(msb(significand), kWideBits - 1U);
    const Real exact = ldexp(1 / (Real(sigma) * Real(sigma)), kWideBits + rate.exponent - 13);
    const Real off = exact - Real(significand);
    EXPECT_GE(off, 0) << sigma;
    EXPECT_LT(off, 1) << sigma;
  }
}

TEST(WideFraction, HeightsAreWithinTheirBound) {
  std::mt19937_64 random(4);
  Real largest = 0;
  for (const double sigma : kWideSigmas) {
    const IndexedGaussian gaussian(sigma);
    const IndexedTable& table = gaussian.table();
    const std::uint64_t period = std::uint64_t{table.quick.bins} << table.quick.position_bits;
    for (int round = 0; round < 500; ++round) {
      const std::uint64_t x = round == 0   ? 0
                              : round == 1 ? period - 1
                              : round < 20 ? random() % std::min<std::uint64_t>(period, 20)
                                           : random() % period;
      const Real off = Real(UnitsOf(WideHeight(x, table.rate))) - ExactHeight(x, sigma);
      ASSERT_LT(abs(off), 0x1p15) << sigma << " at " << x;
      largest = std::max(largest, Real(abs(off)));
    }
  }
  // The bound is not idle: a lost squaring or term would be noticed, and so is the real error.
  EXPECT_GT(largest, 0x1p9);
}

}  // namespace
}  // namespace sordino
