// One backward pass that leaves per-example norms and clipped sums instead of gradients.
//
// The engine is asked for nothing but the gradients that reach the uses of parameters, so the
// ordinary weight gradients are never computed. Each use turns into a term as its gradient arrives;
// when the last use of a parameter has arrived, its norms are taken and, where the gradients of the
// examples are smaller than what they are made of, they replace it, so that activations are freed
// during the pass.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_PER_EXAMPLE_PASS_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_PER_EXAMPLE_PASS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/internal/graph/parameter_plan.h"
#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/internal/terms/use_rule.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/kernels/example_layout.h"
#include "sordino/kernels/row_operations.h"

namespace sordino {

struct PassOptions {
  NormMethod norms = NormMethod::kAutomatic;
  // The gradient of each loss: 1 / examples of a unit.
  double loss_weight = 1;
  std::int64_t units = 0;
  bool keep_graph = false;
  const CoordinateTransform* transform = nullptr;
  // Keep the terms as they are, for TermsOf, also where gradients would be smaller.
  bool collect = false;
};

// What one part of a parameter contributes to the gradients of the units, and the use that it
// begins with: parts of other passes over the same graph with the same use are of the same entries.
struct ParameterTerm {
  std::size_t use = 0;
  Term term;
};

// The factors that units are clipped by.
struct UnitFactors {
  at::Tensor float64;       // [groups, units]
  at::Tensor float32 = {};  // the same, rounded, or undefined
  bool all_finite = false;  // no unit needs the care that a factor of 0 wins over NaN
};

class PerExamplePass {
 public:
  // `groups` is the clipping group of each parameter. The rules belong to this pass. A layout with
  // inner 0 takes the rows to lie unit by unit.
  PerExamplePass(const at::Tensor& losses, const Tape& tape,
                 std::vector<std::unique_ptr<UseRule>> rules,
                 const std::vector<ExampleLayout>& layouts, const GradientPlan& plan,
                 const std::vector<NamedParameter>& parameters,
                 const std::vector<std::int64_t>& groups, const PassOptions& options);
  ~PerExamplePass();
  PerExamplePass(const PerExamplePass&) = delete;
  PerExamplePass& operator=(const PerExamplePass&) = delete;

  // A gradient had other rows than its layout says: the layouts are of another graph, and nothing
  // here is to be used.
  bool mismatch() const { return mismatch_; }

  // [groups, units], float64.
  const at::Tensor& squared_norms() const { return squared_; }
  // [groups, units], float64: squares of what AbsoluteMass says of the terms whose gradients are
  // not kept; undefined when all are.
  const at::Tensor& squared_mass() const { return squared_mass_; }
  // Of the same terms, the most of: features p + q of a use with float32 Gram matrices, roundings
  // of such a norm, rows of an example, and rows of one float32 product; 0 when there is none. They
  // follow from the shapes, not from the values.
  std::int64_t recomputed_features() const { return recomputed_features_; }
  std::int64_t recomputed_roundings() const { return recomputed_roundings_; }
  std::int64_t recomputed_rows() const { return recomputed_rows_; }
  std::int64_t recomputed_product_rows() const { return recomputed_product_rows_; }
  // A float64 parameter may be used in float32.
  bool AllFloat64() const { return all_float64_; }
  // The most features of a use with one row an example.
  std::int64_t one_row_features() const { return one_row_features_; }

  // Whether kernels that take many matrices at once are used (device/row_operations.h).
  bool TakesRows() const { return takes_rows_; }

  // With `collect`: the terms of a parameter, which have no entry in common.
  std::vector<ParameterTerm> TermsOf(std::size_t parameter) const;

  // sum_u factors[group, u] g_u for each parameter, float64 where the accuracy is wide. With a
  // transform, of (g_u - centre) / scale. An undefined tensor stands for a zero gradient.
  std::vector<at::Tensor> WeightedSums(const UnitFactors& factors,
                                       const SumAccuracy& accuracy) const;

