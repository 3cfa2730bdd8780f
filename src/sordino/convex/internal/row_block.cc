#include "sordino/convex/internal/row_block.h"

#include <ATen/Functions.h>

namespace sordino::internal {

RowBlock::RowBlock(const Problem& problem, std::int64_t begin, std::int64_t count,
                   std::int64_t scores) {
  if (!PrefersFloatProducts(scores) || problem.stored_features().scalar_type() != at::kFloat) {
    rows_ = problem.Rows(begin, count);
    return;
  }
  float_rows_.features = problem.stored_features().narrow(0, begin, count);
  if (problem.last_column().defined()) {
    float_rows_.last_column = problem.last_column().narrow(0, begin, count);
  }
}

at::Tensor RowBlock::Scores(const at::Tensor& theta) const {
  if (!rows_.defined()) return FloatScores(float_rows_, theta);
  // A product with a single column is one of a matrix and a vector, which libraries do faster.
  return theta.size(1) == 1 ? rows_.mv(theta.select(1, 0)).unsqueeze(1) : rows_.mm(theta);
}

void RowBlock::AddProducts(const at::Tensor& slopes, at::Tensor& sum) const {
  if (!rows_.defined()) {
    sum.add_(FloatProducts(float_rows_, slopes));
    return;
  }
  // Not addmm_, which may add to the sum after a few products already.
  if (slopes.size(1) == 1) {
    sum.select(1, 0).add_(rows_.t().mv(slopes.select(1, 0)));
  } else {
    sum.add_(rows_.t().mm(slopes));
  }
}

}  // namespace sordino::internal
