// The tiles of small products, entry by entry as the kernel takes them.
#include "sordino/kernels/internal/row_products.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace sordino::kernels {
namespace {

TEST(RowProducts, EveryEntryIsInOneTileAndIsTheWeightedSum) {
  constexpr std::int64_t kRows = 5;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
    return values;
  };
  std::vector<double> factors = {0.5, 1, 0, 0.25, 0.125, 1, 1, 0, 0.5, 0.75};
  const std::vector<std::pair<int, int>> sizes = {{0, 33}, {1, 1}, {17, 40}, {0, 1}, {16, 16}};
  std::vector<std::vector<float>> lefts;
  std::vector<std::vector<float>> rights;
  std::vector<std::vector<int>> written;
  RowProducts all;
  all.rows = kRows;
  all.factors = factors.data();
  for (const auto& [p, q] : sizes) {
    lefts.push_back(numbers(kRows * p));
    rights.push_back(numbers(kRows * q));
    written.emplace_back(static_cast<std::size_t>(std::max(p, 1) * q));
  }
  // Of a row that does not count.
  lefts[2][2 * 17 + 3] = std::numeric_limits<float>::quiet_NaN();
  rights[2][2 * 40 + 3] = std::numeric_limits<float>::infinity();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    RowProduct& product = all.products[all.count++];
    product = {.left = sizes[k].first == 0 ? nullptr : lefts[k].data(),
               .right = rights[k].data(),
               .p = std::max(sizes[k].first, 1),
               .q = sizes[k].second,
               .group = k == 4 ? 1 : 0,
               .first_tile = all.tiles};
    all.tiles += TilesOver(product.p) * TilesOver(product.q);
  }
  for (std::int32_t tile = 0; tile < all.tiles; ++tile) {
    const int k = ProductOf(all, tile);
    const RowProduct& product = all.products[k];
    const std::int32_t own = tile - product.first_tile;
    const std::int32_t i0 = own / TilesOver(product.q) * kProductTile;
    const std::int32_t j0 = own % TilesOver(product.q) * kProductTile;
    for (std::int32_t i = i0; i < i0 + kProductTile; ++i) {
      for (std::int32_t j = j0; j < j0 + kProductTile; ++j) {
        double sum = 0;
        double expected = 0;
        const bool inside = i < product.p && j < product.q;
        for (std::int64_t r = 0; r < kRows + 3; ++r) {
          sum += ScaledLeft(all, product, r, i) * KeptRight(all, product, r, j);
          const double factor = r < kRows ? factors[product.group * kRows + r] : 0;
          if (!inside || factor == 0) continue;
          const float left = product.left == nullptr ? 1.0F : product.left[r * product.p + i];
          const float right = product.right[r * product.q + j];
          expected += factor * static_cast<double>(left) * static_cast<double>(right);
        }
        EXPECT_DOUBLE_EQ(sum, expected);
        if (inside) ++written[static_cast<std::size_t>(k)][i * product.q + j];
      }
    }
  }
  for (const std::vector<int>& counts : written) {
    for (const int count : counts) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace sordino::kernels
