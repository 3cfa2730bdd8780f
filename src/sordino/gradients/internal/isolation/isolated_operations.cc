#include "sordino/gradients/internal/isolation/isolated_operations.h"

#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/isolation/bfloat16_products.h"
#include "sordino/gradients/internal/isolation/isolated_indices.h"
#include "sordino/gradients/internal/isolation/isolated_recurrence.h"
#include "sordino/gradients/internal/isolation/isolated_units.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/isolation/units_group_norm.h"
#include "sordino/gradients/internal/isolation/units_product.h"

namespace sordino {
namespace {

using at::Tensor;
using isolated::ConvertsFactors;
using isolated::CurrentLayer;
using isolated::IsOf;
using isolated::IsPlain;
using isolated::Layer;
using isolated::Merge;
using isolated::Narrowed;
using isolated::OptionalTensor;
using isolated::PlainTensors;
using isolated::ProductPrecision;
using isolated::Split;
namespace functorch = at::functorch;

// Of a wrapped tensor with the units in front, and plain ones.
bool HasProduct(const Tensor& input, const Tensor& matrix, const Tensor& bias) {
  const auto* wrapped = functorch::maybeGetBatchedImpl(input);
  return wrapped->bdim() == 0 && HasUnitsProduct(wrapped->value(), matrix, bias);
}

Tensor Product(const Layer& layer, const Tensor& input, const Tensor& matrix, const Tensor& bias,
               bool is_turned) {
  const Tensor& value = functorch::maybeGetBatchedImpl(input)->value();
  return functorch::makeBatched(UnitsProduct(value, matrix, bias, is_turned), 0, layer.level);
}

Tensor Linear(const Tensor& input, const Tensor& weight, const OptionalTensor& bias) {
  const Layer layer = CurrentLayer();
  if (!IsOf(layer, input) || !IsPlain(weight) || !IsPlain(bias) || input.dim() < 2) {
    return at::native::linear(input, weight, bias);
  }
  const PlainTensors plain;
  if (HasProduct(input, weight, bias.value_or(Tensor()))) {
    return Product(layer, input, weight, bias.value_or(Tensor()), /*is_turned=*/true);
  }
  return Split(layer, at::linear(Merge(layer, input, 0), weight, bias), 0);
}

// What torch::nn::Linear calls for matrices.
Tensor Addmm(const Tensor& bias, const Tensor& input, const Tensor& matrix, const at::Scalar& beta,
             const at::Scalar& alpha) {
  const Layer layer = CurrentLayer();
  if (!IsOf(layer, input) || !IsPlain(matrix) || !IsPlain(bias) || bias.dim() != 1) {
    return bias.mul(beta).add(input.mm(matrix), alpha);
  }
  const PlainTensors plain;
  if (input.dim() == 2 && beta.equal(1) && alpha.equal(1) && HasProduct(input, matrix, bias)) {
    return Product(layer, input, matrix, bias, /*is_turned=*/false);
  }
  return Split(layer, at::addmm(bias, Merge(layer, input, 0), matrix, beta, alpha), 0);
}

Tensor GroupNorm(const Tensor& input, std::int64_t groups, const OptionalTensor& weight,
                 const OptionalTensor& bias, double eps, bool cudnn) {
  const Layer layer = CurrentLayer();
  if (!IsOf(layer, input) || !IsPlain(weight) || !IsPlain(bias) || input.dim() < 2) {
    return at::native::group_norm(input, groups, weight, bias, eps, cudnn);
  }
  const PlainTensors plain;
  const Tensor merged = Merge(layer, input, 0);
  const Tensor scale = weight.value_or(Tensor());
  const Tensor shift = bias.value_or(Tensor());
  const Tensor normed = HasUnitsGroupNorm(merged, groups, scale, shift)
                            ? UnitsGroupNorm(merged, groups, scale, shift, eps)
                            : at::group_norm(merged, groups, weight, bias, eps, cudnn);
  return Split(layer, normed, 0);
}

Tensor AveragePool(const Tensor& input, c10::SymIntArrayRef size) {
  const Layer layer = CurrentLayer();
  if (!IsOf(layer, input) || input.dim() != 4) {
    return at::native::adaptive_avg_pool2d_symint(input, size);
  }
  const PlainTensors plain;
  return Split(layer, at::adaptive_avg_pool2d_symint(Merge(layer, input, 0), size), 0);
}

Tensor AffineGrid(const Tensor& theta, c10::SymIntArrayRef size, bool align_corners) {
  const Layer layer = CurrentLayer();
  TORCH_CHECK(IsOf(layer, theta), "affine_grid_generator hit the vmap fallback");
  const PlainTensors plain;
  std::vector<c10::SymInt> merged(size.begin(), size.end());
  merged.front() = merged.front() * layer.units;
  return Split(layer,
               at::affine_grid_generator_symint(Merge(layer, theta, 0), merged, align_corners), 0);
}

Tensor Attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const OptionalTensor& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  if (IsPlain(query) && IsPlain(key) && IsPlain(value) && IsPlain(mask)) {
    const PlainTensors plain;
    return at::scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale,
                                            grouped);
  }
  if (ConvertsFactors({query, key, value, mask.value_or(Tensor())})) {
    return Attention(Narrowed(query), Narrowed(key), Narrowed(value),
                     mask ? OptionalTensor(Narrowed(*mask)) : mask, dropout, causal, scale, grouped)
        .to(at::kFloat);
  }
  const Layer layer = CurrentLayer();
  const std::int64_t dims = query.dim();  // [examples, ..., tokens, features]
  const bool same_dims = dims >= 3 && key.dim() == dims && value.dim() == dims;
  // A mask that is the same for all examples is broadcast by the operation.
  const bool has_mask = mask && mask->defined();
  const bool shared_mask =
      !has_mask || (IsPlain(*mask) && (mask->dim() < dims || mask->size(0) == 1));
  const bool own_mask = has_mask && (IsPlain(*mask) || IsOf(layer, *mask)) && mask->dim() == dims &&
                        mask->size(0) == query.size(0);
  if (!same_dims || !(shared_mask || own_mask) || !IsOf(layer, query)) {
    return std::get<0>(at::native::_scaled_dot_product_attention_math(
        query, key, value, mask, dropout, causal, {}, scale, grouped));
  }
  const PlainTensors plain;
  const OptionalTensor merged_mask = shared_mask ? mask : Merge(layer, *mask, 0);
  return Split(layer,
               at::scaled_dot_product_attention(Merge(layer, query, 0), Merge(layer, key, 0),
                                                Merge(layer, value, 0), merged_mask, dropout,
                                                causal, scale, grouped),
               0);
}