 private:
  class Listener;
  struct RootTerm {  // a term of a parameter, and the use whose path leads to the parameter
    Term term;
    std::size_t use = 0;
    bool transposed = false;
  };
  // Gradients of units [begin, end) of a parameter of a family, [end - begin, entries].
  struct DenseGradients {
    std::size_t parameter = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    at::Tensor gradients;
  };
  struct RootState {
    std::size_t missing = 0;  // uses whose gradients have not arrived
    std::vector<RootTerm> parts;
  };

  void Run(const at::Tensor& losses, const at::Tensor& loss_gradients);
  void FinishAll();
  void Arrived(std::size_t node, const std::vector<at::Tensor>& gradients);
  void Finish(std::size_t root);
  void FinishCluster(std::size_t parameter, const UseCluster& cluster);
  NormForm Choose(const Term& term) const;
  void Weigh(const Term& term, std::int64_t group);
  bool FinishWithOthers(std::size_t parameter, RootTerm& part, NormForm form);
  Term Direct(at::Tensor gradients, std::vector<std::int64_t> sizes) const;
  void AddPiece(std::size_t parameter, std::initializer_list<at::Tensor> matrices);
  void AddRowNorms();
  std::vector<at::Tensor> AddRowSums(const UnitFactors& factors, const SumAccuracy& accuracy,
                                     std::vector<at::Tensor>& sums) const;
  std::vector<at::Tensor> OneRowProducts(const UnitFactors& factors,
                                         const SumAccuracy& accuracy) const;
  at::Tensor Gradients(std::size_t root, std::int64_t begin, std::int64_t end) const;
  std::vector<at::Tensor> FamilyGradients(const Family& family, std::int64_t begin,
                                          std::int64_t end) const;
  template <typename Visit>
  void ForEachDense(const Family& family, const Visit& visit) const;
  // For the end of the pass: a transform is of all parameters, and backward functions of shared
  // nodes compute nothing inside of a pass that did not ask for them.
  bool Waits(const Family& family) const {
    return options_.transform != nullptr || !family.derived.empty();
  }
  bool KeepsDense() const;
  void AddDenseNorms(const Family& family);
  void AddDenseSums(const Family& family, const std::vector<ExampleFactors>& factors,
                    bool all_finite, const SumAccuracy& accuracy,
                    std::vector<at::Tensor>& sums) const;

  const Tape& tape_;
  std::vector<std::unique_ptr<UseRule>> rules_;
  const std::vector<ExampleLayout>& layouts_;
  const GradientPlan& plan_;
  const std::vector<NamedParameter>& parameters_;
  const std::vector<std::int64_t>& groups_;
  const PassOptions options_;
  std::vector<std::vector<std::size_t>> uses_of_node_;
  std::vector<Term> terms_;  // of each use, until its root is finished
  std::vector<RootState> states_;
  std::vector<std::size_t> missing_roots_;  // of each family
  std::vector<DenseGradients> dense_;       // where they are kept
  at::Tensor squared_;
  at::Tensor squared_mass_;
  std::vector<at::Tensor> squared_of_;  // rows of squared_
  std::int64_t recomputed_features_ = 0;
  std::int64_t recomputed_roundings_ = 0;
  std::int64_t recomputed_rows_ = 0;
  std::int64_t recomputed_product_rows_ = 0;
  std::int64_t one_row_features_ = 0;
  bool all_float64_ = true;
  bool mismatch_ = false;
  bool is_busy_ = false;
  // Where kernels take many matrices at once (device/row_operations.h): those whose row norms are
  // wanted, what they add to the norms of groups, and the uses of parameters that they are all of.
  bool takes_rows_ = false;
  std::vector<at::Tensor> rows_;
  std::vector<kernels::NormPiece> pieces_;
  std::vector<std::pair<std::size_t, at::Tensor>> row_sums_;        // parameter, gradients
  std::vector<std::pair<std::size_t, std::size_t>> one_row_parts_;  // parameter, index of part
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_PER_EXAMPLE_PASS_H_
