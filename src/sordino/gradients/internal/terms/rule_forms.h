// The forms that rules take: how rows and terms are made of what an operation saved.
//
// Which operation has which form, and where it keeps what the form needs, stands in use_rule.cc,
// the only file that includes this one.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_RULE_FORMS_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_RULE_FORMS_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/terms/broadcast.h"
#include "sordino/gradients/internal/terms/product_forms.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/gradients/internal/terms/use_rule.h"
#include "sordino/kernels/example_layout.h"
#include "sordino/kernels/row_operations.h"

namespace sordino::rule_forms {

// The bias of a matrix product: a row of dy each.
class RowBias : public UseRule {
 public:
  RowBias(at::Scalar beta, Sizes sizes) : beta_(std::move(beta)), sizes_(std::move(sizes)) {}

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
    return {.kind = TermKind::kRows, .b = Channels(product), .layout = layout, .sizes = sizes_};
  }

 private:
  // [images, channels]
  static at::Tensor Channels(const at::Tensor& product) {
    if (product.dim() <= 2) return product;
    const at::Tensor flat = product.flatten(2);
    const std::int64_t images = flat.size(0);
    const std::int64_t channels = flat.size(1);
    const std::int64_t positions = flat.size(2);
    if (const at::Tensor last = flat.transpose(1, 2); last.is_contiguous()) {
      return SumOfRows(last.reshape({images * positions, channels}), {1, images, positions});
    }
    return SumOfRows(flat.reshape({-1, 1}), {1, images * channels, positions})
        .view({images, channels});
  }

  std::function<at::Tensor()> value_;
  Sizes sizes_;
};

// The same of an operation that has the sums of its images itself.
class ImageSum : public UseRule {
 public:
  // `sums` gives [images, channels] for the gradient that arrives, [images, channels, ...].
  ImageSum(std::function<at::Tensor(const at::Tensor&)> sums, Sizes sizes)
      : sums_(std::move(sums)), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kRows; }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient.flatten(1); }

  std::int64_t RowCount(const at::Tensor& gradient) const override { return gradient.size(0); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    return {.kind = TermKind::kRows, .b = sums_(gradient), .layout = layout, .sizes = sizes_};
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> sums_;
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

 protected:
  const Sizes& sizes() const { return sizes_; }

 private:
  std::function<at::Tensor()> value_;
  Sizes sizes_;
  std::int64_t features_ = 1;
};

// The scale of a norm over the last dimensions: the value is (input - mean) * deviation. Where
// there is a launch for it, nothing of the size of the input is written.
class NormScale : public TrailingSum {
 public:
  NormScale(NormalisedRows rows, Sizes sizes)
      : TrailingSum([rows] { return (Wide(rows.input) - rows.mean) * rows.deviation; },
                    std::move(sizes)),
        rows_(std::move(rows)) {}

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    const at::Tensor rows = Rows(gradient);
    const bool fits = HasRowOperations(rows) && HasRowOperations(rows_.input) &&
                      HasRowOperations(rows_.mean) && HasRowOperations(rows_.deviation);
    if (!fits) return TrailingSum::MakeTerm(gradient, layout);
    const at::Tensor input = LeadingRows(rows_.input, rows.size(1));
    return {.kind = TermKind::kRows,
            .b = DeviceNormalisedSums(rows, {input, rows_.mean, rows_.deviation}, layout),
            .layout = {1, layout.examples, 1},
            .sizes = sizes()};
  }

 private:
  NormalisedRows rows_;
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

// In its scope a node has one edge: what it gives to its other inputs goes nowhere, so that nothing
// of it comes back to the one that is asked for (a weight that is used in front of the node too).
// A write into a view keeps its edges, which libtorch compares with those of a node inside of it.
class OnlyEdge {
 public:
  OnlyEdge(const TapeNode& node, std::size_t slot) : node_(node), edges_(node->next_edges()) {
    if (dynamic_cast<const torch::autograd::CopySlices*>(&*node) != nullptr) return;
    for (std::size_t k = 0; k < edges_.size(); ++k) {
      if (k != slot) node_->next_edges()[k] = {};
    }
  }
  ~OnlyEdge() { node_->next_edges() = edges_; }
  OnlyEdge(const OnlyEdge&) = delete;
  OnlyEdge& operator=(const OnlyEdge&) = delete;

 private:
  const TapeNode& node_;
  const torch::autograd::edge_list edges_;
};

// Any operation with one output: its own backward function, once for each example with the
// gradients of all others set to zero. Slow, and right for whatever is linear in its gradient, as
// backward functions are, as long as everything is finite: 0 times infinity of one example would
// reach another, and then the units go one by one (PartClipper::UnitByUnit).
class AnyOperation : public UseRule {
 public:
  AnyOperation(TapeNode node, std::size_t slot, Sizes sizes)
      : node_(std::move(node)), slot_(slot), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kDirect; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    const at::Tensor real = gradient.is_complex() ? at::view_as_real(gradient) : gradient;
    return real.reshape({gradient.numel(), gradient.is_complex() ? 2 : 1});
  }

  std::int64_t RowCount(const at::Tensor& gradient) const override { return gradient.numel(); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    const at::Tensor owner = at::arange(gradient.numel(), gradient.options().dtype(at::kLong))
                                 .div(layout.inner, "floor")
                                 .remainder(layout.examples)
                                 .view(gradient.sizes());
    std::vector<at::Tensor> gradients;
    const OnlyEdge alone(node_, slot_);
    for (std::int64_t example = 0; example < layout.examples; ++example) {
      const at::Tensor own = gradient.masked_fill(owner.ne(example), 0);
      // A pass of its own: inside of another one a node computes what that one asked for.
      const at::Tensor found = torch::autograd::Engine::get_default_engine().execute(
          {{node_, 0}}, {own}, /*keep_graph=*/true, /*create_graph=*/false,
          /*accumulate_grad=*/false, {node_->next_edge(slot_)})[0];
      gradients.push_back(Wide(found.is_sparse() ? found.to_dense() : found).reshape({1, -1}));
    }
    at::Tensor all = at::cat(gradients);
    if (!at::isfinite(all).all().item<bool>()) throw NeedsLoop();
    return {.kind = TermKind::kDirect,
            .b = std::move(all),
            .layout = {1, layout.examples, 1},
            .sizes = sizes_};
  }

 private:
  TapeNode node_;
  std::size_t slot_;
  Sizes sizes_;
};

}  // namespace sordino::rule_forms

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_RULE_FORMS_H_