// ---- Losses -----------------------------------------------------------------------------------

Tensor Reduced(const Tensor& losses, const Tensor& weights, std::int64_t reduction) {
  if (reduction == at::Reduction::None) return losses;
  return reduction == at::Reduction::Sum ? losses.sum() : losses.sum() / weights.sum();
}

// The classes are dimension 1, or 0 where there is no other.
Tensor NegativeLogLikelihood(const Tensor& scores, const Tensor& target,
                             const OptionalTensor& weight, std::int64_t reduction,
                             // The signature is libtorch's.
                             // NOLINTNEXTLINE(performance-unnecessary-value-param)
                             c10::SymInt ignore_index) {
  const std::int64_t classes = scores.dim() == 1 ? 0 : 1;
  const Tensor ignored = target.eq(ignore_index.expect_int());
  const Tensor safe = target.masked_fill(ignored, 0);
  const Tensor chosen = scores.gather(classes, safe.unsqueeze(classes)).squeeze(classes).neg();
  Tensor weights = ignored.logical_not().to(scores.scalar_type());
  if (weight && weight->defined()) {
    weights = weights * weight->index_select(0, safe.reshape({-1})).view(safe.sizes());
  }
  return Reduced(chosen * weights, weights, reduction);
}

Tensor CrossEntropy(const Tensor& scores, const Tensor& target, const OptionalTensor& weight,
                    std::int64_t reduction, c10::SymInt ignore_index, double smoothing) {
  const Layer layer = CurrentLayer();
  if (!IsOf(layer, scores) || !IsOf(layer, target) || !IsPlain(weight) ||
      reduction != at::Reduction::None || scores.dim() < 2 || target.dim() < 1) {
    return at::native::cross_entropy_loss_symint(scores, target, weight, reduction,
                                                 std::move(ignore_index), smoothing);
  }
  const PlainTensors plain;
  return Split(layer,
               at::cross_entropy_loss(Merge(layer, scores, 0), Merge(layer, target, 0), weight,
                                      reduction, ignore_index.expect_int(), smoothing),
               0);
}

