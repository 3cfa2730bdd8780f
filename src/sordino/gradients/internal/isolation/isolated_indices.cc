#include "sordino/gradients/internal/isolation/isolated_indices.h"

#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/List.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/gradients/internal/isolation/isolated_units.h"
#include "sordino/gradients/own_tensor.h"

namespace sordino {
namespace {

using at::Tensor;
using isolated::IsOf;
using Indices = c10::List<std::optional<Tensor>>;

// A boolean mask of an example that is the only index, and the first dimension that it stands for.
struct OwnMask {
  Tensor mask;
  std::int64_t dim = 0;
};

std::optional<OwnMask> OwnMaskOf(const Indices& indices) {
  const isolated::Layer layer = isolated::CurrentLayer();
  std::optional<OwnMask> found;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const std::optional<Tensor> index = indices.get(k);
    if (!index || !index->defined()) continue;
    if (found || index->scalar_type() != at::kBool || !IsOf(layer, *index)) return std::nullopt;
    found = OwnMask{*index, static_cast<std::int64_t>(k)};
  }
  return found;
}

// What `tensor` is once the values are written where the mask says so; nothing where the values
// are as many as entries of the mask are true, which differs from example to example.
std::optional<Tensor> Written(const Tensor& tensor, const Indices& indices, const Tensor& values,
                              bool accumulate) {
  const std::optional<OwnMask> own = OwnMaskOf(indices);
  if (!own || values.scalar_type() != tensor.scalar_type()) return std::nullopt;
  const std::int64_t masked = own->mask.dim();
  const std::int64_t behind = tensor.dim() - own->dim - masked;
  if (masked == 0 || behind < 0) return std::nullopt;
  for (std::int64_t dim = 0; dim < masked; ++dim) {
    if (own->mask.size(dim) != tensor.size(own->dim + dim)) return std::nullopt;
  }
  Tensor value = values;
  if (value.dim() > behind) {
    // [..., entries that are true, dimensions behind the mask]
    const std::int64_t place = value.dim() - behind - 1;
    if (value.size(place) != 1) return std::nullopt;
    for (std::int64_t dim = 1; dim < masked; ++dim) value = value.unsqueeze(place);
  }
  Tensor mask = own->mask;
  for (std::int64_t dim = 0; dim < behind; ++dim) mask = mask.unsqueeze(-1);
  Tensor written = accumulate ? tensor + at::where(mask, value, at::zeros_like(value))
                              : at::where(mask, value, tensor);
  if (written.sizes() != tensor.sizes()) return std::nullopt;
  return written;
}

Tensor IndexPut(const Tensor& tensor, const Indices& indices, const Tensor& values,
                bool accumulate) {
  if (std::optional<Tensor> written = Written(tensor, indices, values, accumulate)) {
    return *std::move(written);
  }
  const c10::impl::ExcludeDispatchKeyGuard others(c10::DispatchKey::FuncTorchVmapMode);
  return at::index_put(tensor, indices, values, accumulate);
}

Tensor& IndexPutInPlace(Tensor& tensor, const Indices& indices, const Tensor& values,
                        bool accumulate) {
  if (const std::optional<Tensor> written = Written(tensor, indices, values, accumulate)) {
    return tensor.copy_(*written);
  }
  const c10::impl::ExcludeDispatchKeyGuard others(c10::DispatchKey::FuncTorchVmapMode);
  return at::index_put_(tensor, indices, values, accumulate);
}

// The index with an entry for each of the source, where it is one of an example.
std::optional<Tensor> OwnPlaces(const Tensor& index, std::int64_t dim, at::IntArrayRef source) {
  const bool has_places = index.dim() == 1 && !source.empty();
  if (!has_places || !IsOf(isolated::CurrentLayer(), index)) return std::nullopt;
  const std::int64_t place = at::maybe_wrap_dim(dim, static_cast<std::int64_t>(source.size()));
  std::vector<std::int64_t> sizes(source.size(), 1);
  sizes[static_cast<std::size_t>(place)] = index.size(0);
  return index.to(at::kLong).view(sizes).expand(source);
}

Tensor IndexAdd(const Tensor& tensor, std::int64_t dim, const Tensor& index, const Tensor& source,
                const at::Scalar& alpha) {
  if (const auto places = OwnPlaces(index, dim, source.sizes())) {
    return at::scatter_add(tensor, dim, *places, alpha.equal(1) ? source : source * alpha);
  }
  const c10::impl::ExcludeDispatchKeyGuard others(c10::DispatchKey::FuncTorchVmapMode);
  return at::index_add(tensor, dim, index, source, alpha);
}

Tensor& IndexAddInPlace(Tensor& tensor, std::int64_t dim, const Tensor& index, const Tensor& source,
                        const at::Scalar& alpha) {
  return tensor.copy_(IndexAdd(tensor, dim, index, source, alpha));
}

Tensor IndexCopy(const Tensor& tensor, std::int64_t dim, const Tensor& index,
                 const Tensor& source) {
  if (const auto places = OwnPlaces(index, dim, source.sizes())) {
    return at::scatter(tensor, dim, *places, source);
  }
  const c10::impl::ExcludeDispatchKeyGuard others(c10::DispatchKey::FuncTorchVmapMode);
  return at::index_copy(tensor, dim, index, source);
}

Tensor& IndexCopyInPlace(Tensor& tensor, std::int64_t dim, const Tensor& index,
                         const Tensor& source) {
  return tensor.copy_(IndexCopy(tensor, dim, index, source));
}

Tensor IndexFill(const Tensor& tensor, std::int64_t dim, const Tensor& index,
                 const at::Scalar& value) {
  std::vector<std::int64_t> filled = tensor.sizes().vec();
  if (!filled.empty()) {
    filled[static_cast<std::size_t>(at::maybe_wrap_dim(dim, tensor.dim()))] = index.numel();
  }
  if (const auto places = OwnPlaces(index, dim, filled)) {
    return at::scatter(tensor, dim, *places, value);
  }
  const c10::impl::ExcludeDispatchKeyGuard others(c10::DispatchKey::FuncTorchVmapMode);
  return at::index_fill(tensor, dim, index, value);
}

Tensor& IndexFillInPlace(Tensor& tensor, std::int64_t dim, const Tensor& index,
                         const at::Scalar& value) {
  return tensor.copy_(IndexFill(tensor, dim, index, value));
}

// Bins of one width from `low` to `high`, which belongs to the last one; those of the smallest and
// the largest entry where both are the same.
Tensor Histogram(const Tensor& tensor, std::int64_t bins, const at::Scalar& low,
                 const at::Scalar& high) {
  TORCH_CHECK(bins > 0, "histc(): bins must be > 0");
  TORCH_CHECK(low.toDouble() <= high.toDouble(), "histc: max must be larger than min");
  Tensor values = tensor.detach().reshape({-1});
  if (!values.is_floating_point()) values = values.to(at::kDouble);
  Tensor first = at::scalar_tensor(low, values.options());
  Tensor last = at::scalar_tensor(high, values.options());
  if (low.toDouble() == high.toDouble() && values.numel() > 0) {
    first = values.min();
    last = values.max();
  }
  const Tensor is_point = first.eq(last).to(values.scalar_type());
  first = first - is_point;
  last = last + is_point;
  const Tensor place = ((values - first) * (static_cast<double>(bins) / (last - first)))
                           .floor()
                           .clamp_max(static_cast<double>(bins - 1));
  const Tensor is_inside = values.ge(first).logical_and(values.le(last));
  const Tensor is_in_bin = place.unsqueeze(1).eq(at::arange(bins, values.options()));
  return is_in_bin.logical_and(is_inside.unsqueeze(1)).sum(0).to(tensor.scalar_type());
}

// What is the same for all examples (positions) is dropped for each by itself.
template <Tensor (*kDropout)(const Tensor&, double, bool)>
Tensor DropoutOfEach(const Tensor& tensor, double probability, bool train) {
  return kDropout(train && probability > 0 ? OwnTensor(tensor) : tensor, probability, train);
}

}  // namespace

void RegisterCounts(torch::Library& rules) {
  rules.impl("histc", Histogram);
  rules.impl("_nested_tensor_from_mask_left_aligned",
             [](const Tensor& /*tensor*/, const Tensor& /*mask*/) { return false; });
}

void RegisterFirstRules(torch::Library& first) {
  first.impl("index_put", IndexPut);
  first.impl("index_put_", IndexPutInPlace);
  first.impl("index_add", IndexAdd);
  first.impl("index_add_", IndexAddInPlace);
  first.impl("index_copy", IndexCopy);
  first.impl("index_copy_", IndexCopyInPlace);
  first.impl("index_fill.int_Scalar", IndexFill);
  first.impl("index_fill_.int_Scalar", IndexFillInPlace);
  first.impl("dropout", DropoutOfEach<at::native::dropout>);
  first.impl("alpha_dropout", DropoutOfEach<at::native::alpha_dropout>);
  first.impl("feature_dropout", DropoutOfEach<at::native::feature_dropout>);
  first.impl("feature_alpha_dropout", DropoutOfEach<at::native::feature_alpha_dropout>);
}

}  // namespace sordino
