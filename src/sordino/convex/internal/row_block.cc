#include "sordino/convex/internal/row_block.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

namespace sordino::internal {
namespace {

constexpr std::int64_t kRowsOfATask = 1024;
// Sums side by side that do not wait for each other.
constexpr std::int64_t kLanes = 8;

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

const float* DataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

}  // namespace

RowBlock::RowBlock(const Problem& problem, std::int64_t begin, std::int64_t count,
                   std::int64_t scores) {
  if (scores > 1 || problem.stored_features().scalar_type() != at::kFloat) {
    rows_ = problem.Rows(begin, count);
    return;
  }
  features_ = problem.stored_features().narrow(0, begin, count);
  if (problem.last_column().defined()) {
    last_column_ = problem.last_column().narrow(0, begin, count);
  }
}

at::Tensor RowBlock::Scores(const at::Tensor& theta) const {
  // A product with a single column is one of a matrix and a vector, which libraries do faster.
  if (rows_.defined()) {
    return theta.size(1) == 1 ? rows_.mv(theta.select(1, 0)).unsqueeze(1) : rows_.mm(theta);
  }
  const std::int64_t columns = features_.size(1);
  at::Tensor scores = at::empty({features_.size(0), 1}, at::kDouble);
  const at::Tensor weights = theta.contiguous();
  const float* const x = DataOf(features_);
  const float* const last = DataOf(last_column_);
  const auto* const w = weights.const_data_ptr<double>();
  auto* const out = scores.mutable_data_ptr<double>();
  at::parallel_for(0, features_.size(0), kRowsOfATask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = FloatDot(x + i * columns, w, columns);
      if (last != nullptr) out[i] += static_cast<double>(last[i]) * w[columns];
    }
  });
  return scores;
}

void RowBlock::AddProducts(const at::Tensor& slopes, at::Tensor& sum) const {
  if (rows_.defined()) {
    // Not addmm_, which may add to the sum after a few products already.
    if (slopes.size(1) == 1) {
      sum.select(1, 0).add_(rows_.t().mv(slopes.select(1, 0)));
    } else {
      sum.add_(rows_.t().mm(slopes));
    }
    return;
  }
  const std::int64_t columns = features_.size(1);
  const at::Tensor factors = slopes.contiguous();
  const float* const x = DataOf(features_);
  const float* const last = DataOf(last_column_);
  const auto* const r = factors.const_data_ptr<double>();
  at::Tensor block = at::zeros_like(sum);
  auto* const total = block.mutable_data_ptr<double>();
  std::mutex adding;
  at::parallel_for(0, features_.size(0), kRowsOfATask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> part(static_cast<std::size_t>(sum.size(0)), 0);
    for (std::int64_t i = begin; i < end; ++i) {
      AddFloatRow(x + i * columns, r[i], columns, part.data());
      if (last != nullptr) part.back() += r[i] * static_cast<double>(last[i]);
    }
    const std::lock_guard<std::mutex> lock(adding);
    for (std::size_t j = 0; j < part.size(); ++j) total[j] += part[j];
  });
  sum.add_(block);
}

}  // namespace sordino::internal