// ---- Views ------------------------------------------------------------------------------------
// libtorch's rules for these count levels in 64 bits.

// Of a unit whose entries lie one behind the other, and within them.
Tensor AsStrided(const Tensor& tensor, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                 // The signature is libtorch's.
                 // NOLINTNEXTLINE(performance-unnecessary-value-param)
                 std::optional<c10::SymInt> offset) {
  const Layer layer = CurrentLayer();
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  const std::int64_t begin = offset ? offset->expect_int() - tensor.storage_offset() : 0;
  bool is_inside = tensor.is_contiguous() && begin >= 0 && sizes.size() == strides.size();
  std::int64_t last = begin;
  std::vector<std::int64_t> all_sizes = {layer.units};
  std::vector<std::int64_t> all_strides = {tensor.numel()};
  for (std::size_t k = 0; is_inside && k < sizes.size(); ++k) {
    all_sizes.push_back(sizes[k].expect_int());
    all_strides.push_back(strides[k].expect_int());
    is_inside = all_sizes.back() > 0 && all_strides.back() >= 0 &&
                (all_sizes.back() == 1 ||
                 all_strides.back() <= (tensor.numel() - 1 - last) / (all_sizes.back() - 1));
    if (is_inside) last += (all_sizes.back() - 1) * all_strides.back();
  }
  if (!is_inside || last >= tensor.numel()) {
    throw NotPerExample(
        "the model uses as_strided beyond the entries of an example, or on one whose entries do "
        "not "
        "lie one behind the other; use reshape, unfold or slices, or call contiguous() before.");
  }
  const PlainTensors plain;
  const Tensor units = wrapped->value().movedim(wrapped->bdim(), 0).contiguous();
  return functorch::makeBatched(
      units.as_strided(all_sizes, all_strides, units.storage_offset() + begin), 0, layer.level);
}

std::vector<Tensor> SplitWithSizes(const Tensor& tensor, c10::SymIntArrayRef sizes,
                                   std::int64_t dim) {
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  const PlainTensors plain;
  std::vector<Tensor> parts =
      wrapped->value().split_with_sizes_symint(sizes, wrapped->actualDim(dim));
  for (Tensor& part : parts) {
    part = functorch::makeBatched(part, wrapped->bdim(), wrapped->level());
  }
  return parts;
}

std::vector<Tensor> SplitEvenly(const Tensor& tensor, c10::SymInt size, std::int64_t dim) {
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  const PlainTensors plain;
  std::vector<Tensor> parts =
      wrapped->value().split_symint(std::move(size), wrapped->actualDim(dim));
  for (Tensor& part : parts) {
    part = functorch::makeBatched(part, wrapped->bdim(), wrapped->level());
  }
  return parts;
}

std::vector<Tensor> Unbind(const Tensor& tensor, std::int64_t dim) {
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  const PlainTensors plain;
  const std::int64_t actual = wrapped->actualDim(dim);
  const std::int64_t units = wrapped->bdim() - (actual < wrapped->bdim() ? 1 : 0);
  std::vector<Tensor> parts = wrapped->value().unbind(actual);
  for (Tensor& part : parts) part = functorch::makeBatched(part, units, wrapped->level());
  return parts;
}

Tensor StackTensors(at::TensorList tensors, std::int64_t dim) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.unsqueeze(dim));
  return at::cat(parts, dim);
}

// ---- Others -----------------------------------------------------------------------------------

constexpr std::int64_t kBagMean = 1;
constexpr std::int64_t kBagMaximum = 2;

