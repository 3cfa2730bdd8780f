// The bound for ghost norms and for sums of their rows, against exact arithmetic: as in
// rounding_test.cc, with Gram matrices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/testing/rounding_test_support.h"

namespace sordino {
namespace {

using Vector = std::vector<float>;

// Ghost norms. One use with two rows a_1 = (1, s, s, ...), a_2 = (-1, s, s, ...) and b = 1, where
// s^2 is just below half a unit in the last place of 1: the Gram entries of a row with itself lose
// every s^2, the mixed one keeps them, and the computed squared norm of g = (0, 2s, 2s, ...) is
// half of the true one.
struct TwoRows {
  double computed_norm = 0;
  double norm = 0;
  double kappa = 0;
};

TwoRows RowsThatCancel(std::size_t features) {
  const float s = 0x1.fffp-13F;
  const auto dot = [&](float x, float y) {
    float sum = x * y;
    for (std::size_t j = 1; j < features; ++j) {
      sum += s * s;
    }
    return static_cast<double>(sum);
  };
  const double squares =
      static_cast<double>(s) * static_cast<double>(s) * static_cast<double>(features - 1);
  TwoRows rows;
  rows.computed_norm = std::sqrt(dot(1, 1) + 2 * dot(1, -1) + dot(-1, -1));
  rows.norm = std::sqrt(4 * squares);
  rows.kappa = 2 * std::sqrt(1 + squares);
  return rows;
}

TEST(GhostNormFactor, CoversNormsOfRowsThatCancel) {
  constexpr std::int64_t kFeatures = 4096;
  const TwoRows rows = RowsThatCancel(kFeatures);
  ASSERT_LT(rows.computed_norm, 0.72 * rows.norm);
  for (const double cancellation : {1.0, 10.0, 50.0, 100.0, 1000.0}) {
    const double factor = std::min(1 / rows.computed_norm, cancellation / rows.kappa);
    EXPECT_LE(factor * rows.norm, GhostNormFactor(GhostModel(kFeatures, 2, cancellation)))
        << cancellation;
  }
}

TEST(GhostNormFactor, IsReachedToThreeQuartersByRowsThatCancel) {
  constexpr std::int64_t kFeatures = 4096;
  const TwoRows rows = RowsThatCancel(kFeatures);
  const double cancellation = rows.kappa / rows.computed_norm;
  const double factor = GhostNormFactor(GhostModel(kFeatures, 2, cancellation));
  EXPECT_GE(rows.norm / rows.computed_norm, 0.75 * factor);
  // What the factor adds to 1 would be violated if it were ten times smaller.
  EXPECT_GT(rows.norm / rows.computed_norm, 1 + (factor - 1) / 10);
}

TEST(GhostNormFactor, IsReachedByOneRowWhoseSquaresAreLost) {
  constexpr std::int64_t kFeatures = 4096;
  const double s = 0x1.fffp-13;
  // |a|^2 is computed as 1: each s^2 is rounded away.
  const double norm = std::sqrt(1 + s * s * static_cast<double>(kFeatures - 1));
  const double factor = GhostNormFactor(GhostModel(kFeatures, 1, 1));
  EXPECT_LE(norm, factor);
  EXPECT_GT(norm, 1 + 0.9 * (factor - 1));
}

TEST(GhostNormFactor, WithoutALimitOnCancellationTheNormIsLost) {
  const TwoRows rows = RowsThatCancel(64);
  EXPECT_LT(rows.computed_norm, 0.75 * rows.norm);
  EXPECT_GT(rows.kappa / rows.norm, 100);
  EXPECT_GT(GhostNormFactor(GhostModel(64, 2, 1e6)), 1e3);
}

TEST(GhostNormFactor, CoversRowsWhoseSquaresUnderflow) {
  // The squares of all 256 entries of a are 0 in float32 while |b| = kMaxRowsNorm: the largest
  // gradient that rule (e) lets a Gram matrix hide. Its computed norm is 0 and its factor 1.
  const float a = 0x1p-75F;
  EXPECT_EQ(a * a, 0.0F);
  const double hidden = static_cast<double>(a) * 16 * kMaxRowsNorm;
  RoundingModel model = GhostModel(257, 1, 1);
  model.underflow = 0x1p-149;
  model.smallest_bound = 0x1p-40;
  EXPECT_GT(hidden, 30 * model.smallest_bound);
  EXPECT_LE(hidden, model.smallest_bound * GhostNormFactor(model));
  model.smallest_bound = 1e-6;
  EXPECT_LT(GhostNormFactor(model), 1.001);
}

// A ghost use end to end: float32 Gram matrices, the limit on cancellation, float32 products over
// blocks of rows. Rows are [example][row][feature].
struct Rows {
  std::vector<std::vector<Vector>> a;
  std::vector<std::vector<Vector>> b;
};

float Dot(const Vector& x, const Vector& y) {
  float sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    sum += x[j] * y[j];
  }
  return sum;
}

float GhostFactor(const std::vector<Vector>& a, const std::vector<Vector>& b, double cancellation) {
  double squared = 0;
  double kappa = 0;
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (std::size_t s = 0; s < a.size(); ++s) {
      squared += static_cast<double>(Dot(a[t], a[s]) * Dot(b[t], b[s]));
    }
    kappa += std::sqrt(static_cast<double>(Dot(a[t], a[t]))) *
             std::sqrt(static_cast<double>(Dot(b[t], b[t])));
  }
  // A squared norm that rounding made negative is not a number, and not finite: factor 0.
  const double norm = std::sqrt(squared);
  const double factor = std::min({1.0, (1 - 0x1p-50) / norm, cancellation / kappa});
  return std::isnan(norm) ? 0.0F : static_cast<float>(factor);
}

