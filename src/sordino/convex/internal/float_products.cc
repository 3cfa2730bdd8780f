#include "sordino/convex/internal/float_products.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

namespace sordino::internal {
namespace {

constexpr std::int64_t kRowsOfATask = 1024;
constexpr std::int64_t kColumnsOfATask = 64;
// Sums side by side that do not wait for each other.
constexpr std::int64_t kLanes = 8;
// A tile of 4 rows or columns by 5 pairs of scores has 20 sums in registers.
constexpr std::int64_t kTile = 4;
constexpr std::int64_t kMaxPairs = 5;

using Pair [[gnu::vector_size(16)]] = double;
using Quad [[gnu::vector_size(32)]] = double;
using FloatQuad [[gnu::vector_size(16)]] = float;

#ifdef FP_FAST_FMA
constexpr bool kFusesProducts = true;
inline Pair MultiplyAdd(Pair a, double b, Pair sum) {
  return Pair{std::fma(a[0], b, sum[0]), std::fma(a[1], b, sum[1])};
}
#else
constexpr bool kFusesProducts = false;
inline Pair MultiplyAdd(Pair a, double b, Pair sum) { return sum + a * b; }
#endif

template <std::int64_t kPairs>
using Pairs = std::array<Pair, static_cast<std::size_t>(kPairs)>;

template <std::int64_t kPairs>
inline Pairs<kPairs> LoadPairs(const double* from) {
  Pairs<kPairs> pairs;
  // One at a time: a copy of the whole array would go through memory.
#pragma GCC unroll 8
  for (std::size_t k = 0; k < kPairs; ++k) std::memcpy(&pairs[k], from + 2 * k, sizeof(Pair));
  return pairs;
}

// Scores of kRows rows from `columns` apart, for weights [columns][2 kPairs].
template <std::int64_t kRows, std::int64_t kPairs>
void ScoreTile(const float* x, std::int64_t columns, const double* weights, double* out) {
  std::array<Pairs<kPairs>, static_cast<std::size_t>(kRows)> sums{};
  for (std::int64_t j = 0; j < columns; ++j) {
    const Pairs<kPairs> w = LoadPairs<kPairs>(weights + j * 2 * kPairs);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto value = static_cast<double>(x[static_cast<std::int64_t>(r) * columns + j]);
#pragma GCC unroll 8
      for (std::size_t k = 0; k < kPairs; ++k) sums[r][k] = MultiplyAdd(w[k], value, sums[r][k]);
    }
  }
  std::memcpy(out, sums.data(), sizeof(sums));
}

// out[c] += sum_i x[i][c] slopes[i] for kColumns columns of `count` rows.
template <std::int64_t kColumns, std::int64_t kPairs>
void ProductTile(const float* x, std::int64_t columns, std::int64_t count, const double* slopes,
                 double* out) {
  std::array<Pairs<kPairs>, static_cast<std::size_t>(kColumns)> sums{};
  for (std::int64_t i = 0; i < count; ++i) {
    const Pairs<kPairs> r = LoadPairs<kPairs>(slopes + i * 2 * kPairs);
    FloatQuad loaded{};
    std::memcpy(&loaded, x + i * columns, sizeof(float) * kColumns);
    const Quad values = __builtin_convertvector(loaded, Quad);
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kColumns; ++c) {
#pragma GCC unroll 8
      for (std::size_t k = 0; k < kPairs; ++k)
        sums[c][k] = MultiplyAdd(r[k], values[c], sums[c][k]);
    }
  }
  std::memcpy(out, sums.data(), sizeof(sums));
}

// Columns first ... first + 2 pairs of a matrix, with zeros beyond its last.
std::vector<double> Packed(const at::Tensor& matrix, std::int64_t first, std::int64_t pairs) {
  const std::int64_t rows = matrix.size(0);
  const std::int64_t all = matrix.size(1);
  const std::int64_t taken = std::min(2 * pairs, all - first);
  const auto* const from = matrix.const_data_ptr<double>();
  std::vector<double> packed(static_cast<std::size_t>(rows * 2 * pairs), 0);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * all + first, taken, packed.data() + i * 2 * pairs);
  }
  return packed;
}

