#include "sordino/gradients/internal/terms/use_rule.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <functional>
#include <numeric>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include "sordino/gradients/internal/isolation/recurrent_node.h"
#include "sordino/gradients/internal/isolation/units_group_norm.h"
#include "sordino/gradients/internal/isolation/units_product.h"
#include "sordino/gradients/internal/terms/recurrent_rule.h"
#include "sordino/gradients/internal/terms/rule_forms.h"

namespace sordino {
namespace {

namespace generated = torch::autograd::generated;
using namespace rule_forms;  // NOLINT(google-build-using-namespace): one file in two

std::vector<std::int64_t> Ints(c10::SymIntArrayRef values) {
  std::vector<std::int64_t> ints;
  for (const auto& value : values) ints.push_back(value.expect_int());
  return ints;
}

struct Place {
  TapeNode node;
  std::size_t slot;
  Sizes sizes;   // of the tensor that enters
  Sizes output;  // of the gradient
  const std::string& parameter;
  RecurrentPasses* recurrent;

  // Takes longer than the rest of a rule: only for errors, and for rules that may yet fail.
  std::string What() const {
    return "the parameter '" + parameter + "' in the operation '" + OperationName(*node) + "'";
  }
};

using Maker = std::unique_ptr<UseRule> (*)(const Place&);

template <typename Node>
Node& As(const Place& place) {
  return static_cast<Node&>(*place.node);
}

std::unique_ptr<UseRule> Elementwise(const Place& place,
                                     std::function<at::Tensor(const at::Tensor&)> product) {
  return std::make_unique<Broadcast>(std::move(product), place.output, place.sizes, place.sizes,
                                     place.What());
}

std::unique_ptr<UseRule> Addmm(const Place& place) {
  auto& node = As<generated::AddmmBackward0>(place);
  if (place.slot == 0) {
    if (place.sizes.size() == 1 && place.sizes[0] == place.output[1]) {
      return std::make_unique<RowBias>(node.beta, place.sizes);
    }
    return Elementwise(place, [beta = node.beta](const at::Tensor& g) { return Scaled(g, beta); });
  }
  const bool left = place.slot == 1;
  return std::make_unique<MatrixProduct>(left ? node.mat2_.unpack() : node.mat1_.unpack(), left,
                                         node.alpha, place.sizes);
}

std::unique_ptr<UseRule> UnitsProductUse(const Place& place) {
  auto& node = As<UnitsProductBackward>(place);
  if (place.slot == 2) return std::make_unique<RowBias>(1, place.sizes);
  if (place.slot != 1) return nullptr;
  return std::make_unique<UnitsMatrix>(node.input_.unpack(), node.is_turned_, place.sizes);
}

std::unique_ptr<UseRule> Mm(const Place& place) {
  auto& node = As<generated::MmBackward0>(place);
  const bool left = place.slot == 0;
  return std::make_unique<MatrixProduct>(left ? node.mat2_.unpack() : node.self_.unpack(), left, 1,
                                         place.sizes);
}

std::unique_ptr<UseRule> Mv(const Place& place) {
  auto& node = As<generated::MvBackward0>(place);
  if (place.slot == 0) return nullptr;
  return std::make_unique<VectorProduct>(node.self_.unpack(), 1, place.sizes);
}

std::unique_ptr<UseRule> Addmv(const Place& place) {
  auto& node = As<generated::AddmvBackward0>(place);
  if (place.slot == 0) {
    return Elementwise(place, [beta = node.beta](const at::Tensor& g) { return Scaled(g, beta); });
  }
  if (place.slot == 1) return nullptr;
  return std::make_unique<VectorProduct>(node.mat_.unpack(), node.alpha, place.sizes);
}

std::unique_ptr<UseRule> Bmm(const Place& place) {
  auto& node = As<generated::BmmBackward0>(place);
  const bool left = place.slot == 0;
  return std::make_unique<StackedProduct>(left ? node.mat2_.unpack() : node.self_.unpack(), left,
                                          place.sizes);
}

// A convolution that was called with all its arguments has a node of another type.
template <typename Node>
std::unique_ptr<UseRule> ConvolutionUse(const Place& place) {
  auto& node = As<Node>(place);
  if (place.slot == 2) return std::make_unique<ChannelSum>(nullptr, place.sizes);
  if (place.slot != 1) return nullptr;
  return std::make_unique<ConvolutionWeight>(
      node.input_.unpack(),
      Convolution{place.sizes, Ints(node.stride), Ints(node.padding), Ints(node.dilation),
                  node.transposed, node.groups.expect_int()});
}

std::unique_ptr<UseRule> EmbeddingUse(const Place& place) {
  auto& node = As<generated::EmbeddingBackward0>(place);
  if (node.scale_grad_by_freq) {
    throw NotPerExample(place.What() +
                        " scales its gradient by how often a token occurs in the "
                        "batch, which mixes examples; set scale_grad_by_freq to false.");
  }
  std::int64_t padding = node.padding_idx.expect_int();
  if (padding < 0) padding = -1;
  return std::make_unique<Lookup>(node.indices_.unpack(), padding, place.sizes);
}

// table[indices], where the indices are one tensor.
std::unique_ptr<UseRule> IndexUse(const Place& place) {
  auto& node = As<generated::IndexBackward0>(place);
  if (node.indices_.size() != 1 || place.sizes.size() != 2) return nullptr;
  const at::Tensor indices = node.indices_.front().unpack();
  if (!indices.defined() || indices.scalar_type() != at::kLong) return nullptr;
  return std::make_unique<Lookup>(indices.remainder(place.sizes[0]), -1, place.sizes);
}

std::unique_ptr<UseRule> IndexSelectUse(const Place& place) {
  auto& node = As<generated::IndexSelectBackward0>(place);
  if (node.dim != 0 || place.sizes.size() != 2) return nullptr;
  return std::make_unique<Lookup>(node.index_.unpack().to(at::kLong), -1, place.sizes);
}

std::unique_ptr<UseRule> EmbeddingBagUse(const Place& place) {
  auto& node = As<generated::EmbeddingBagBackward0>(place);
  constexpr std::int64_t kMean = 1;
  constexpr std::int64_t kMax = 2;
  if (place.slot != 0 || node.mode == kMax) return nullptr;
  if (node.scale_grad_by_freq) {
    throw NotPerExample(place.What() +
                        " scales its gradient by how often a token occurs in the "
                        "batch, which mixes examples; set scale_grad_by_freq to false.");
  }
  const at::Tensor indices = node.indices_.unpack();
  at::Tensor bags = node.result1_.unpack(place.node);
  if (bags.numel() != indices.numel()) {
    const at::Tensor offsets = node.offsets_.unpack();
    bags = at::zeros_like(indices);
    if (offsets.numel() > 1) {
      bags = (at::arange(indices.numel(), offsets.options()).unsqueeze(1) >=
              offsets.slice(0, 1).unsqueeze(0))
                 .sum(1);
    }
  }
  return std::make_unique<BagLookup>(
      indices, bags, node.mode == kMean ? node.result2_.unpack(place.node) : at::Tensor(),
      node.per_sample_weights_.unpack(), node.padding_idx, place.sizes);
}

std::unique_ptr<UseRule> LayerNormUse(const Place& place) {
  auto& node = As<generated::NativeLayerNormBackward0>(place);
  if (place.slot == 2) return std::make_unique<TrailingSum>(nullptr, place.sizes);
  if (place.slot != 1) return nullptr;
  return std::make_unique<NormScale>(
      NormalisedRows{node.input_.unpack(), node.result1_.unpack(place.node),
                     node.result2_.unpack(place.node)},
      place.sizes);
}

std::unique_ptr<UseRule> RmsNormUse(const Place& place) {
  auto& node = As<generated::FusedRmsNormBackward0>(place);
  if (place.slot != 1) return nullptr;
  const at::Tensor input = node.input_.unpack();
  const at::Tensor scale = node.result1_.unpack(place.node);
  return std::make_unique<TrailingSum>([=] { return Wide(input) * scale; }, place.sizes);
}

std::unique_ptr<UseRule> GroupNormUse(const Place& place) {
  auto& node = As<generated::NativeGroupNormBackward0>(place);
  if (place.slot == 2) return std::make_unique<ChannelSum>(nullptr, place.sizes);
  if (place.slot != 1) return nullptr;
  const at::Tensor input = node.input_.unpack();
  const at::Tensor mean = node.result1_.unpack(place.node);
  const at::Tensor scale = node.result2_.unpack(place.node);
  return std::make_unique<ChannelSum>(
      [=] {
        const at::Tensor grouped = Wide(input).reshape({mean.size(0), mean.size(1), -1});
        return ((grouped - mean.unsqueeze(2)) * scale.unsqueeze(2)).reshape(input.sizes());
      },
      place.sizes);
}

std::unique_ptr<UseRule> UnitsGroupNormUse(const Place& place) {
  using NormSlot = UnitsGroupNormBackward::Slot;
  if (place.slot == NormSlot::kInput) return nullptr;
  return std::make_unique<ImageSum>(
      [node = place.node, is_scale = place.slot == NormSlot::kScale](const at::Tensor& gradient) {
        const GroupNormGradients found =
            static_cast<UnitsGroupNormBackward&>(*node).GradientsOfImages(gradient);
        return is_scale ? found.scale : found.shift;
      },
      place.sizes);
}

std::unique_ptr<UseRule> BatchNormUse(const Place& place) {
  auto& node = As<generated::NativeBatchNormBackward0>(place);
  if (node.training) {
    throw NotPerExample(place.What() +
                        " normalises over the batch, so every example enters the "
                        "gradient of every other; use group norm or layer norm, or put the layer "
                        "into evaluation mode.");
  }
  if (place.slot == 2) return std::make_unique<ChannelSum>(nullptr, place.sizes);
  if (place.slot != 1) return nullptr;
  const at::Tensor input = node.input_.unpack();
  const at::Tensor mean = node.running_mean_.unpack();
  const at::Tensor variance = node.running_var_.unpack();
  const double eps = node.eps;
  return std::make_unique<ChannelSum>(
      [=] {
        Sizes shape(static_cast<std::size_t>(input.dim()), 1);
        shape[1] = mean.numel();
        return (Wide(input) - mean.view(shape)) * (variance + eps).rsqrt().view(shape);
      },
      place.sizes);
}

std::unique_ptr<UseRule> Add(const Place& place) {
  auto& node = As<generated::AddBackward0>(place);
  if (place.slot == 0) return Elementwise(place, nullptr);
  return Elementwise(place, [alpha = node.alpha](const at::Tensor& g) { return Scaled(g, alpha); });
}

std::unique_ptr<UseRule> Sub(const Place& place) {
  auto& node = As<generated::SubBackward0>(place);
  if (place.slot == 0) return Elementwise(place, nullptr);
  return Elementwise(place, [alpha = node.alpha](const at::Tensor& g) { return g * -alpha; });
}

std::unique_ptr<UseRule> Mul(const Place& place) {
  auto& node = As<generated::MulBackward0>(place);
  const at::Tensor other = place.slot == 0 ? node.other_.unpack() : node.self_.unpack();
  return Elementwise(place, [=](const at::Tensor& g) { return Wide(g) * Wide(other); });
}

std::unique_ptr<UseRule> Addcmul(const Place& place) {
  auto& node = As<generated::AddcmulBackward0>(place);
  if (place.slot == 0) return Elementwise(place, nullptr);
  const at::Tensor other = place.slot == 1 ? node.tensor2_.unpack() : node.tensor1_.unpack();
  return Elementwise(place, [other, value = node.value](const at::Tensor& g) {
    return Scaled(Wide(g) * Wide(other), value);
  });
}

std::unique_ptr<UseRule> Div(const Place& place) {
  auto& node = As<generated::DivBackward0>(place);
  const at::Tensor other = node.other_.unpack();
  if (place.slot == 0) {
    return Elementwise(place, [=](const at::Tensor& g) { return Wide(g) / Wide(other); });
  }
  const at::Tensor self = node.self_.unpack();
  return Elementwise(place, [=](const at::Tensor& g) {
    return -Wide(g) * (Wide(self) / Wide(other)) / Wide(other);
  });
}

std::unique_ptr<UseRule> Prelu(const Place& place) {
  auto& node = As<generated::PreluKernelBackward0>(place);
  if (place.slot != 1) return nullptr;
  const at::Tensor self = node.self_.unpack();
  return Elementwise(place, [=](const at::Tensor& g) { return Wide(g) * Wide(self).clamp_max(0); });
}

std::unique_ptr<UseRule> Where(const Place& place) {
  auto& node = As<generated::WhereBackward0>(place);
  const at::Tensor condition = node.condition_.unpack();
  const bool chosen = place.slot == 0;  // the condition has no edge
  return Elementwise(place, [=](const at::Tensor& g) {
    return chosen ? at::where(condition, g, at::zeros_like(g))
                  : at::where(condition, at::zeros_like(g), g);
  });
}

std::unique_ptr<UseRule> Expand(const Place& place) { return Elementwise(place, nullptr); }

// [2, 3] repeated by (5, 1) is [5, 2, 1, 3] reduced over the repetitions.
std::unique_ptr<UseRule> Repeat(const Place& place) {
  const Sizes repeats = Ints(As<generated::RepeatBackward0>(place).repeats);
  const std::size_t added = repeats.size() - place.sizes.size();
  Sizes full;
  Sizes reduced;
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const std::int64_t size = k < added ? 1 : place.sizes[k - added];
    full.insert(full.end(), {repeats[k], size});
    reduced.insert(reduced.end(), {1, size});
  }
  return std::make_unique<Broadcast>(nullptr, full, reduced, place.sizes, place.What());
}

std::unique_ptr<UseRule> RecurrentLayerOf(const Place& place) {
  return MakeRecurrentLayerRule(place.node, place.slot, place.sizes, *place.recurrent);
}

std::unique_ptr<UseRule> FusedCell(const Place& place) {
  return MakeFusedCellRule(place.node, place.slot);
}

std::unique_ptr<UseRule> FusedLayers(const Place& place) { RefuseFusedLayers(place.What()); }

const std::unordered_map<std::type_index, Maker>& Makers() {
  static const std::unordered_map<std::type_index, Maker> makers = {
      {typeid(generated::AddmmBackward0), Addmm},
      {typeid(UnitsGroupNormBackward), UnitsGroupNormUse},
      {typeid(UnitsProductBackward), UnitsProductUse},
      {typeid(RecurrentLayerBackward), RecurrentLayerOf},
      {typeid(generated::MmBackward0), Mm},
      {typeid(generated::MvBackward0), Mv},
      {typeid(generated::AddmvBackward0), Addmv},
      {typeid(generated::BmmBackward0), Bmm},
      {typeid(generated::ConvolutionBackward0), ConvolutionUse<generated::ConvolutionBackward0>},
      {typeid(generated::ConvolutionBackward1), ConvolutionUse<generated::ConvolutionBackward1>},
      {typeid(generated::EmbeddingBackward0), EmbeddingUse},
      {typeid(generated::EmbeddingBagBackward0), EmbeddingBagUse},
      {typeid(generated::IndexBackward0), IndexUse},
      {typeid(generated::IndexSelectBackward0), IndexSelectUse},
      {typeid(generated::NativeLayerNormBackward0), LayerNormUse},
      {typeid(generated::FusedRmsNormBackward0), RmsNormUse},
      {typeid(generated::NativeGroupNormBackward0), GroupNormUse},
      {typeid(generated::NativeBatchNormBackward0), BatchNormUse},
      {typeid(generated::AddBackward0), Add},
      {typeid(generated::SubBackward0), Sub},
      {typeid(generated::MulBackward0), Mul},
      {typeid(generated::AddcmulBackward0), Addcmul},
      {typeid(generated::DivBackward0), Div},
      {typeid(generated::PreluKernelBackward0), Prelu},
      {typeid(generated::WhereBackward0), Where},
      {typeid(generated::ExpandBackward0), Expand},
      {typeid(generated::RepeatBackward0), Repeat},
      {typeid(generated::MkldnnRnnLayerBackward0), FusedLayers},
      {typeid(generated::ThnnFusedLstmCellBackward0), FusedCell},
      {typeid(generated::ThnnFusedGruCellBackward0), FusedCell},
      {typeid(generated::CudnnRnnBackward0), FusedLayers},
  };
  return makers;
}

std::unique_ptr<UseRule> MakeRule(const Tape& tape, const ParameterUse& use,
                                  const std::string& parameter, RecurrentPasses& recurrent) {
  const TapeNode& node = tape.graph.nodes[use.node];
  const Place place{node, use.slot, use.sizes, OutputSizes(*node, 0), parameter, &recurrent};
  const auto& type = *node;
  std::unique_ptr<UseRule> rule;
  // The rules are for real numbers. Gradients of complex weights are those of derived tensors,
  // which go back to real parameters (view_as_complex).
  const auto is_complex = [](const torch::autograd::Node& of, std::uint32_t output) {
    return at::isComplexType(of.input_metadata(output).options().dtype().toScalarType());
  };
  const torch::autograd::Edge& used = node->next_edge(use.slot);
  const bool complex = is_complex(*node, 0) || is_complex(*used.function, used.input_nr);
  if (const auto maker = Makers().find(typeid(type)); maker != Makers().end() && !complex) {
    rule = maker->second(place);
  }
  if (rule == nullptr && node->num_inputs() == 1) {
    rule = std::make_unique<AnyOperation>(node, place.slot, place.sizes);
  }
  if (rule == nullptr) {
    throw NotPerExample(place.What() +
                        " has no rule for gradients per example; write it with linear, "
                        "convolution, embedding, norm or broadcasting operations, freeze the "
                        "parameter, or allow the fallback that runs example by example.");
  }
  return rule;
}

}  // namespace

std::vector<std::unique_ptr<UseRule>> MakeRules(const Tape& tape,
                                                const std::vector<NamedParameter>& parameters) {
  std::vector<std::unique_ptr<UseRule>> rules;
  rules.reserve(tape.uses.size());
  RecurrentPasses recurrent;
  for (const ParameterUse& use : tape.uses) {
    rules.push_back(MakeRule(tape, use, RootName(tape, use.root, parameters), recurrent));
  }
  return rules;
}

}  // namespace sordino
