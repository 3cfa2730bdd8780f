// The rules: for each operation that takes a parameter, how the gradient of one example is read
// from what the graph saved and from the gradient that arrives at the operation's output.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_USE_RULE_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_USE_RULE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {

// Some value is not finite where a rule needs finite ones; units can go one by one.
class NeedsLoop : public NotPerExample {
 public:
  NeedsLoop()
      : NotPerExample("an operation without a rule of its own met a value that is not finite.") {}
};

class UseRule {
 public:
  virtual ~UseRule() = default;

  // The gradient that the other functions take, from those that arrive at all outputs of the
  // operation (undefined where none does): that of its first output, unless the rule makes another
  // of them. Undefined when the examples' gradients are zero.
  virtual at::Tensor Arriving(const std::vector<at::Tensor>& gradients) { return gradients[0]; }

  // The arriving gradient as [rows, features], where each row is one example's: what the ownership
  // probe looks at and what a layout counts.
  virtual at::Tensor Rows(const at::Tensor& gradient) const = 0;

  // Rows(gradient).size(0), without a copy of anything.
  virtual std::int64_t RowCount(const at::Tensor& gradient) const { return Rows(gradient).size(0); }

  // The kind of the terms that it makes.
  virtual TermKind kind() const = 0;

  virtual Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const = 0;

  // A node that stands in for the operation's during a pass, because it shares the work with this
  // rule: it has the same inputs and outputs, and no gradients for parameters. Null for none.
  // Unless the graph is kept, the operation's own node gives up what it saved, and runs no more.
  virtual TapeNode Replacement(bool /*keep_graph*/) { return nullptr; }
};

// The rule of each use, with what it needs of the saved tensors taken out of the graph, so that the
// backward pass may free the rest. Throws NotPerExample, naming the operation and the parameter.
std::vector<std::unique_ptr<UseRule>> MakeRules(const Tape& tape,
                                                const std::vector<NamedParameter>& parameters);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_USE_RULE_H_