const float* DataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

struct Operands {
  const float* x;
  const float* last;  // or nullptr
  std::int64_t count;
  std::int64_t columns;  // without the last
};

Operands OperandsOf(const FloatRows& rows) {
  return {DataOf(rows.features), DataOf(rows.last_column), rows.features.size(0),
          rows.features.size(1)};
}

// Scores first ... of the rows, into out [count, scores].
template <std::int64_t kPairs>
void AddScores(const Operands& rows, const at::Tensor& theta, std::int64_t first, double* out) {
  const std::vector<double> weights = Packed(theta, first, kPairs);
  const std::int64_t scores = theta.size(1);
  const std::int64_t taken = std::min(2 * kPairs, scores - first);
  const double* const last_weights = weights.data() + rows.columns * 2 * kPairs;
  at::parallel_for(0, rows.count, kRowsOfATask, [&](std::int64_t begin, std::int64_t end) {
    std::array<double, kTile * 2 * kPairs> tile;
    for (std::int64_t i = begin; i < end; i += kTile) {
      const std::int64_t height = std::min(kTile, end - i);
      const float* const x = rows.x + i * rows.columns;
      if (height == kTile) {
        ScoreTile<kTile, kPairs>(x, rows.columns, weights.data(), tile.data());
      } else {
        for (std::int64_t r = 0; r < height; ++r) {
          ScoreTile<1, kPairs>(x + r * rows.columns, rows.columns, weights.data(),
                               tile.data() + r * 2 * kPairs);
        }
      }
      for (std::int64_t r = 0; r < height; ++r) {
        const double last = rows.last == nullptr ? 0 : static_cast<double>(rows.last[i + r]);
        for (std::int64_t k = 0; k < taken; ++k) {
          double& score = out[(i + r) * scores + first + k];
          score = tile[static_cast<std::size_t>(r * 2 * kPairs + k)];
          if (rows.last != nullptr) score += last * last_weights[k];
        }
      }
    }
  });
}

// Columns first ... of x^T slopes, into out [d, scores].
template <std::int64_t kPairs>
void AddProductColumns(const Operands& rows, const at::Tensor& slopes, std::int64_t first,
                       double* out) {
  const std::vector<double> packed = Packed(slopes, first, kPairs);
  const std::int64_t scores = slopes.size(1);
  const std::int64_t taken = std::min(2 * kPairs, scores - first);
  at::parallel_for(0, rows.columns, kColumnsOfATask, [&](std::int64_t begin, std::int64_t end) {
    std::array<double, kTile * 2 * kPairs> tile;
    for (std::int64_t j = begin; j < end; j += kTile) {
      const std::int64_t width = std::min(kTile, end - j);
      if (width == kTile) {
        ProductTile<kTile, kPairs>(rows.x + j, rows.columns, rows.count, packed.data(),
                                   tile.data());
      } else {
        for (std::int64_t c = 0; c < width; ++c) {
          ProductTile<1, kPairs>(rows.x + j + c, rows.columns, rows.count, packed.data(),
                                 tile.data() + c * 2 * kPairs);
        }
      }
      for (std::int64_t c = 0; c < width; ++c) {
        std::copy_n(tile.data() + c * 2 * kPairs, taken, out + (j + c) * scores + first);
      }
    }
  });
  if (rows.last == nullptr) return;
  std::array<double, 2 * kPairs> tile;
  ProductTile<1, kPairs>(rows.last, 1, rows.count, packed.data(), tile.data());
  std::copy_n(tile.data(), taken, out + rows.columns * scores + first);
}

