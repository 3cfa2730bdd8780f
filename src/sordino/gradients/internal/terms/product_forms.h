// Rules of matrix products (rule_forms.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_PRODUCT_FORMS_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_PRODUCT_FORMS_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/gradients/internal/terms/use_rule.h"
#include "sordino/kernels/example_layout.h"

namespace sordino::rule_forms {

using Sizes = std::vector<std::int64_t>;

inline at::Tensor Scaled(const at::Tensor& tensor, const at::Scalar& factor) {
  return factor.equal(1) ? tensor : tensor * factor;
}

inline at::Tensor LeadingRows(const at::Tensor& tensor, std::int64_t features) {
  return tensor.reshape({features == 0 ? 0 : tensor.numel() / features, features});
}

// y = alpha * x w: rows of x and of dy. When the parameter is the left factor (y = w x), rows are
// columns of x and dy.
class MatrixProduct : public UseRule {
 public:
  MatrixProduct(at::Tensor x, bool parameter_is_left, at::Scalar alpha, Sizes sizes)
      : x_(std::move(x)),
        left_(parameter_is_left),
        alpha_(std::move(alpha)),
        sizes_(std::move(sizes)) {}

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

// y = x w, or x w^T when w is turned: rows of x and of dy.
class UnitsMatrix : public UseRule {
 public:
  UnitsMatrix(const at::Tensor& x, bool is_turned, Sizes sizes)
      : x_(LeadingRows(x, x.size(-1))), is_turned_(is_turned), sizes_(std::move(sizes)) {}

  TermKind kind() const override { return TermKind::kOuter; }

  at::Tensor Rows(const at::Tensor& gradient) const override {
    return LeadingRows(gradient, gradient.size(-1));
  }
  std::int64_t RowCount(const at::Tensor& /*gradient*/) const override { return x_.size(0); }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    Term term{.kind = TermKind::kOuter, .a = x_, .b = Rows(gradient), .layout = layout};
    if (is_turned_) std::swap(term.a, term.b);
    term.sizes = sizes_;
    return term;
  }

 private:
  at::Tensor x_;
  bool is_turned_;
  Sizes sizes_;
};

// y = alpha * x v for a vector v: dy [rows], and the gradient of v is sum_r dy_r x_r.
class VectorProduct : public UseRule {
 public:
  VectorProduct(at::Tensor x, at::Scalar alpha, Sizes sizes)
      : x_(std::move(x)), alpha_(std::move(alpha)), sizes_(std::move(sizes)) {}

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

}  // namespace sordino::rule_forms

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_PRODUCT_FORMS_H_