// [bags, rows]: whether a row is in a bag.
Tensor InBag(const Tensor& offsets, std::int64_t rows, bool include_last_offset) {
  const Tensor starts = include_last_offset ? offsets.slice(0, 0, -1) : offsets;
  const Tensor row = at::arange(rows, offsets.options()).unsqueeze(0);
  const Tensor started = row.ge(starts.unsqueeze(1));
  // A row is in the last bag that has started.
  const Tensor later = at::cat({started.slice(0, 1), at::zeros_like(started.slice(0, 0, 1))});
  return started.logical_and(later.logical_not());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> EmbeddingBag(const Tensor& weight, const Tensor& indices,
                                                        const Tensor& offsets, bool by_frequency,
                                                        std::int64_t mode, bool /*sparse*/,
                                                        const OptionalTensor& row_weights,
                                                        bool include_last_offset,
                                                        std::optional<std::int64_t> padding_index) {
  std::int64_t padding = padding_index.value_or(-1);
  if (padding_index && padding < 0) padding += weight.size(0);
  if (by_frequency) {
    throw NotPerExample(
        "an embedding bag scales its gradient by how often a token occurs in the batch, which "
        "mixes "
        "examples; set scale_grad_by_freq to false.");
  }
  Tensor rows = at::embedding(weight, indices, padding);
  if (row_weights && row_weights->defined()) rows = rows * row_weights->unsqueeze(1);
  Tensor counted = InBag(offsets, indices.size(0), include_last_offset);
  if (padding >= 0) counted = counted.logical_and(indices.ne(padding).unsqueeze(0));
  Tensor bags;
  if (mode == kBagMaximum) {
    const Tensor empty = counted.any(1, /*keepdim=*/true).logical_not();
    const Tensor others = counted.logical_not().unsqueeze(2);
    bags = rows.unsqueeze(0)
               .masked_fill(others, -std::numeric_limits<double>::infinity())
               .amax(1)
               .masked_fill(empty, 0);
  } else {
    // A sum, though it is written as a product.
    const ProductPrecision as_it_is(ProductPrecision::Of::kFactors);
    bags = counted.to(rows.scalar_type()).matmul(rows);
    if (mode == kBagMean) bags = bags / counted.sum(1, /*keepdim=*/true).clamp_min(1);
  }
  const Tensor none = at::zeros({0}, indices.options().dtype(at::kLong));
  return {bags, none, none, none};
}

// The product of three tensors, with dimensions of size 1 put in as `expand` says, summed over
// some.
Tensor Trilinear(const Tensor& first, const Tensor& second, const Tensor& third,
                 at::IntArrayRef expand_first, at::IntArrayRef expand_second,
                 at::IntArrayRef expand_third, at::IntArrayRef summed, std::int64_t /*unroll*/) {
  const auto expanded = [](Tensor tensor, at::IntArrayRef dims) {
    for (const std::int64_t dim : dims) tensor = tensor.unsqueeze(dim);
    return tensor;
  };
  return (expanded(first, expand_first) * expanded(second, expand_second) *
          expanded(third, expand_third))
      .sum(summed);
}

bool Equal(const Tensor& first, const Tensor& second) {
  const auto value = [](const Tensor& tensor) {
    const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
    return wrapped == nullptr ? tensor : wrapped->value();
  };
  const Tensor x = value(first);
  const Tensor y = value(second);
  return IsPlain(first) == IsPlain(second) && first.sizes() == second.sizes() && x.is_alias_of(y) &&
         x.storage_offset() == y.storage_offset() && x.strides() == y.strides();
}

void Decompose(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  operation.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

// Operations that libtorch writes with others and has no rule for run as these others.
void RegisterDecompositions(torch::Library& rules) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto operation = dispatcher.findSchema(name);
    if (!operation || !name.name.starts_with("aten::")) continue;
    if (!operation->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) continue;
    if (operation->hasKernelForDispatchKey(c10::DispatchKey::FuncTorchBatched)) continue;
    if (operation->hasKernelForDispatchKey(c10::DispatchKey::FuncTorchBatchedDecomposition)) {
      continue;
    }
    const std::string full =
        name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    rules.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&Decompose>());
  }
}

