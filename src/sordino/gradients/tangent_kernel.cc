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

// Types of a public class's state: not in an anonymous namespace, which a unity build would warn
// of.
namespace tangent {

// One part of a parameter: its term for each output; without `b` where the gradient is zero.
struct TermsByOutput {
  std::size_t use = 0;
  std::vector<Term> terms;
};

struct TangentParameter {
  std::vector<TermsByOutput> parts;
};

}  // namespace tangent

namespace {

using tangent::TangentParameter;
using tangent::TermsByOutput;

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

// Rows [first, last) of a kernel and its columns [0, last), filled by pairs of blocks of rows.
class KernelSum {
 public:
  KernelSum(std::int64_t examples, std::int64_t outputs, std::int64_t first, std::int64_t last,
            const at::TensorOptions& options)
      : examples_(examples),
        outputs_(outputs),
        first_(first),
        last_(last),
        kernel_(at::zeros({last - first, last}, options)) {}

  void Add(const TermsByOutput& part) {
    if (HasOneRowEach(part)) {
      AddGramProduct(part);
    } else {
      AddWrittenOut(part);
    }
  }
  // Blocks were computed on and below the diagonal.
  at::Tensor Finish() && {
    for (std::int64_t begin = first_; begin < last_; begin += kMirrorRows) {
      const std::int64_t end = std::min(begin + kMirrorRows, last_);
      BlockAt(first_, begin - first_, begin, end - begin)
          .copy_(BlockAt(begin, end - begin, first_, begin - first_).t());
      const at::Tensor square = BlockAt(begin, end - begin, begin, end - begin);
      square.copy_(square.tril() + square.tril(-1).t());
    }
    return kernel_;
  }

 private:
  static constexpr std::int64_t kMirrorRows = 256;

  // Rows and columns are those of the whole kernel.
  at::Tensor BlockAt(std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns) {
    return kernel_.slice(0, row - first_, row - first_ + rows).slice(1, column, column + columns);
  }

  // Only where columns reach is the lower triangle needed: output by output.
  void AddGramProduct(const TermsByOutput& part) {
    const at::Tensor a = RowsOfFactor(part, &Term::a);
    const at::Tensor b = RowsOfFactor(part, &Term::b);
    const std::int64_t n = examples_;
    at::Tensor shared_a;
    at::Tensor shared_b;
    if (a.size(0) == n) shared_a = at::mm(a, a.t());
    if (b.size(0) == n) shared_b = at::mm(b, b.t());
    const auto gram = [&](const at::Tensor& shared, const at::Tensor& rows, const Rows& left,
                          const Rows& right) {
      if (shared.defined()) {
        return shared.slice(0, left.begin, left.end).slice(1, right.begin, right.end);
      }
      const auto own = [&](const Rows& r) {
        return rows.slice(0, r.output * n + r.begin, r.output * n + r.end);
      };
      return at::mm(own(left), own(right).t());
    };
    for (const Rows& left : OutputsIn(first_, last_)) {
      for (const Rows& right : OutputsIn(0, left.output * n + left.end)) {
        BlockAt(left.output * n + left.begin, left.end - left.begin, right.output * n + right.begin,
                right.end - right.begin)
            .addcmul_(gram(shared_a, a, left, right), gram(shared_b, b, left, right));
      }
    }
  }

  // Examples [begin, end) of an output.
  struct Rows {
    std::int64_t output;
    std::int64_t begin;
    std::int64_t end;
  };

  // The rows [first, last) of the kernel, output by output.
  std::vector<Rows> OutputsIn(std::int64_t first, std::int64_t last) const {
    std::vector<Rows> rows;
    for (std::int64_t k = first / examples_; k < outputs_ && k * examples_ < last; ++k) {
      rows.push_back({k, std::max<std::int64_t>(0, first - k * examples_),
                      std::min(examples_, last - k * examples_)});
    }
    return rows;
  }

  // The same for outputs that depend on the part, in blocks of so many rows.
  std::vector<std::vector<Rows>> BlocksOf(const TermsByOutput& part, std::int64_t first,
                                          std::int64_t last, std::int64_t at_once) const {
    std::vector<std::vector<Rows>> blocks;
    std::int64_t filled = at_once;
    for (const Rows& rows : OutputsIn(first, last)) {
      if (!part.terms[static_cast<std::size_t>(rows.output)].b.defined()) continue;
      for (std::int64_t begin = rows.begin; begin < rows.end;) {
        if (filled == at_once) {
          blocks.emplace_back();
          filled = 0;
        }
        const std::int64_t end = std::min(begin + at_once - filled, rows.end);
        blocks.back().push_back({rows.output, begin, end});
        filled += end - begin;
        begin = end;
      }
    }
    return blocks;
  }

