#include "sordino/gradients/use_rule.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <functional>
#include <numeric>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include "sordino/gradients/broadcast.h"
#include "sordino/gradients/recurrent_rule.h"

namespace sordino {
namespace {

namespace generated = torch::autograd::generated;
using Sizes = std::vector<std::int64_t>;

std::vector<std::int64_t> Ints(c10::SymIntArrayRef values) {
  std::vector<std::int64_t> ints;
  for (const auto& value : values) ints.push_back(value.expect_int());
  return ints;
}

at::Tensor Wide(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kFloat || type == at::kDouble ? tensor : tensor.to(at::kFloat);
}

at::Tensor Scaled(const at::Tensor& tensor, const at::Scalar& factor) {
  return factor.equal(1) ? tensor : tensor * factor;
}

at::Tensor LeadingRows(const at::Tensor& tensor, std::int64_t features) {
  return tensor.reshape({features == 0 ? 0 : tensor.numel() / features, features});
}

// y = alpha * x w: rows of x and of dy. When the parameter is the left factor (y = w x), rows are
// columns of x and dy.
class MatrixProduct : public UseRule {
 public:
  MatrixProduct(at::Tensor x, bool parameter_is_left, at::Scalar alpha, Sizes sizes)
      : x_(std::move(x)), left_(parameter_is_left), alpha_(alpha), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kOuter; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    return left_ ? gradient.t() : gradient;
  }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    Term term{.kind = TermKind::kOuter, .layout = layout, .sizes = sizes_};
    const at::Tensor scaled = Scaled(gradient, alpha_);
    term.a = left_ ? scaled.t() : x_;
    term.b = left_ ? x_.t() : scaled;
    return term;
  }

 private:
  at::Tensor x_;
  bool left_;
  at::Scalar alpha_;
  Sizes sizes_;
};

// y = alpha * x v for a vector v: dy [rows], and the gradient of v is sum_r dy_r x_r.
class VectorProduct : public UseRule {
 public:
  VectorProduct(at::Tensor x, at::Scalar alpha, Sizes sizes)
      : x_(std::move(x)), alpha_(alpha), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kOuter; }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient.unsqueeze(1); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    return {.kind = TermKind::kOuter,
            .a = x_,
            .b = Scaled(gradient, alpha_).unsqueeze(1),
            .layout = layout,
            .sizes = sizes_};
  }

 private:
  at::Tensor x_;
  at::Scalar alpha_;
  Sizes sizes_;
};

// y[k] = x[k] w[k] for a stack of matrices that does not run over the examples: the gradients are
// written out, [examples, stack, p, q].
class StackedProduct : public UseRule {
 public:
  StackedProduct(at::Tensor x, bool parameter_is_left, Sizes sizes)
      : x_(std::move(x)), left_(parameter_is_left), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kDirect; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    return left_ ? gradient.permute({2, 0, 1}).flatten(1) : gradient.permute({1, 0, 2}).flatten(1);
  }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    const auto by_example = [&](const at::Tensor& stack, bool rows_last) {
      const at::Tensor rows = Wide(rows_last ? stack.transpose(1, 2) : stack);
      return rows.reshape({rows.size(0), layout.outer, layout.examples, layout.inner, rows.size(2)})
          .permute({2, 0, 1, 3, 4})
          .reshape({layout.examples * rows.size(0), layout.rows_per_example(), rows.size(2)});
    };
    const at::Tensor x = by_example(x_, left_);
    const at::Tensor dy = by_example(gradient, left_);
    const at::Tensor product =
        left_ ? at::bmm(dy.transpose(1, 2), x) : at::bmm(x.transpose(1, 2), dy);
    return {.kind = TermKind::kDirect,
            .b = product.reshape({layout.examples, -1}),
            .layout = {1, layout.examples, 1},
            .sizes = sizes_};
  }

 private:
  at::Tensor x_;
  bool left_;
  Sizes sizes_;
};

// The bias of a matrix product: a row of dy each.
class RowBias : public UseRule {
 public:
  RowBias(at::Scalar beta, Sizes sizes) : beta_(beta), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kRows; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    return LeadingRows(gradient, gradient.size(-1));
  }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    return {.kind = TermKind::kRows,
            .b = Scaled(Rows(gradient), beta_),
            .layout = layout,
            .sizes = sizes_};
  }

 private:
  at::Scalar beta_;
  Sizes sizes_;
};

class ConvolutionWeight : public UseRule {
 public:
  ConvolutionWeight(at::Tensor input, Convolution convolution)
      : input_(std::move(input)), convolution_(std::move(convolution)) {}

