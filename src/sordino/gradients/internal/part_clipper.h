// The clipped sum of examples that are in memory at once.
//
// The first stage of a Clipper, which cuts batches into such parts and makes a BoundedSum of their
// totals. Remembers what was found out about the graphs of the model.
#ifndef SORDINO_GRADIENTS_INTERNAL_PART_CLIPPER_H_
#define SORDINO_GRADIENTS_INTERNAL_PART_CLIPPER_H_

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/internal/graph/graph_reading.h"
#include "sordino/gradients/internal/graph/per_example_pass.h"
#include "sordino/gradients/internal/rounding/sum_plan.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// What a batch adds up to, before it is a BoundedSum.
struct Totals {
  std::vector<at::Tensor> gradients;  // undefined for zero
  at::Tensor clipped;
  at::Tensor counts;
  std::vector<at::Tensor> norms;

  void Add(Totals other);
};

// The totals of many parts: kPartsPerSum of them are added up, and then their sums (rounding.h).
class TotalsOfParts {
 public:
  explicit TotalsOfParts(std::size_t parameters) : parameters_(parameters) { Begin(); }
  void Add(Totals part);
  Totals Take();

 private:
  void Begin();

  std::size_t parameters_;
  Totals finished_;
  Totals current_;
  std::int64_t parts_ = 0;  // in current_
};

// One number for each example, and the gradients of these numbers in the form of terms.
struct CollectedTerms {
  at::Tensor losses;                              // [examples]
  std::vector<std::vector<ParameterTerm>> terms;  // of each parameter; empty for a zero gradient
};

class PartClipper {
 public:
  PartClipper(std::vector<NamedParameter> parameters, GradientOptions options, SumOptions sum);

  // Throws what is wrong with the model by GradientOptions::made_up, where there are such examples
  // and it was not asked before. Sum asks; for sums that may be empty.
  void Check(const LossFunction& loss, const ClippingPolicy& policy);

  // Of at most kUnitsOfPart units. With `padded_examples`, the model sees as many: copies of the
  // first example are added, and left out of everything.
  Totals Sum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
             std::int64_t padded_examples = 0);

  // The same for a batch of which only the units count that a mask on its device names, [units].
  // Where the graph of the model was seen before at this size, nothing is read from the device, so
  // that the sum can be recorded; there is no fallback.
  Totals MaskedSum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                   const at::Tensor& mask);

  // For at least two examples. Throws NotPerExample where Sum would fall back to a loop.
  CollectedTerms Collect(const LossFunction& loss, const Batch& batch);

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  const GradientOptions& options() const { return options_; }
  const SumOptions& sum() const { return sum_; }
  bool IsPrivate() const { return !options_.made_up.empty(); }
  // Whether sums are float64 until noise is added, whatever the type of the parameters.
  bool is_wide() const { return IsWide(Units(sum_.largest_batch)); }

  // Examples of GradientOptions::made_up, from the first again after the last.
  Batch MadeUp(std::int64_t first, std::int64_t examples) const;

  // The norms of an empty batch, [groups, 0].
  at::Tensor NoNorms(const ClippingPolicy& policy) const;

 private:
  // The units of a part that are not padding: the first ones, or those of a mask.
  struct RealUnits {
    std::int64_t count = 0;
    at::Tensor mask = {};
  };
  struct Clipped {
    at::Tensor norms;  // [groups, real units]; with a mask, of all units
    UnitFactors factors;
    at::Tensor above;  // [groups]: how many norms are above the bound or not a number
  };

  using UsePass = c10::function_ref<void(const PerExamplePass&, const Tape&)>;

  std::int64_t Units(std::int64_t examples) const {
    return (examples + sum_.micro_batch - 1) / sum_.micro_batch;
  }
  at::Tensor LossesOf(const LossFunction& loss, const Batch& batch) const;
  void LookAt(const LossFunction& loss, const Batch& examples, const ClippingPolicy& policy);
  void LookAtMadeUp(const LossFunction& loss, const ClippingPolicy& policy);
  bool FailsForRecords(const std::exception& error, const LossFunction& loss,
                       const ClippingPolicy& policy);
  Totals NothingOf(std::int64_t examples, const ClippingPolicy& policy) const;
  Totals LoopAll(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy) const;
  void LookAtFew(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);
  void WithPass(const at::Tensor& losses, const ClippingPolicy& policy, const LossFunction& loss,
                const Batch& batch, const UsePass& use);
  Totals FromLosses(const at::Tensor& losses, const RealUnits& real, const ClippingPolicy& policy,
                    const LossFunction& loss, const Batch& batch);
  at::Tensor AboveBounds(const at::Tensor& norms, const std::vector<double>& bounds) const;
  const at::Tensor& BoundsOnDeviceOf(const at::Tensor& norms,
                                     const std::vector<double>& bounds) const;
  Totals UnitByUnit(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                    std::int64_t padded_examples);
  Totals Loop(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);
  Clipped Clip(const PerExamplePass& pass, const ClippingPolicy& policy, const SumPlan& plan,
               const RealUnits& real) const;
  SumPlan PlanOf(const PerExamplePass& pass, const Tape& tape, const ClippingPolicy& policy);
  GraphReading Read(const at::Tensor& losses, std::int64_t units, const LossFunction& loss,
                    const Batch& batch, const ClippingPolicy& policy, bool* is_new);
  std::vector<bool> SharedNodesOf(const Graph& graph, std::int64_t units, const LossFunction& loss,
                                  const Batch& batch) const;

  std::vector<NamedParameter> parameters_;
  GradientOptions options_;
  SumOptions sum_;
  GraphMemory memory_;
  bool falls_back_ = false;
  bool has_looked_ = false;
  bool is_checked_ = false;
  bool is_looking_ = false;  // at made-up examples
  // The plan of the last sum, and what it was made for.
  std::optional<SumPlan> plan_;
  SumShape planned_shape_;
  mutable std::optional<GroupColumn> bounds_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_PART_CLIPPER_H_
