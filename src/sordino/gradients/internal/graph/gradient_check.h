// Gradients per example against those of ordinary autograd, on the graph that they are read off.
//
// The backward pass of a loss vector with the weights r gives sum_i r_i g_i without any rule of
// use_rule.h. Before a graph of a new structure is used up, this is computed for random weights
// over all units, which finds a gradient that is wrong or that was given to another example, and
// for a few units alone, whose norms are compared too. The same graph means the same random
// numbers: dropout takes nothing away from the check.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_GRADIENT_CHECK_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_GRADIENT_CHECK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/graph/per_example_pass.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

class GradientCheck {
 public:
  // Runs backward passes over the graph behind `losses` and keeps it. loss_weight as of
  // PassOptions.
  GradientCheck(const at::Tensor& losses, std::int64_t units, double loss_weight,
                const std::vector<NamedParameter>& parameters, std::int64_t wanted);

  // Throws DifferentValues when the gradients of the pass are others. Whether there was something
  // to compare: false when no gradient that was looked at is finite and not zero.
  bool Compare(const PerExamplePass& pass) const;

 private:
  struct Expected {
    at::Tensor weights;  // [units], float64
    std::vector<at::Tensor> gradients;
    double norm = 0;
    bool alone = false;  // one unit has weight 1
  };

  Expected Backward(const at::Tensor& losses, const at::Tensor& weights, double loss_weight,
                    bool alone) const;
  void CompareOne(const PerExamplePass& pass, const Expected& expected) const;

  const std::vector<NamedParameter>& parameters_;
  const double tolerance_;
  std::vector<Expected> expected_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_GRADIENT_CHECK_H_
