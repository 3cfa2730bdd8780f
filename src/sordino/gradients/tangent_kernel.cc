#include "sordino/gradients/tangent_kernel.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/internal/part_clipper.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/internal/terms/term_rows.h"

namespace sordino {
namespace {

// One part of a parameter: its term for each output; without `b` where the gradient is zero.
struct TermsByOutput {
  std::size_t use = 0;
  std::vector<Term> terms;
};

struct TangentParameter {
  std::vector<TermsByOutput> parts;
};

// Tensors that are the same for every output are held once.
void ShareEqual(TermsByOutput& part) {
  Term& first = part.terms.front();
  for (Term& term : part.terms) {
    for (const auto member : {&Term::a, &Term::b}) {
      if (!(term.*member).defined() || !(first.*member).defined()) continue;
      if ((term.*member).sizes() == (first.*member).sizes() &&
          at::equal(term.*member, first.*member)) {
        term.*member = first.*member;
      }
    }
  }
}

bool IsShared(const TermsByOutput& part, at::Tensor Term::*member) {
  return std::all_of(part.terms.begin(), part.terms.end(), [&](const Term& term) {
    return (term.*member).defined() && (term.*member).is_same(part.terms.front().*member);
  });
}

// Rows of one factor of a part, output by output; [n] where they are shared, else [K n].
at::Tensor RowsOfFactor(const TermsByOutput& part, at::Tensor Term::*member) {
  if (IsShared(part, member)) return Wide(part.terms.front().*member);
  std::vector<at::Tensor> rows;
  for (const Term& term : part.terms) rows.push_back(Wide(term.*member));
  return at::cat(rows);
}

bool HasOneRowEach(const TermsByOutput& part) {
  return std::all_of(part.terms.begin(), part.terms.end(), [](const Term& term) {
    return term.kind == TermKind::kOuter && term.b.defined() && term.layout.rows_per_example() == 1;
  });
}

// A kernel that is filled by pairs of blocks of rows.
class KernelSum {
 public:
  KernelSum(std::int64_t examples, std::int64_t outputs, const at::TensorOptions& options)
      : examples_(examples),
        outputs_(outputs),
        kernel_(at::zeros({examples * outputs, examples * outputs}, options)) {}

  void Add(const TermsByOutput& part) {
    if (HasOneRowEach(part)) {
      AddGramProduct(part);
    } else {
      AddWrittenOut(part);
    }
  }
  at::Tensor Finish() && {
    // Blocks were computed on and below the diagonal.
    const std::int64_t rows = kernel_.size(0);
    for (std::int64_t begin = 0; begin < rows; begin += kMirrorRows) {
      const std::int64_t end = std::min(begin + kMirrorRows, rows);
      kernel_.slice(0, 0, begin)
          .slice(1, begin, end)
          .copy_(kernel_.slice(0, begin, end).slice(1, 0, begin).t());
      const at::Tensor square = kernel_.slice(0, begin, end).slice(1, begin, end);
      square.copy_(square.tril() + square.tril(-1).t());
    }
    return kernel_;
  }

 private:
  static constexpr std::int64_t kMirrorRows = 256;

  at::Tensor BlockAt(std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns) {
    return kernel_.slice(0, row, row + rows).slice(1, column, column + columns);
  }

  // Only where columns reach is the lower triangle needed: output by output.
  void AddGramProduct(const TermsByOutput& part) {
    const at::Tensor a = RowsOfFactor(part, &Term::a);
    const at::Tensor b = RowsOfFactor(part, &Term::b);
    const std::int64_t n = examples_;
    const auto rows_of = [&](const at::Tensor& rows, std::int64_t k) {
      return rows.size(0) == n ? rows : rows.slice(0, k * n, (k + 1) * n);
    };
    at::Tensor shared_a;
    at::Tensor shared_b;
    if (a.size(0) == n) shared_a = at::mm(a, a.t());
    if (b.size(0) == n) shared_b = at::mm(b, b.t());
    const auto gram = [&](const at::Tensor& shared, const at::Tensor& rows, std::int64_t k,
                          std::int64_t l) {
      return shared.defined() ? shared : at::mm(rows_of(rows, k), rows_of(rows, l).t());
    };
    for (std::int64_t k = 0; k < outputs_; ++k) {
      for (std::int64_t l = 0; l <= k; ++l) {
        BlockAt(k * n, n, l * n, n).addcmul_(gram(shared_a, a, k, l), gram(shared_b, b, k, l));
      }
    }
  }

  struct Rows {
    std::int64_t output;
    std::int64_t begin;
    std::int64_t end;
  };

