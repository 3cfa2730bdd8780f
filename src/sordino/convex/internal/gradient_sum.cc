#include "sordino/convex/internal/gradient_sum.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "sordino/convex/internal/row_block.h"

namespace sordino::internal {
namespace {

constexpr double kUnit = 0x1p-53;
// A block of rows is read for the scores and again, from a cache, for the sum: about so many
// entries, and no more rows than the root of the largest table, so that the bound on its rounding
// stays what it is.
constexpr std::int64_t kMinBlockRows = 512;
constexpr std::int64_t kMaxBlockRows = 8192;
constexpr std::int64_t kBlockEntries = std::int64_t{1} << 18;

std::int64_t BlockRows(std::int64_t rows, std::int64_t features) {
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(rows)));
  return std::max(root, std::clamp(kBlockEntries / features, kMinBlockRows, kMaxBlockRows));
}

double Gamma(double k) { return k * kUnit / (1 - k * kUnit); }

void ClipSlopes(at::Tensor& slopes, double clip) {
  at::Tensor norm = slopes.norm(2, {1}, true);
  slopes.mul_(norm.clamp_min_(clip).reciprocal_().mul_(clip * (1 - 0x1p-50)));
}

template <typename Visit>
void ForEachBlock(const Problem& problem, std::int64_t rows, const Visit& visit) {
  const std::int64_t block = BlockRows(rows, problem.shape().features);
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    visit(begin, std::min(block, rows - begin));
  }
}

at::Tensor ZeroGradient(const Problem& problem) {
  return at::zeros({problem.shape().features, problem.scores()}, at::kDouble);
}

void AddBlock(const Problem& problem, const RowBlock& x, const at::Tensor& y,
              const at::Tensor& theta, double slope_clip, at::Tensor& sum) {
  at::Tensor slopes = problem.loss().Slopes(x.Scores(theta), y, problem.shape().target_bound);
  if (slope_clip < problem.bounds().slope) ClipSlopes(slopes, slope_clip);
  x.AddProducts(slopes, sum);
}

}  // namespace

double NormBound(const at::Tensor& matrix) {
  const auto entries = static_cast<double>(matrix.numel());
  return matrix.norm().item<double>() * (1 + Gamma(entries + 8));
}

at::Tensor GradientSum(const Problem& problem, const at::Tensor& theta, double slope_clip) {
  at::Tensor sum = ZeroGradient(problem);
  ForEachBlock(problem, problem.rows(), [&](std::int64_t begin, std::int64_t count) {
    AddBlock(problem, RowBlock(problem, begin, count, theta.size(1)),
             problem.targets().narrow(0, begin, count), theta, slope_clip, sum);
  });
  return sum;
}

at::Tensor GradientSum(const Problem& problem, const at::Tensor& theta, double slope_clip,
                       const at::Tensor& rows) {
  at::Tensor sum = ZeroGradient(problem);
  ForEachBlock(problem, rows.size(0), [&](std::int64_t begin, std::int64_t count) {
    const at::Tensor chosen = rows.narrow(0, begin, count);
    AddBlock(problem, RowBlock(problem.ChosenRows(chosen)),
             problem.targets().index_select(0, chosen), theta, slope_clip, sum);
  });
  return sum;
}

ValueAndGradient LossSum(const Problem& problem, const at::Tensor& theta) {
  ValueAndGradient result{0, ZeroGradient(problem)};
  const double bound = problem.shape().target_bound;
  ForEachBlock(problem, problem.rows(), [&](std::int64_t begin, std::int64_t count) {
    const RowBlock x(problem, begin, count, theta.size(1));
    const at::Tensor y = problem.targets().narrow(0, begin, count);
    const at::Tensor scores = x.Scores(theta);
    result.value += problem.loss().Values(scores, y, bound).sum().item<double>();
    x.AddProducts(problem.loss().Slopes(scores, y, bound), result.gradient);
  });
  return result;
}

double GradientRounding(const TableShape& shape, std::int64_t rows, double theta_norm) {
  const ConvexLoss& loss = CheckedLoss(shape);
  const auto n = static_cast<double>(rows);
  const double score_error =
      Gamma(static_cast<double>(shape.features) + 2) * shape.row_bound * theta_norm;
  const double slope_error = loss.SlopeError(shape.classes, shape.target_bound, score_error);
  const double slope = loss.Bounds(shape.classes, shape.target_bound).slope;
  // No block has more terms than the table.
  const auto block = static_cast<double>(std::min(BlockRows(rows, shape.features), rows + 1));
  const double sum = Gamma(block + n / block + 4) * (slope + slope_error);
  return n * shape.row_bound * (slope_error + sum) * (1 + 0x1p-40);
}

double MaxGradientRounding(const TableShape& shape, double theta_norm) {
  return GradientRounding(shape, std::min(kMaxConvexRows, kMaxConvexEntries / shape.features),
                          theta_norm);
}

}  // namespace sordino::internal
