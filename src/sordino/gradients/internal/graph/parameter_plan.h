// How the uses of one parameter are taken together.
//
// A parameter that is used more than once (a recurrent weight, a tied embedding) has one gradient
// an example, the sum over its uses, and the norm of a sum is not the sum of norms: cross terms
// count. Uses that enter through the same view of the parameter form a cluster, and their rows are
// stacked; on a CPU also those of matrix products and lookups (terms/tied_term.h). Clusters that
// touch different parts of the parameter (the chunks of a packed projection) have no cross terms.
// Whatever overlaps in another way is written out for a few examples at a time.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_PARAMETER_PLAN_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_PARAMETER_PLAN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/terms/term.h"

namespace sordino {

struct UseCluster {
  std::vector<std::size_t> uses;  // indices into Tape::uses
  std::vector<bool> transposed;   // this use sees the matrix of the first use transposed
};

struct RootPlan {
  std::vector<UseCluster> clusters;
  // The family that the root is written out with.
  std::optional<std::size_t> family;
};

// Parameters whose gradients are written out, example by example: clusters overlap, one mixes kinds
// of terms, a use sees an entry more than once, or tensors are derived from them. Parameters that a
// derived tensor is computed from are in one family with it.
struct Family {
  std::vector<std::size_t> parameters;
  std::vector<std::size_t> derived;  // indices into Tape::derived
};

struct GradientPlan {
  std::vector<RootPlan> roots;  // without uses a root has no clusters
  std::vector<Family> families;
  // PathPositions of each use of a family that has a path, on a GPU: a copy that is made in every
  // step could not be recorded. Undefined for the others.
  std::vector<at::Tensor> positions;
};

// kinds: of the term of each use. With `all_families` every parameter is in one.
GradientPlan PlanGradients(const Tape& tape, const std::vector<TermKind>& kinds,
                           const std::vector<NamedParameter>& parameters, bool all_families);

// For each entry of the tensor that enters a use, the entry of the root that it is; int64, in the
// sizes of that tensor, on the CPU. `sizes`: of the root.
at::Tensor PathPositions(const ParameterUse& use, at::IntArrayRef sizes);

// The gradient of the parameter from that of the tensor that enters the use.
at::Tensor PullBack(const ParameterUse& use, at::Tensor gradient);

// The path is one transposition of a matrix.
bool IsTransposition(const ParameterUse& use);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_PARAMETER_PLAN_H_