  void AddWrittenOut(const TermsByOutput& part) {
    // One that was reached: an output need not depend on a parameter.
    const auto reached = std::find_if(part.terms.begin(), part.terms.end(),
                                      [](const Term& term) { return term.b.defined(); });
    std::int64_t entries = 1;
    for (const std::int64_t extent : reached->sizes) entries *= extent;
    const std::int64_t bytes =
        std::max<std::int64_t>(1, entries) * static_cast<std::int64_t>(kernel_.element_size());
    const std::int64_t at_once = std::max<std::int64_t>(1, kTangentBlockBytes / bytes);
    std::vector<std::vector<Rows>> blocks(1);
    std::int64_t filled = 0;
    for (std::int64_t k = 0; k < outputs_; ++k) {
      if (!part.terms[static_cast<std::size_t>(k)].b.defined()) continue;
      for (std::int64_t begin = 0; begin < examples_;) {
        if (filled == at_once) {
          blocks.emplace_back();
          filled = 0;
        }
        const std::int64_t end = std::min(begin + at_once - filled, examples_);
        blocks.back().push_back({k, begin, end});
        filled += end - begin;
        begin = end;
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const at::Tensor left = Written(part, blocks[i]);
      for (std::size_t j = 0; j <= i; ++j) {
        AddProducts(left, blocks[i], j == i ? left : Written(part, blocks[j]), blocks[j]);
      }
    }
  }

  // The gradients of a block, [rows, entries].
  static at::Tensor Written(const TermsByOutput& part, const std::vector<Rows>& block) {
    std::vector<at::Tensor> gradients;
    for (const Rows& rows : block) {
      const Term& term = part.terms[static_cast<std::size_t>(rows.output)];
      gradients.push_back(
          Wide(Materialise(term, rows.begin, rows.end)).reshape({rows.end - rows.begin, -1}));
    }
    return gradients.size() == 1 ? gradients.front() : at::cat(gradients);
  }

  void AddProducts(const at::Tensor& left, const std::vector<Rows>& left_rows,
                   const at::Tensor& right, const std::vector<Rows>& right_rows) {
    std::int64_t row = 0;
    for (const Rows& l : left_rows) {
      const std::int64_t rows = l.end - l.begin;
      std::int64_t column = 0;
      for (const Rows& r : right_rows) {
        const std::int64_t columns = r.end - r.begin;
        const std::int64_t to_row = l.output * examples_ + l.begin;
        const std::int64_t to_column = r.output * examples_ + r.begin;
        if (to_column <= to_row) {
          // Not addmm_: oneDNN runs it at half the rate where the result is a slice.
          BlockAt(to_row, rows, to_column, columns)
              .add_(at::mm(left.slice(0, row, row + rows),
                           right.slice(0, column, column + columns).t()));
        }
        column += columns;
      }
      row += rows;
    }
  }

  std::int64_t examples_;
  std::int64_t outputs_;
  at::Tensor kernel_;
};

// The outputs of a plain pass, to know how many there are.
std::int64_t CountOutputs(const OutputFunction& outputs, const Batch& batch) {
  const at::NoGradGuard no_grad;
  const at::Tensor values = outputs(Slice(batch, 0, 2));
  if (values.dim() != 2 || values.size(0) != 2 || values.size(1) < 1) {
    throw Error("a tangent kernel needs outputs of the shape [examples, K], K at least 1.");
  }
  return values.size(1);
}

void AddTerms(TangentParameter& parameter, std::vector<ParameterTerm> terms, std::size_t output,
              std::size_t outputs) {
  for (ParameterTerm& own : terms) {
    auto part = std::find_if(parameter.parts.begin(), parameter.parts.end(),
                             [&](const TermsByOutput& known) { return known.use == own.use; });
    if (part == parameter.parts.end()) {
      parameter.parts.push_back({own.use, std::vector<Term>(outputs)});
      part = parameter.parts.end() - 1;
    }
    part->terms[output] = std::move(own.term);
    if (output > 0) ShareEqual(*part);
  }
}

}  // namespace

struct TangentKernel::State {
  std::vector<TangentParameter> parameters;
  std::vector<std::int64_t> groups;
  std::vector<std::string> layers;
  std::int64_t examples = 0;
  at::Tensor outputs;
  at::TensorOptions options;

  template <typename Wanted>
  at::Tensor Sum(const Wanted& wanted) const {
    const at::NoGradGuard no_grad;
    const at::NoTF32Guard full_precision;
    KernelSum sum(examples, outputs.size(0), options);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!wanted(groups[p])) continue;
      for (const TermsByOutput& part : parameters[p].parts) sum.Add(part);
    }
    return std::move(sum).Finish();
  }
};

TangentKernel::TangentKernel(std::vector<NamedParameter> parameters, const OutputFunction& outputs,
                             const Batch& batch)
    : state_(std::make_unique<State>()) {
  state_->examples = Examples(batch);
  if (state_->examples < 2) {
    throw Error(fmt::format("a tangent kernel is of at least two examples, and there are {}.",
                            state_->examples));
  }
  PartClipper clipper(TrainedParameters(std::move(parameters)), {}, {});
  const ClippingGroups layers = ClippingGroups::ByLayer(clipper.parameters());
  state_->groups = layers.Assign(clipper.parameters());
  state_->layers = layers.layers();
  state_->parameters.resize(clipper.parameters().size());
  const std::int64_t count = CountOutputs(outputs, batch);
  std::vector<at::Tensor> values;
  for (std::int64_t k = 0; k < count; ++k) {
    CollectedTerms collected =
        clipper.Collect([&](const Batch& b) { return outputs(b).select(1, k); }, batch);
    values.push_back(collected.losses);
    for (std::size_t p = 0; p < collected.terms.size(); ++p) {
      AddTerms(state_->parameters[p], std::move(collected.terms[p]), static_cast<std::size_t>(k),
               static_cast<std::size_t>(count));
    }
  }
  state_->outputs = at::stack(values);
  state_->options = Wide(clipper.parameters().front().value.detach()).options();
}

TangentKernel::~TangentKernel() = default;
TangentKernel::TangentKernel(TangentKernel&&) noexcept = default;
TangentKernel& TangentKernel::operator=(TangentKernel&&) noexcept = default;

std::int64_t TangentKernel::examples() const { return state_->examples; }
const at::Tensor& TangentKernel::outputs() const { return state_->outputs; }
const std::vector<std::string>& TangentKernel::layers() const { return state_->layers; }

at::Tensor TangentKernel::Layer(std::size_t layer) const {
  return state_->Sum([&](std::int64_t group) { return group == static_cast<std::int64_t>(layer); });
}

at::Tensor TangentKernel::Whole() const {
  return state_->Sum([](std::int64_t) { return true; });
}

}  // namespace sordino
