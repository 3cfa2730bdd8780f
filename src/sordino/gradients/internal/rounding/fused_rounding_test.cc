// Form (f) of rounding.h, with the products of tensor cores written out: inputs cut off to TF32,
// exact products, float32 sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/rounding/sum_plan.h"

namespace sordino {
namespace {

constexpr std::size_t kRows = 64;
constexpr std::size_t kWidth = 24;

using Matrix = std::vector<std::vector<float>>;

struct FusedExample {
  Matrix a;  // [rows][features]
  Matrix b;
};

float CutOff(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000U);
}

// g~, row by row of the product.
std::vector<float> Tf32Product(const FusedExample& example) {
  std::vector<float> product(kWidth * kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) {
    for (std::size_t j = 0; j < kWidth; ++j) {
      float sum = 0;
      for (std::size_t t = 0; t < kRows; ++t) {
        sum = std::fma(CutOff(example.a[t][i]), CutOff(example.b[t][j]), sum);
      }
      product[i * kWidth + j] = sum;
    }
  }
  return product;
}

std::vector<float> Float32Product(const FusedExample& example) {
  std::vector<float> product(kWidth * kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) {
    for (std::size_t j = 0; j < kWidth; ++j) {
      float sum = 0;
      for (std::size_t t = 0; t < kRows; ++t) {
        sum = std::fma(example.a[t][i], example.b[t][j], sum);
      }
      product[i * kWidth + j] = sum;
    }
  }
  return product;
}

// As the kernels: 32 squares in float32, float64 beyond.
double FusedNorm(const std::vector<float>& gradient) {
  constexpr std::size_t kSquares = 32;
  double squared = 0;
  for (std::size_t begin = 0; begin < gradient.size(); begin += kSquares) {
    float sum = 0;
    for (std::size_t k = begin; k < std::min(begin + kSquares, gradient.size()); ++k) {
      sum = std::fma(gradient[k], gradient[k], sum);
    }
    squared += static_cast<double>(sum);
  }
  return std::sqrt(squared);
}

template <typename Product>
std::vector<float> FusedClippedSum(const std::vector<FusedExample>& batch, double bound,
                                   const Product& summed) {
  std::vector<double> total(kWidth * kWidth);
  for (const FusedExample& example : batch) {
    const double factor = std::min(1.0, bound * (1 - 0x1p-50) / FusedNorm(Tf32Product(example)));
    const std::vector<float> gradient = summed(example);
    for (std::size_t k = 0; k < total.size(); ++k) {
      total[k] = std::fma(factor, static_cast<double>(gradient[k]), total[k]);
    }
  }
  return {total.begin(), total.end()};
}

double DistanceOf(const std::vector<float>& x, const std::vector<float>& y) {
  double squared = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double difference = static_cast<double>(x[k]) - static_cast<double>(y[k]);
    squared += difference * difference;
  }
  return std::sqrt(squared);
}

// Rows in pairs that cancel but for about 2^-`bits` of them.
FusedExample CancellingExample(int bits, std::mt19937& random) {
  std::normal_distribution<float> normal;
  FusedExample example;
  for (std::size_t t = 0; t < kRows; ++t) {
    std::vector<float> a(kWidth);
    std::vector<float> b(kWidth);
    for (std::size_t k = 0; k < kWidth; ++k) {
      a[k] = normal(random);
      b[k] = normal(random);
      if (t % 2 == 1) {
        a[k] = -example.a[t - 1][k] * (1 + std::ldexp(normal(random), -bits));
        b[k] = example.b[t - 1][k];
      }
    }
    example.a.push_back(a);
    example.b.push_back(b);
  }
  return example;
}

double SlackOf(std::int64_t batch) {
  return PlanSum({.largest_batch = batch, .coordinates = kWidth * kWidth}, 0.01).slack;
}

TEST(FusedRounding, OfTf32ProductsThatAreSummedAsTheyAreIsCoveredByTheSlack) {
  std::mt19937 random(3);
  for (const int bits : {0, 6, 10, 14, 20, 30}) {
    for (int trial = 0; trial < 8; ++trial) {
      std::vector<FusedExample> batch;
      batch.reserve(6);
      for (int k = 0; k < 6; ++k) batch.push_back(CancellingExample(bits, random));
      const std::vector<float> with = FusedClippedSum(batch, 1e-3, Tf32Product);
      batch.erase(batch.begin() + trial % 6);
      const std::vector<float> without = FusedClippedSum(batch, 1e-3, Tf32Product);
      EXPECT_LE(DistanceOf(with, without), 1e-3 * (1 + SlackOf(6))) << bits;
    }
  }
}

// The same factors beside products with other bits: rows that cancel leave nothing of the bound.
TEST(FusedRounding, WouldBeUnboundedIfTheSumHadOtherBitsThanTheNorm) {
  std::mt19937 random(4);
  double largest = 0;
  for (int trial = 0; trial < 20; ++trial) {
    // All of what does not cancel lies below what TF32 keeps: the computed gradient is 0.
    FusedExample example = CancellingExample(30, random);
    for (std::size_t t = 1; t < kRows; t += 2) {
      for (std::size_t k = 0; k < kWidth; ++k) {
        example.a[t - 1][k] = CutOff(example.a[t - 1][k]);
        example.a[t][k] =
            -std::bit_cast<float>(std::bit_cast<std::uint32_t>(example.a[t - 1][k]) | 0x1000U);
      }
    }
    const std::vector<float> sum = FusedClippedSum({example}, 1e-3, Float32Product);
    largest = std::max(largest, DistanceOf(sum, std::vector<float>(sum.size())));
    const std::vector<float> same = FusedClippedSum({example}, 1e-3, Tf32Product);
    EXPECT_LE(DistanceOf(same, std::vector<float>(same.size())), 1e-3 * (1 + SlackOf(1)));
  }
  EXPECT_GT(largest, 1e-2);
}

}  // namespace
}  // namespace sordino
