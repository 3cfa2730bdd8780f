#include "sordino/convex/problem.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::int64_t kRowBlock = 4096;
// The computed norm of d <= 10^6 entries is right to d 2^-53 and the product adds a rounding.
constexpr double kNormSlack = 0x1p-30;
// Rounding a scaled row to float32 adds 2^-24 of each entry, or 2^-150 where an entry is below
// float32's range: less than half of this for bounds of at least kMinFloatBound.
constexpr double kFloatNormSlack = 0x1p-22;
constexpr double kMinFloatBound = 0x1p-100;

// Float64 rows to a norm of at most `bound`. A row below it keeps its numbers.
void ClipRows(at::Tensor& rows, double bound) {
  const at::Tensor largest = rows.abs().amax(1, true);
  const at::Tensor finite = largest.isfinite();  // an entry that is not a number is the largest
  // First by the largest entry, so that no square overflows.
  rows.mul_(at::where(finite, largest.clamp_min(bound).reciprocal_().mul_(bound), 0.0));
  rows.nan_to_num_(0, 0, 0);  // 0 times infinity
  const at::Tensor norm = rows.norm(2, {1}, true);
  rows.mul_(norm.clamp_min_(bound * (1 - kNormSlack)).reciprocal_().mul_(bound * (1 - kNormSlack)));
}

at::Tensor WithLastColumn(const at::Tensor& features, const at::Tensor& last_column) {
  if (!last_column.defined()) return features.to(at::kDouble);
  at::Tensor rows = at::empty({features.size(0), features.size(1) + 1}, at::kDouble);
  rows.narrow(1, 0, features.size(1)).copy_(features);
  rows.select(1, features.size(1)).copy_(last_column);
  return rows;
}

at::Tensor CheckedClasses(const at::Tensor& targets, std::int64_t classes) {
  at::Tensor taken = targets.to(at::kLong).contiguous();
  if (taken.numel() > 0 &&
      (taken.min().item<std::int64_t>() < 0 || taken.max().item<std::int64_t>() >= classes)) {
    throw Error(
        fmt::format("the targets hold a class outside 0 to {}; declare every class of the table.",
                    classes - 1));
  }
  return taken;
}

at::Tensor ScoresOf(const Problem& problem, const at::Tensor& coefficients) {
  std::vector<at::Tensor> scores;
  for (std::int64_t begin = 0; begin < problem.rows(); begin += kRowBlock) {
    const std::int64_t count = std::min(kRowBlock, problem.rows() - begin);
    scores.push_back(problem.Rows(begin, count).mm(coefficients));
  }
  return at::cat(scores);
}

}  // namespace

const ConvexLoss& CheckedLoss(const TableShape& shape) {
  const ConvexLoss& loss = ConvexLosses().Checked(shape.loss);
  CheckRange("the number of features", static_cast<double>(shape.features), 1, false,
             static_cast<double>(kMaxConvexFeatures), false);
  CheckRange("the bound on the norm of a row", shape.row_bound, 1e-100, false, 1e100, false);
  if (loss.Classifies()) {
    CheckRange("the number of classes", static_cast<double>(shape.classes), 2, false,
               static_cast<double>(kMaxConvexClasses), false);
    if (shape.classes > loss.MaxClasses()) {
      throw Error(fmt::format("the loss '{}' takes {} classes, not {}; use softmax.", loss.name(),
                              loss.MaxClasses(), shape.classes));
    }
  } else {
    CheckRange("the bound on the targets", shape.target_bound, 1e-100, false, 1e100, false);
  }
  return loss;
}

Problem::Problem(TableShape shape, const at::Tensor& features, const at::Tensor& targets,
                 const at::Tensor& last_column)
    : shape_(std::move(shape)), loss_(&CheckedLoss(shape_)) {
  const bool has_last = last_column.defined();
  const std::int64_t columns = shape_.features - (has_last ? 1 : 0);
  if (features.dim() != 2 || features.size(1) != columns || targets.dim() != 1 ||
      targets.size(0) != features.size(0) ||
      (has_last && (last_column.dim() != 1 || last_column.size(0) != features.size(0)))) {
    throw Error(fmt::format(
        "the features and targets of a table of {} features need the sizes [n, {}] and [n].",
        shape_.features, columns));
  }
  if (features.size(0) > kMaxConvexRows || features.size(0) * shape_.features > kMaxConvexEntries) {
    throw Error(fmt::format("a table has at most {} rows and {} entries.", kMaxConvexRows,
                            kMaxConvexEntries));
  }
  const bool is_float = features.scalar_type() == at::kFloat && shape_.row_bound >= kMinFloatBound;
  const at::ScalarType type = is_float ? at::kFloat : at::kDouble;
  features_ = features.to(type).contiguous();
  if (has_last) last_column_ = last_column.to(type).contiguous();
  const double row_bound = shape_.row_bound * (is_float ? 1 - kFloatNormSlack : 1);
  for (std::int64_t begin = 0; begin < rows(); begin += kRowBlock) {
    const std::int64_t count = std::min(kRowBlock, rows() - begin);
    at::Tensor block = Rows(begin, count);
    ClipRows(block, row_bound);
    features_.narrow(0, begin, count).copy_(block.narrow(1, 0, columns));
    if (has_last) last_column_.narrow(0, begin, count).copy_(block.select(1, columns));
  }
  if (loss_->Classifies()) {
    targets_ = CheckedClasses(targets, shape_.classes);
  } else {
    const double bound = shape_.target_bound;
    targets_ = targets.to(at::kDouble).nan_to_num(0, bound, -bound).clamp_(-bound, bound);
  }
}

at::Tensor Problem::Rows(std::int64_t begin, std::int64_t count) const {
  return WithLastColumn(
      features_.narrow(0, begin, count),
      last_column_.defined() ? last_column_.narrow(0, begin, count) : last_column_);
}

at::Tensor Problem::ChosenRows(const at::Tensor& rows) const {
  return WithLastColumn(features_.index_select(0, rows),
                        last_column_.defined() ? last_column_.index_select(0, rows) : last_column_);
}

Evaluation Evaluate(const Problem& problem, const at::Tensor& coefficients) {
  if (problem.rows() == 0) return {};
  const ConvexLoss& loss = problem.loss();
  const at::Tensor scores = ScoresOf(problem, coefficients);
  const at::Tensor& targets = problem.targets();
  Evaluation result;
  result.risk = loss.Values(scores, targets, problem.shape().target_bound).mean().item<double>();
  const at::Tensor predicted = loss.Predictions(scores);
  if (loss.Classifies()) {
    result.accuracy = predicted.eq(targets).to(at::kDouble).mean().item<double>();
  } else {
    const double total = targets.sub(targets.mean()).square_().sum().item<double>();
    const double left = predicted.sub(targets).square_().sum().item<double>();
    result.accuracy = total > 0 ? 1 - left / total : 0;
  }
  return result;
}

}  // namespace sordino
