#include "sordino/gradients/saved_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

std::string Shown(at::IntArrayRef sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

}  // namespace

SavedTensors::SavedTensors(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || !tensors_.emplace(name, tensor).second) {
      throw Error(
          fmt::format("the saved state has '{}' {}; give the state of a run as it was saved.", name,
                      tensor.defined() ? "twice" : "without a tensor"));
    }
  }
}

at::Tensor SavedTensors::Take(const std::string& name, at::IntArrayRef sizes, at::ScalarType type) {
  const auto entry = tensors_.find(name);
  if (entry == tensors_.end()) {
    throw Error(fmt::format(
        "the saved state has no '{}', which this run needs; resume with the settings of the run "
        "that was saved.",
        name));
  }
  at::Tensor tensor = std::move(entry->second);
  tensors_.erase(entry);
  if (tensor.sizes() != sizes || tensor.scalar_type() != type) {
    throw Error(fmt::format(
        "'{}' of the saved state is {} of the shape {} and this run needs {} of the shape {}; go "
        "on with the settings of the run that was saved.",
        name, c10::toString(tensor.scalar_type()), Shown(tensor.sizes()), c10::toString(type),
        Shown(sizes)));
  }
  return tensor;
}

std::int64_t SavedTensors::TakeNumber(const std::string& name, std::int64_t least,
                                      std::int64_t most) {
  const auto number = Take(name, {}, at::kLong).item<std::int64_t>();
  if (number < least || number > most) {
    throw Error(fmt::format(
        "'{}' of the saved state is {} and must be {}; the state was not saved at this step.", name,
        number,
        least == most ? fmt::format("{}", least) : fmt::format("from {} to {}", least, most)));
  }
  return number;
}

void SavedTensors::CheckAllTaken() const {
  if (tensors_.empty()) return;
  throw Error(fmt::format(
      "the saved state has '{}', which this run has no place for; resume with the settings of the "
      "run that was saved.",
      tensors_.begin()->first));
}

at::Tensor CopyToCpu(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true).contiguous();
}

}  // namespace sordino
