#include "sordino/convex/internal/second_moment.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sordino/convex/internal/vector_noise.h"

namespace sordino::internal {
namespace {

constexpr std::int64_t kMomentBlock = 8192;

}  // namespace

at::Tensor SecondMoment(const Problem& problem) {
  const std::int64_t d = problem.shape().features;
  at::Tensor sum = at::zeros({d, d}, at::kDouble);
  for (std::int64_t begin = 0; begin < problem.rows(); begin += kMomentBlock) {
    const at::Tensor x = problem.Rows(begin, std::min(kMomentBlock, problem.rows() - begin));
    sum.add_(x.t().mm(x));  // not addmm_: internal/row_block.h
  }
  return sum;
}

double SecondMomentSensitivity(const FitQuestion& question) {
  const double r2 = question.table.row_bound * question.table.row_bound;
  const bool replaces = question.adjacency == Adjacency::kReplaceOne;
  const auto rows =
      static_cast<double>(std::min(kMaxConvexRows, kMaxConvexEntries / question.table.features));
  const double terms = static_cast<double>(kMomentBlock) + rows / kMomentBlock + 4;
  const double rounding = terms * 0x1p-52 * rows;
  const double rows_moved =
      (replaces ? std::numbers::sqrt2 : 1) * static_cast<double>(question.rows_per_user);
  return (rows_moved + 2 * rounding) * r2 * (1 + 0x1p-40);
}

double SecondMomentDraws(std::int64_t features) {
  const auto d = static_cast<double>(features);
  return 0.5 * d * (d + 1);
}

NoisedMoment AddSymmetricNoise(const at::Tensor& matrix, double sensitivity, double multiplier,
                               Generator& generator) {
  const std::int64_t d = matrix.size(0);
  const at::Tensor places = at::triu_indices(d, d, 0, at::kLong);
  const at::Tensor upper = matrix.index({places[0], places[1]});
  const NoisedVector noised = AddGaussianNoise(upper, sensitivity, multiplier, generator);
  at::Tensor full = at::zeros_like(matrix);
  full.index_put_({places[0], places[1]}, noised.value);
  full.index_put_({places[1], places[0]}, noised.value);
  return {full, noised.deviation};
}

}  // namespace sordino::internal