std::optional<c10::OperatorHandle> OutOfPlace(const c10::FunctionSchema& schema) {
  std::string name = schema.name();
  if (!name.ends_with('_') || name.ends_with("__")) return std::nullopt;
  name.pop_back();
  return c10::Dispatcher::singleton().findSchema({name, schema.overload_name()});
}

// What the operation out of place gives is written to the tensor.
void WriteResult(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = operation.schema();
  const Tensor written =
      (stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size()))->toTensor();
  OutOfPlace(schema)->callBoxed(stack);
  const Tensor result = stack->back().toTensor();
  stack->back() = written.copy_(result);
}

// Operations in place that libtorch has a rule for out of place only (scatter_, index_copy_).
void RegisterOperationsInPlace(torch::Library& rules) {
  const auto has_rule = [](const c10::OperatorHandle& operation) {
    return operation.hasKernelForDispatchKey(c10::DispatchKey::FuncTorchBatched) ||
           operation.hasKernelForDispatchKey(c10::DispatchKey::FuncTorchBatchedDecomposition);
  };
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto operation = dispatcher.findSchema(name);
    if (!operation || !name.name.starts_with("aten::") || has_rule(*operation)) continue;
    const bool is_other = operation->hasTag(at::Tag::inplace_view) ||
                          operation->hasTag(at::Tag::nondeterministic_seeded);
    const c10::FunctionSchema& schema = operation->schema();
    const auto out_of_place = OutOfPlace(schema);
    if (is_other || !out_of_place || !has_rule(*out_of_place)) continue;
    const bool has_same_form =
        schema.returns().size() == 1 && out_of_place->schema().returns().size() == 1 &&
        schema.arguments().size() == out_of_place->schema().arguments().size();
    if (!has_same_form) continue;
    const std::string full =
        name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    rules.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&WriteResult>());
  }
}

// The dispatcher warns of a rule that takes the place of another one.
class NoWarnings {
 public:
  NoWarnings() : guard_(&silent_) {}

 private:
  struct Silent : c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
  };
  Silent silent_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace

void RegisterIsolatedOperations() {
  static const torch::Library library = [] {
    const NoWarnings no_warnings;
    torch::Library rules(torch::Library::IMPL, "aten", c10::DispatchKey::FuncTorchBatched, __FILE__,
                         __LINE__);
    rules.impl("linear", Linear);
    rules.impl("addmm", Addmm);
    rules.impl("group_norm", GroupNorm);
    rules.impl("adaptive_avg_pool2d", AveragePool);
    rules.impl("affine_grid_generator", AffineGrid);
    rules.impl("cross_entropy_loss", CrossEntropy);
    rules.impl("nll_loss", NegativeLogLikelihood);
    rules.impl("nll_loss2d", NegativeLogLikelihood);
    rules.impl("nll_loss_nd", NegativeLogLikelihood);
    RegisterRecurrentOperations(rules);
    RegisterCounts(rules);
    rules.impl("embedding_bag.padding_idx", EmbeddingBag);
    rules.impl("embedding_bag",
               [](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                  bool by_frequency, std::int64_t mode, bool sparse,
                  const OptionalTensor& row_weights, bool include_last_offset) {
                 return EmbeddingBag(weight, indices, offsets, by_frequency, mode, sparse,
                                     row_weights, include_last_offset, std::nullopt);
               });
    rules.impl("as_strided", AsStrided);
    rules.impl("split_with_sizes", SplitWithSizes);
    rules.impl("split.Tensor", SplitEvenly);
    rules.impl("unbind.int", Unbind);
    rules.impl("stack", StackTensors);
    rules.impl("_trilinear", Trilinear);
    rules.impl("equal", Equal);
    RegisterDecompositions(rules);
    RegisterOperationsInPlace(rules);
    return rules;
  }();
  // Where libtorch looks first, for operations that may draw random numbers.
  static const torch::Library first = [] {
    const NoWarnings no_warnings;
    torch::Library rules(torch::Library::IMPL, "aten", c10::DispatchKey::FuncTorchVmapMode,
                         __FILE__, __LINE__);
    rules.impl("scaled_dot_product_attention", Attention);
    RegisterFirstRules(rules);
    return rules;
  }();
}

}  // namespace sordino