  TermKind kind() const override { return TermKind::kConvolution; }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient.flatten(1); }

  std::int64_t RowCount(const at::Tensor& gradient) const override { return gradient.size(0); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    return {.kind = TermKind::kConvolution,
            .a = input_,
            .b = gradient,
            .layout = layout,
            .sizes = convolution_.weight,
            .convolution = convolution_};
  }

 private:
  at::Tensor input_;
  Convolution convolution_;
};

// The parameter stands for one value of each channel (dimension 1) of [images, channels, ...]:
// g_i = sum over the images and positions of example i of dy * value.
class ChannelSum : public UseRule {
 public:
  // `value` gives what the gradient is multiplied by; undefined for 1 (a bias).
  ChannelSum(std::function<at::Tensor()> value, Sizes sizes)
      : value_(std::move(value)), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kRows; }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient.flatten(1); }

  std::int64_t RowCount(const at::Tensor& gradient) const override { return gradient.size(0); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    at::Tensor product = Wide(gradient);
    if (value_) product = product * value_();
    const at::Tensor channels =
        product.dim() > 2 ? product.flatten(2).sum(2) : product;  // [images, channels]
    return {.kind = TermKind::kRows, .b = channels, .layout = layout, .sizes = sizes_};
  }

 private:
  std::function<at::Tensor()> value_;
  Sizes sizes_;
};

// The parameter has the shape of the last dimensions: g_i = sum over the rows of example i of
// dy * value.
class TrailingSum : public UseRule {
 public:
  TrailingSum(std::function<at::Tensor()> value, Sizes sizes)
      : value_(std::move(value)), sizes_(std::move(sizes)) {
    for (const std::int64_t size : sizes_) features_ *= size;
  }

  TermKind kind() const override { return TermKind::kRows; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    return LeadingRows(gradient, features_);
  }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    at::Tensor product = Wide(gradient);
    if (value_) product = product * value_();
    return {.kind = TermKind::kRows,
            .b = LeadingRows(product, features_),
            .layout = layout,
            .sizes = sizes_};
  }

 private:
  std::function<at::Tensor()> value_;
  Sizes sizes_;
  std::int64_t features_ = 1;
};

// The parameter was broadcast to the shape of the gradient, element by element.
class Broadcast : public UseRule {
 public:
  // `full` is the shape that is reduced to `reduced` (same number of dimensions, or fewer); they
  // differ from the shapes of gradient and parameter for a repetition.
  Broadcast(std::function<at::Tensor(const at::Tensor&)> product, Sizes full, Sizes reduced,
            Sizes sizes, std::string what)
      : product_(std::move(product)),
        full_(std::move(full)),
        reduced_(std::move(reduced)),
        sizes_(std::move(sizes)),
        what_(std::move(what)) {}

  TermKind kind() const override { return TermKind::kDirect; }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient.reshape({-1, 1}); }

  bool Accepts(const ExampleLayout& layout) const override {
    return CanReducePerExample(full_, reduced_, layout);
  }

  std::int64_t RowCount(const at::Tensor& gradient) const override { return gradient.numel(); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    const at::Tensor product = Wide(product_ ? product_(gradient) : gradient);
    const at::Tensor reduced = ReducePerExample(product, full_, reduced_, layout);
    if (!reduced.defined()) {
      throw NotPerExample(what_ +
                          " has values of its own for each row of the batch, so it has no "
                          "gradient per example; broadcast one value over the batch, or allow the "
                          "fallback that runs example by example.");
    }
    return {.kind = TermKind::kDirect,
            .b = reduced,
            .layout = {1, layout.examples, 1},
            .sizes = sizes_};
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> product_;
  Sizes full_;
  Sizes reduced_;
  Sizes sizes_;
  std::string what_;
};

class Lookup : public UseRule {
 public:
  Lookup(at::Tensor indices, std::int64_t padding, Sizes sizes)
      : indices_(std::move(indices)), padding_(padding), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kLookup; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    return LeadingRows(gradient, gradient.size(-1));
  }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    return {.kind = TermKind::kLookup,
            .a = indices_.reshape({-1}),
            .b = Rows(gradient),
            .layout = layout,
            .sizes = sizes_,
            .padding_index = padding_};
  }

 private:
  at::Tensor indices_;
  std::int64_t padding_;
  Sizes sizes_;
};

