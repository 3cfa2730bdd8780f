#include "sordino/gradients/loss_function.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/narrow.h>
#include <c10/util/StringUtil.h>

#include "sordino/base/error.h"

namespace sordino {

std::int64_t Examples(const Batch& batch) {
  if (batch.empty()) {
    throw Error("a batch holds no tensor; give at least one, with an example in each row.");
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i].defined()) {
      throw Error(c10::str("Tensor ", i, " of the batch is undefined; leave it out."));
    }
    if (batch[i].dim() == 0) {
      throw Error(c10::str("Tensor ", i,
                           " of the batch has no dimension; its first dimension must run over "
                           "the examples: expand it, or capture it in the loss function."));
    }
    if (batch[i].size(0) != batch[0].size(0)) {
      throw Error(c10::str("Tensor 0 of the batch holds ", batch[0].size(0),
                           " examples and tensor ", i, " holds ", batch[i].size(0),
                           "; the first dimension of each must run over the same examples."));
    }
  }
  return batch[0].size(0);
}

Batch Slice(const Batch& batch, std::int64_t begin, std::int64_t end) {
  const std::int64_t examples = Examples(batch);
  if (begin < 0 || begin > end || end > examples) {
    throw Error(c10::str("The examples [", begin, ", ", end, ") are not part of a batch of ",
                         examples, "; ask for 0 <= begin <= end <= ", examples, "."));
  }
  Batch slice;
  slice.reserve(batch.size());
  for (const at::Tensor& tensor : batch) slice.push_back(tensor.narrow(0, begin, end - begin));
  return slice;
}

}  // namespace sordino