  void AddWrittenOut(const TermsByOutput& part) {
    // One that was reached: an output need not depend on a parameter.
    const auto reached = std::find_if(part.terms.begin(), part.terms.end(),
                                      [](const Term& term) { return term.b.defined(); });
    std::int64_t entries = 1;
    for (const std::int64_t extent : reached->sizes) entries *= extent;
    const std::int64_t bytes =
        std::max<std::int64_t>(1, entries) * static_cast<std::int64_t>(kernel_.element_size());
    const std::int64_t at_once = std::max<std::int64_t>(1, kTangentBlockBytes / bytes);
    const std::vector<std::vector<Rows>> all = BlocksOf(part, 0, last_, at_once);
    const auto same = [](const Rows& l, const Rows& r) {
      return l.output == r.output && l.begin == r.begin && l.end == r.end;
    };
    for (const std::vector<Rows>& own : BlocksOf(part, first_, last_, at_once)) {
      const at::Tensor left = Written(part, own);
      for (const std::vector<Rows>& other : all) {
        if (FirstRow(other.front()) > LastRow(own.back())) break;
        const bool is_own =
            own.size() == other.size() && std::equal(own.begin(), own.end(), other.begin(), same);
        AddProducts(left, own, is_own ? left : Written(part, other), other);
      }
    }
  }

  std::int64_t FirstRow(const Rows& rows) const { return rows.output * examples_ + rows.begin; }
  std::int64_t LastRow(const Rows& rows) const { return rows.output * examples_ + rows.end - 1; }

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
        const std::int64_t to_row = FirstRow(l);
        const std::int64_t to_column = FirstRow(r);
        if (to_column < to_row + rows) {
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
  std::int64_t first_;
  std::int64_t last_;
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

// Written out where that takes less memory: a convolution has many rows and few weights. Inputs are
// the same for every output and are held once.
Term Smaller(Term term, std::int64_t examples) {
  if (term.kind == TermKind::kDirect || !term.b.defined()) return term;
  std::int64_t entries = examples;
  for (const std::int64_t extent : term.sizes) entries *= extent;
  if (entries >= term.b.numel()) return term;
  Term written;
  written.b = Materialise(term, 0, examples);
  written.sizes = std::move(term.sizes);
  return written;
}

void AddTerms(TangentParameter& parameter, std::vector<ParameterTerm> terms, std::size_t output,
              std::size_t outputs, std::int64_t examples) {
  for (ParameterTerm& own : terms) {
    auto part = std::find_if(parameter.parts.begin(), parameter.parts.end(),
                             [&](const TermsByOutput& known) { return known.use == own.use; });
    if (part == parameter.parts.end()) {
      parameter.parts.push_back({own.use, std::vector<Term>(outputs)});
      part = parameter.parts.end() - 1;
    }
    part->terms[output] = Smaller(std::move(own.term), examples);
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

  std::int64_t rows() const { return examples * outputs.size(0); }

  template <typename Wanted>
  at::Tensor Sum(const Wanted& wanted, std::int64_t first, std::int64_t last) const {
    const at::NoGradGuard no_grad;
    const at::NoTF32Guard full_precision;
    KernelSum sum(examples, outputs.size(0), first, last, options);
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
               static_cast<std::size_t>(count), state_->examples);
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

at::Tensor TangentKernel::LayerRows(std::size_t layer, std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin >= end || end > state_->rows()) {
    throw Error(fmt::format("the rows {} to {} of a tangent kernel of {} were asked for.", begin,
                            end, state_->rows()));
  }
  return state_->Sum([&](std::int64_t group) { return group == static_cast<std::int64_t>(layer); },
                     begin, end);
}

at::Tensor TangentKernel::Layer(std::size_t layer) const {
  return LayerRows(layer, 0, state_->rows());
}

at::Tensor TangentKernel::Whole() const {
  return state_->Sum([](std::int64_t) { return true; }, 0, state_->rows());
}

}  // namespace sordino
