// Heights of the Gaussian to 144 binary digits in integers, for the processor and for GPUs.
//
// What internal/exact_coin.h does with as many digits as a decision needs is done here with a fixed
// number, so that it fits on a device. Fractions are multiples of a unit of 2^-160, rounded
// downwards.
//
// rho = exp(-x^2 / (2 p^2)) = e^4096, e = exp(-z), z = x^2 r <= 2^-5 with the rate r = 1 / (2^13
// p^2). How far the result is from rho, in units:
//   z        less than 2: r is rounded to 160 digits, a relative error of 2^-159, and the product
//            to a unit;
//   e        = 1 - z g(z), g(z) = 1 - z/2! + z^2/3! - ..., 20 terms. What is left out is below
//            2^-170. The coefficients are off by less than 2 units and each of the products by one,
//            and Horner's scheme multiplies what came before by z: g is off by less than 4, z g by
//            less than 4 z + 2 + 1, e by less than 5;
//   squares  twelve of them: e' < e doubles and adds 1. 2^12 (5 + 1) < 2^15.
// The tests compare with 100 digits.
#ifndef SORDINO_RANDOM_WIDE_FRACTION_H_
#define SORDINO_RANDOM_WIDE_FRACTION_H_

#include <cstdint>

#include "sordino/base/device_function.h"

namespace sordino {

inline constexpr int kWideLimbs = 5;
inline constexpr int kWideBits = 32 * kWideLimbs;

// The number of units, the least significant limb first.
struct WideFraction {
  std::uint32_t limb[kWideLimbs];
};

// The rate r: significand * 2^-exponent, the significand in [2^159, 2^160) units of 2^-160, rounded
// to the nearest or downwards.
struct GaussianRate {
  WideFraction significand;
  std::int32_t exponent;
};

// out = a * b, of kA and kB limbs.
template <int kA, int kB>
SORDINO_DEVICE constexpr void MultiplyLimbs(const std::uint32_t (&a)[kA],
                                            const std::uint32_t (&b)[kB],
                                            std::uint32_t (&out)[kA + kB]) {
  for (int i = 0; i < kA + kB; ++i) out[i] = 0;
  for (int i = 0; i < kA; ++i) {
    std::uint64_t carry = 0;
    for (int j = 0; j < kB; ++j) {
      carry += static_cast<std::uint64_t>(a[i]) * b[j] + out[i + j];
      out[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    out[i + kB] = static_cast<std::uint32_t>(carry);
  }
}

SORDINO_DEVICE constexpr WideFraction WideProduct(const WideFraction& a, const WideFraction& b) {
  std::uint32_t product[2 * kWideLimbs]{};
  MultiplyLimbs(a.limb, b.limb, product);
  WideFraction high{};
  for (int i = 0; i < kWideLimbs; ++i) high.limb[i] = product[kWideLimbs + i];
  return high;
}

SORDINO_DEVICE constexpr WideFraction WideDifference(const WideFraction& a, const WideFraction& b) {
  WideFraction difference{};
  std::uint64_t borrow = 0;
  for (int i = 0; i < kWideLimbs; ++i) {
    const std::uint64_t limb = std::uint64_t{a.limb[i]} - b.limb[i] - borrow;
    difference.limb[i] = static_cast<std::uint32_t>(limb);
    borrow = limb >> 63;
  }
  return difference;
}

// 1 / (k + 1)! for k = 0 ... 19; 1 is a unit less.
struct WideSeries {
  static constexpr int kTerms = 20;
  WideFraction coefficient[kTerms];
};

SORDINO_DEVICE constexpr WideSeries MakeWideSeries() {
  WideSeries series{};
  for (int i = 0; i < kWideLimbs; ++i) series.coefficient[0].limb[i] = ~std::uint32_t{0};
  for (std::uint32_t k = 1; k < WideSeries::kTerms; ++k) {
    std::uint64_t rest = 0;
    for (int i = kWideLimbs; i-- > 0;) {
      rest = rest << 32 | series.coefficient[k - 1].limb[i];
      series.coefficient[k].limb[i] = static_cast<std::uint32_t>(rest / (k + 1));
      rest %= k + 1;
    }
  }
  return series;
}

// x^2 r for x below 2^48; x^2 r <= 2^-5.
SORDINO_DEVICE constexpr WideFraction WideExponent(std::uint64_t x, const GaussianRate& rate) {
  const std::uint32_t limbs[2] = {static_cast<std::uint32_t>(x),
                                  static_cast<std::uint32_t>(x >> 32)};
  std::uint32_t square[4]{};
  MultiplyLimbs(limbs, limbs, square);
  std::uint32_t product[4 + kWideLimbs]{};
  MultiplyLimbs(square, rate.significand.limb, product);
  const int whole = rate.exponent / 32;
  const int bits = rate.exponent % 32;
  WideFraction z{};
  for (int i = 0; i < kWideLimbs; ++i) {
    const int from = i + whole;
    const std::uint64_t low = from < 4 + kWideLimbs ? product[from] : 0;
    const std::uint64_t high = from + 1 < 4 + kWideLimbs ? product[from + 1] : 0;
    z.limb[i] = static_cast<std::uint32_t>((high << 32 | low) >> bits);
  }
  return z;
}

// exp(-x^2 / (2 p^2)), off by less than 2^15 units.
SORDINO_DEVICE constexpr WideFraction WideHeight(std::uint64_t x, const GaussianRate& rate) {
  constexpr WideSeries kSeries = MakeWideSeries();
  const WideFraction z = WideExponent(x, rate);
  WideFraction sum = kSeries.coefficient[WideSeries::kTerms - 1];
  for (int k = WideSeries::kTerms - 1; k-- > 0;) {
    sum = WideDifference(kSeries.coefficient[k], WideProduct(z, sum));
  }
  WideFraction height = WideProduct(z, sum);
  for (std::uint32_t& limb : height.limb) limb = ~limb;
  for (int i = 0; i < 12; ++i) height = WideProduct(height, height);
  return height;
}

// Whether u * denominator < numerator * height.
SORDINO_DEVICE constexpr bool WideIsBelow(const WideFraction& u, std::uint64_t denominator,
                                          std::uint64_t numerator, const WideFraction& height) {
  const std::uint32_t a[2] = {static_cast<std::uint32_t>(denominator),
                              static_cast<std::uint32_t>(denominator >> 32)};
  const std::uint32_t b[2] = {static_cast<std::uint32_t>(numerator),
                              static_cast<std::uint32_t>(numerator >> 32)};
  std::uint32_t left[kWideLimbs + 2]{};
  std::uint32_t right[kWideLimbs + 2]{};
  MultiplyLimbs(u.limb, a, left);
  MultiplyLimbs(height.limb, b, right);
  for (int i = kWideLimbs + 2; i-- > 0;) {
    if (left[i] != right[i]) return left[i] < right[i];
  }
  return false;
}

}  // namespace sordino

#endif  // SORDINO_RANDOM_WIDE_FRACTION_H_