// Bags of rows, summed or averaged: row r of the table lookup belongs to the example of its bag.
class BagLookup : public UseRule {
 public:
  BagLookup(at::Tensor indices, at::Tensor bag_of_row, at::Tensor bag_sizes, at::Tensor weights,
            std::int64_t padding, Sizes sizes)
      : indices_(std::move(indices)),
        bag_(std::move(bag_of_row)),
        bag_sizes_(std::move(bag_sizes)),
        weights_(std::move(weights)),
        padding_(padding),
        sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kLookup; }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient; }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    at::Tensor rows = Wide(gradient);
    if (bag_sizes_.defined()) rows = rows / bag_sizes_.clamp_min(1).unsqueeze(1);
    rows = rows.index_select(0, bag_);
    if (weights_.defined()) rows = rows * weights_.unsqueeze(1);
    Term term{.kind = TermKind::kLookup,
              .a = indices_,
              .b = rows,
              .layout = {1, layout.examples, 1},
              .sizes = sizes_,
              .padding_index = padding_};
    term.owners = bag_.div(layout.inner, "floor").remainder(layout.examples);
    return term;
  }

 private:
  at::Tensor indices_;
  at::Tensor bag_;
  at::Tensor bag_sizes_;
  at::Tensor weights_;
  std::int64_t padding_;
  Sizes sizes_;
};

struct Place {
  TapeNode node;
  std::size_t slot;
  Sizes sizes;   // of the tensor that enters
  Sizes output;  // of the gradient
  const std::string& parameter;
  const Tape* tape;
  LstmLayers* layers;

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

std::unique_ptr<UseRule> ConvolutionUse(const Place& place) {
  auto& node = As<generated::ConvolutionBackward0>(place);
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
  const at::Tensor input = node.input_.unpack();
  const at::Tensor mean = node.result1_.unpack(place.node);
  const at::Tensor scale = node.result2_.unpack(place.node);
  return std::make_unique<TrailingSum>([=] { return (Wide(input) - mean) * scale; }, place.sizes);
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

std::unique_ptr<UseRule> FusedLstmLayer(const Place& place) {
  return MakeLstmLayerRule(*place.tape, place.node, place.slot, place.What(), *place.layers);
}

std::unique_ptr<UseRule> FusedCell(const Place& place) {
  return MakeFusedCellRule(place.node, place.slot);
}

std::unique_ptr<UseRule> CudnnLayers(const Place& place) { RefuseCudnnLayers(place.What()); }

const std::unordered_map<std::type_index, Maker>& Makers() {
  static const std::unordered_map<std::type_index, Maker> makers = {
      {typeid(generated::AddmmBackward0), Addmm},
      {typeid(generated::MmBackward0), Mm},
      {typeid(generated::MvBackward0), Mv},
      {typeid(generated::AddmvBackward0), Addmv},
      {typeid(generated::BmmBackward0), Bmm},
      {typeid(generated::ConvolutionBackward0), ConvolutionUse},
      {typeid(generated::EmbeddingBackward0), EmbeddingUse},
      {typeid(generated::EmbeddingBagBackward0), EmbeddingBagUse},
      {typeid(generated::NativeLayerNormBackward0), LayerNormUse},
      {typeid(generated::FusedRmsNormBackward0), RmsNormUse},
      {typeid(generated::NativeGroupNormBackward0), GroupNormUse},
      {typeid(generated::NativeBatchNormBackward0), BatchNormUse},
      {typeid(generated::AddBackward0), Add},
      {typeid(generated::SubBackward0), Sub},
      {typeid(generated::MulBackward0), Mul},
      {typeid(generated::DivBackward0), Div},
      {typeid(generated::PreluKernelBackward0), Prelu},
      {typeid(generated::WhereBackward0), Where},
      {typeid(generated::ExpandBackward0), Expand},
      {typeid(generated::RepeatBackward0), Repeat},
      {typeid(generated::MkldnnRnnLayerBackward0), FusedLstmLayer},
      {typeid(generated::ThnnFusedLstmCellBackward0), FusedCell},
      {typeid(generated::ThnnFusedGruCellBackward0), FusedCell},
      {typeid(generated::CudnnRnnBackward0), CudnnLayers},
  };
  return makers;
}

std::unique_ptr<UseRule> MakeRule(const Tape& tape, const ParameterUse& use,
                                  const std::string& parameter, LstmLayers& layers) {
  const TapeNode& node = tape.nodes[use.node];
  const Place place{node, use.slot, use.sizes, OutputSizes(*node, 0), parameter, &tape, &layers};
  const auto& type = *node;
  std::unique_ptr<UseRule> rule;
  if (const auto maker = Makers().find(typeid(type)); maker != Makers().end()) {
    rule = maker->second(place);
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
  LstmLayers layers;
  for (const ParameterUse& use : tape.uses) {
    rules.push_back(MakeRule(tape, use, parameters[use.parameter].name, layers));
  }
  return rules;
}

}  // namespace sordino