Vector GhostSum(const Rows& rows, double cancellation, std::size_t rows_per_sum) {
  const std::size_t p = rows.a[0][0].size();
  const std::size_t q = rows.b[0][0].size();
  std::vector<Vector> left;
  std::vector<Vector> right;
  for (std::size_t i = 0; i < rows.a.size(); ++i) {
    const float factor = GhostFactor(rows.a[i], rows.b[i], cancellation);
    for (std::size_t t = 0; t < rows.a[i].size(); ++t) {
      left.push_back(rows.a[i][t]);
      right.push_back(rows.b[i][t]);
      for (float& entry : right.back()) {
        entry *= factor;
      }
    }
  }
  std::vector<double> total(p * q, 0.0);
  for (std::size_t begin = 0; begin < left.size(); begin += rows_per_sum) {
    for (std::size_t j = 0; j < p * q; ++j) {
      float sum = 0;
      for (std::size_t r = begin; r < std::min(left.size(), begin + rows_per_sum); ++r) {
        sum += left[r][j / q] * right[r][j % q];
      }
      total[j] += static_cast<double>(sum);
    }
  }
  return {total.begin(), total.end()};
}

TEST(RoundingSlack, CoversGhostSumsOfRowsThatNearlyCancel) {
  constexpr std::size_t kExamples = 40;
  constexpr std::size_t kRows = 6;
  constexpr std::size_t kInput = 9;
  constexpr std::size_t kOutput = 5;
  constexpr double kCancellation = 16;
  RoundingModel model = GhostModel(kInput + kOutput, kRows, kCancellation);
  model.largest_batch = kExamples;
  model.rows_per_sum = 32;
  model.coordinates = kInput * kOutput;
  const auto limit = 1 + static_cast<long double>(RoundingSlack(model));
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  for (const float difference : {1.0F, 1e-2F, 1e-4F, 1e-6F}) {
    for (const float size : {1e-3F, 1.0F, 1e4F}) {
      Rows rows;
      for (std::size_t i = 0; i < kExamples; ++i) {
        Vector a(kInput);
        Vector b(kOutput);
        std::generate(a.begin(), a.end(), [&] { return size * normal(random); });
        std::generate(b.begin(), b.end(), [&] { return normal(random); });
        std::vector<Vector> a_rows;
        std::vector<Vector> b_rows;
        for (std::size_t t = 0; t < kRows; ++t) {
          a_rows.push_back(a);
          b_rows.push_back(b);
          for (float& entry : b_rows.back()) {
            entry = (t % 2 == 0 ? entry : -entry) * (1 + difference * normal(random));
          }
        }
        rows.a.push_back(a_rows);
        rows.b.push_back(b_rows);
      }
      Rows neighbour = rows;
      neighbour.a.erase(neighbour.a.begin());
      neighbour.b.erase(neighbour.b.begin());
      EXPECT_LE(Distance(GhostSum(rows, kCancellation, 32), GhostSum(neighbour, kCancellation, 32)),
                limit)
          << "difference " << difference << " size " << size;
    }
  }
}

}  // namespace
}  // namespace sordino
