#include "sordino/gradients/internal/isolation/bfloat16_products.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <cstddef>
#include <vector>

#include "sordino/device/precision.h"
#include "sordino/gradients/internal/isolation/isolated_units.h"

namespace sordino::isolated {
namespace {

thread_local bool converts_factors = false;

// What composite products (conv2d, einsum) are made of, and those that are better converted as a
// whole: before a weight is expanded.
constexpr const char* kProducts[] = {"linear", "matmul", "mm",     "bmm",     "mv",
                                     "addmm",  "addmv",  "addbmm", "baddbmm", "convolution"};

template <typename Visit>
void ForEachTensor(torch::jit::Stack& stack, std::size_t count, const Visit& visit) {
  for (std::size_t k = stack.size() - count; k < stack.size(); ++k) {
    if (stack[k].isTensor() && stack[k].toTensor().defined()) visit(stack[k]);
  }
}

// Called before libtorch looks for the rule of an operation.
void NarrowProduct(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  const auto next = [&] {
    operation.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER,
                                                         c10::DispatchKey::FuncTorchVmapMode),
                              stack);
  };
  const std::size_t arguments = operation.schema().arguments().size();
  bool is_of_examples = false;
  bool is_float32 = converts_factors;
  ForEachTensor(*stack, arguments, [&](const c10::IValue& value) {
    const at::Tensor& factor = value.toTensor();
    is_of_examples = is_of_examples || !IsPlain(factor);
    is_float32 = is_float32 && factor.scalar_type() == at::kFloat;
  });
  if (!is_float32 || !is_of_examples) return next();
  ForEachTensor(*stack, arguments,
                [](c10::IValue& value) { value = value.toTensor().to(at::kBFloat16); });
  next();
  ForEachTensor(*stack, operation.schema().returns().size(),
                [](c10::IValue& value) { value = value.toTensor().to(at::kFloat); });
}

void RegisterProducts() {
  static const torch::Library library = [] {
    torch::Library rules(torch::Library::IMPL, "aten", c10::DispatchKey::FuncTorchVmapMode,
                         __FILE__, __LINE__);
    for (const char* name : kProducts) {
      rules.impl(name, torch::CppFunction::makeFromBoxedFunction<&NarrowProduct>());
    }
    return rules;
  }();
}

}  // namespace

ProductPrecision::ProductPrecision(Of precision) : before_(converts_factors) {
  converts_factors = precision == Of::kUsed && UsedPrecision() == Precision::kBfloat16;
  if (converts_factors) RegisterProducts();
}

ProductPrecision::~ProductPrecision() { converts_factors = before_; }

bool ConvertsFactors(std::initializer_list<at::Tensor> factors) {
  if (!converts_factors) return false;
  for (const at::Tensor& factor : factors) {
    if (factor.defined() && factor.is_floating_point() && factor.scalar_type() != at::kFloat) {
      return false;
    }
  }
  return true;
}

at::Tensor Narrowed(const at::Tensor& factor) {
  const bool is_float32 = factor.defined() && factor.scalar_type() == at::kFloat;
  return is_float32 ? factor.to(at::kBFloat16) : factor;
}

at::ScalarType RoundingType(at::ScalarType type) {
  return type == at::kFloat && UsedPrecision() == Precision::kBfloat16 ? at::kBFloat16 : type;
}

}  // namespace sordino::isolated
