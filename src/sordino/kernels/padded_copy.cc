#include "sordino/kernels/padded_copy.h"

#include <algorithm>
#include <cstddef>

#include "sordino/base/check.h"
#include "sordino/kernels/launch.h"

namespace sordino {
namespace {

// The widest words that examples of so many bytes at these addresses are made of.
int WordOf(std::int64_t bytes, const void* from, const void* to) {
  const std::uintptr_t all = reinterpret_cast<std::uintptr_t>(from) |
                             reinterpret_cast<std::uintptr_t>(to) |
                             static_cast<std::uintptr_t>(bytes);
  for (const int word : {16, 8, 4}) {
    if (all % static_cast<std::uintptr_t>(word) == 0) return word;
  }
  return 1;
}

}  // namespace

bool CanCopyPadded(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  if (from.size() > kernels::kMaxCopies || from.empty() || from.front().size(0) == 0) return false;
  return std::equal(from.begin(), from.end(), to.begin(), to.end(),
                    [&](const at::Tensor& a, const at::Tensor& b) {
                      return a.is_contiguous() && b.is_contiguous() &&
                             a.scalar_type() == b.scalar_type() && a.device() == b.device() &&
                             a.device() == from.front().device() && a.numel() > 0;
                    });
}

kernels::PaddedTensors PaddedTensorsOf(const std::vector<at::Tensor>& from,
                                       const std::vector<at::Tensor>& to, const at::Tensor& mask,
                                       std::int64_t real_units) {
  SORDINO_CHECK(mask.is_contiguous() && mask.scalar_type() == at::kBool, "a mask of units");
  kernels::PaddedTensors all;
  all.examples = from.front().size(0);
  all.size = to.front().size(0);
  all.mask = mask.mutable_data_ptr<bool>();
  all.units = mask.numel();
  all.real_units = real_units;
  for (std::size_t k = 0; k < from.size(); ++k) {
    SORDINO_CHECK(from[k].size(0) == all.examples && to[k].size(0) == all.size &&
                      all.examples <= all.size &&
                      from[k].sizes().slice(1) == to[k].sizes().slice(1),
                  "inputs of the sizes of the batch");
    const void* const source = from[k].const_data_ptr();
    void* const target = to[k].mutable_data_ptr();
    const std::int64_t bytes = from[k].numel() / all.examples * from[k].element_size();
    const int word = WordOf(bytes, source, target);
    all.tensors[all.count++] = {.from = source, .to = target, .words = bytes / word, .word = word};
  }
  return all;
}

void DevicePaddedCopy(const kernels::PaddedTensors& all, const at::Tensor& mask) {
  OnDeviceOf(mask, [&](auto stream) { kernels::LaunchPaddedCopy(all, stream); });
}

}  // namespace sordino