// visit(first, pairs) with the number of pairs as a constant, for all columns of a matrix.
template <typename Visit>
void ForEachPairs(std::int64_t scores, const Visit& visit) {
  for (std::int64_t first = 0; first < scores; first += 2 * kMaxPairs) {
    switch ((std::min(scores - first, 2 * kMaxPairs) + 1) / 2) {
      case 1:
        visit.template operator()<1>(first);
        break;
      case 2:
        visit.template operator()<2>(first);
        break;
      case 3:
        visit.template operator()<3>(first);
        break;
      case 4:
        visit.template operator()<4>(first);
        break;
      default:
        visit.template operator()<kMaxPairs>(first);
    }
  }
}

double FloatDot(const float* x, const double* weights, std::int64_t columns) {
  std::array<double, kLanes> lanes{};
  std::int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) {
      lanes[static_cast<std::size_t>(k)] += static_cast<double>(x[j + k]) * weights[j + k];
    }
  }
  double sum = 0;
  for (; j < columns; ++j) sum += static_cast<double>(x[j]) * weights[j];
  for (const double lane : lanes) sum += lane;
  return sum;
}

void AddFloatRow(const float* x, double factor, std::int64_t columns, double* __restrict sum) {
  for (std::int64_t j = 0; j < columns; ++j) sum[j] += factor * static_cast<double>(x[j]);
}

// A product with one score does little with each number that it reads: rows are read in order.
void SingleScores(const Operands& rows, const double* weights, double* out) {
  at::parallel_for(0, rows.count, kRowsOfATask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = FloatDot(rows.x + i * rows.columns, weights, rows.columns);
      if (rows.last != nullptr) out[i] += static_cast<double>(rows.last[i]) * weights[rows.columns];
    }
  });
}

void SingleProducts(const Operands& rows, const double* slopes, std::int64_t features,
                    double* out) {
  std::fill_n(out, features, 0.0);
  std::mutex adding;
  at::parallel_for(0, rows.count, kRowsOfATask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> part(static_cast<std::size_t>(features), 0);
    for (std::int64_t i = begin; i < end; ++i) {
      AddFloatRow(rows.x + i * rows.columns, slopes[i], rows.columns, part.data());
      if (rows.last != nullptr) part.back() += slopes[i] * static_cast<double>(rows.last[i]);
    }
    const std::lock_guard<std::mutex> lock(adding);
    for (std::size_t j = 0; j < part.size(); ++j) out[j] += part[j];
  });
}

}  // namespace

bool PrefersFloatProducts(std::int64_t scores) { return scores == 1 || kFusesProducts; }

at::Tensor FloatScores(const FloatRows& rows, const at::Tensor& theta) {
  const Operands operands = OperandsOf(rows);
  const at::Tensor weights = theta.contiguous();
  at::Tensor scores = at::empty({operands.count, theta.size(1)}, at::kDouble);
  auto* const out = scores.mutable_data_ptr<double>();
  if (theta.size(1) == 1) {
    SingleScores(operands, weights.const_data_ptr<double>(), out);
    return scores;
  }
  ForEachPairs(theta.size(1), [&]<std::int64_t kPairs>(std::int64_t first) {
    AddScores<kPairs>(operands, weights, first, out);
  });
  return scores;
}

at::Tensor FloatProducts(const FloatRows& rows, const at::Tensor& slopes) {
  const Operands operands = OperandsOf(rows);
  const at::Tensor factors = slopes.contiguous();
  const std::int64_t features = operands.columns + (operands.last == nullptr ? 0 : 1);
  at::Tensor products = at::empty({features, slopes.size(1)}, at::kDouble);
  auto* const out = products.mutable_data_ptr<double>();
  if (slopes.size(1) == 1) {
    SingleProducts(operands, factors.const_data_ptr<double>(), features, out);
    return products;
  }
  ForEachPairs(slopes.size(1), [&]<std::int64_t kPairs>(std::int64_t first) {
    AddProductColumns<kPairs>(operands, factors, first, out);
  });
  return products;
}

}  // namespace sordino::internal
