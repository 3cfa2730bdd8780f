#include "sordino/device/parallel_shares.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>

namespace sordino {

void ParallelShares(std::int64_t n, c10::function_ref<void(std::int64_t, std::int64_t)> work) {
  if (n <= 0) return;
  if (n == 1) return work(0, 1);
  at::Tensor shares = at::empty({n}, at::kByte);
  const char* first = static_cast<const char*>(shares.const_data_ptr());
  at::TensorIterator iterator = at::TensorIterator::nullary_op(shares);
  iterator.for_each(
      [&](char** data, const std::int64_t* /*strides*/, std::int64_t size, std::int64_t rows) {
        const std::int64_t begin = data[0] - first;
        work(begin, begin + size * rows);
      },
      /*grain_size=*/1);
}

}  // namespace sordino
