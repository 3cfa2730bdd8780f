#include "sordino/gradients/internal/terms/example_products.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/terms/row_kernels.h"
#include "sordino/gradients/parallel_shares.h"

namespace sordino {

at::Tensor ExampleProducts(const at::Tensor& left, const at::Tensor& right,
                           const at::Tensor& squared) {
  at::Tensor products = at::empty({left.size(0), left.size(2), right.size(2)}, left.options());
  const std::int64_t size = left.size(2) * right.size(2);
  auto* norm = squared.mutable_data_ptr<double>();
  ParallelShares(left.size(0), [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    for (std::int64_t example = begin; example < end; ++example) {
      at::Tensor product = products.select(0, example);
      at::cpu::mm_out(product, left.select(0, example).t(), right.select(0, example));
      norm[example] += SquaredNorm(product.const_data_ptr<float>(), size);
    }
  });
  return products;
}

at::Tensor SumOfExampleProducts(const at::Tensor& left, const at::Tensor& right, bool wide) {
  const std::int64_t p = left.size(2);
  const std::int64_t q = right.size(2);
  const auto size = static_cast<std::size_t>(p * q);
  // In the order of the examples, so that the result does not depend on which thread is first.
  std::map<std::int64_t, std::vector<double>> shares;
  std::mutex mutex;
  ParallelShares(left.size(0), [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    std::vector<double> sum(size);
    at::Tensor product = at::empty({p, q}, left.options());
    const float* value = product.const_data_ptr<float>();
    for (std::int64_t example = begin; example < end; ++example) {
      at::cpu::mm_out(product, left.select(0, example).t(), right.select(0, example));
      for (std::size_t k = 0; k < size; ++k) sum[k] += static_cast<double>(value[k]);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    shares.emplace(begin, std::move(sum));
  });
  at::Tensor result = at::empty({p, q}, left.options().dtype(wide ? at::kDouble : at::kFloat));
  const auto fill = [&](auto* out) {
    for (std::size_t k = 0; k < size; ++k) {
      double sum = 0;
      for (const auto& [begin, share] : shares) sum += share[k];
      out[k] = static_cast<std::remove_pointer_t<decltype(out)>>(sum);
    }
  };
  if (wide) {
    fill(result.mutable_data_ptr<double>());
  } else {
    fill(result.mutable_data_ptr<float>());
  }
  return result;
}

}  // namespace sordino
