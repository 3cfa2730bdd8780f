#include "sordino/convex/internal/float_products.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace sordino::internal {
namespace {

// Against float64 products of the converted rows: every number of scores up to three tiles, sizes
// that no tile divides, with and without a last column. Entries are below 1, so a sum of k products
// of standard normal numbers has an error far below k 2^-50.
TEST(FloatProducts, AreThoseOfFloat64) {
  at::manual_seed(11);
  for (const std::int64_t scores : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 21, 30}) {
    for (const std::int64_t columns : {1, 3, 4, 7, 130}) {
      for (const std::int64_t count : {1, 2, 4, 7, 2053}) {
        for (const bool has_last : {false, true}) {
          FloatRows rows{.features = at::rand({count, columns})};
          if (has_last) rows.last_column = at::rand({count});
          at::Tensor exact = rows.features.to(at::kDouble);
          if (has_last) {
            exact = at::cat({exact, rows.last_column.to(at::kDouble).unsqueeze(1)}, 1);
          }
          const at::Tensor theta = at::randn({exact.size(1), scores}, at::kDouble);
          const at::Tensor slopes = at::randn({count, scores}, at::kDouble);
          const double score_error =
              FloatScores(rows, theta).sub(exact.mm(theta)).abs().max().item<double>();
          EXPECT_LT(score_error, 0x1p-44) << scores << ' ' << columns << ' ' << count;
          const at::Tensor products = FloatProducts(rows, slopes);
          ASSERT_EQ(products.sizes(), theta.sizes());
          EXPECT_LT(products.sub(exact.t().mm(slopes)).abs().max().item<double>(), 0x1p-40)
              << scores << ' ' << columns << ' ' << count;
        }
      }
    }
  }
}

TEST(FloatProducts, OfNoRowsAreZero) {
  for (const std::int64_t scores : {1, 3}) {
    const FloatRows rows{.features = at::rand({0, 5})};
    EXPECT_EQ(FloatScores(rows, at::ones({5, scores}, at::kDouble)).size(0), 0);
    EXPECT_EQ(FloatProducts(rows, at::ones({0, scores}, at::kDouble)).abs().sum().item<double>(),
              0);
  }
}

// Rows of weights and of slopes may be views with strides.
TEST(FloatProducts, TakeViews) {
  at::manual_seed(12);
  const FloatRows rows{.features = at::rand({9, 5})};
  const at::Tensor theta = at::randn({3, 5}, at::kDouble).t();
  EXPECT_TRUE(FloatScores(rows, theta).equal(FloatScores(rows, theta.contiguous())));
  const at::Tensor slopes = at::randn({3, 9}, at::kDouble).t();
  EXPECT_TRUE(FloatProducts(rows, slopes).equal(FloatProducts(rows, slopes.contiguous())));
}

}  // namespace
}  // namespace sordino::internal
