// Clipped sums of per-example gradients of any libtorch model, read off the autograd graph of a
// forward pass in which no example can see another (isolation.h).
//
//   Clipper clipper(NamedParameters(*model), {});
//   BoundedSum sum = clipper.ClippedSum(
//       [&](const Batch& b) { return cross_entropy(model->forward(b[0]), b[1], none); },
//       {images, labels}, FlatClipping(ClipNorm(1.0)));
#ifndef SORDINO_GRADIENTS_CLIPPER_H_
#define SORDINO_GRADIENTS_CLIPPER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/device/recorded_graph.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

enum class NormMethod : std::uint8_t {
  kAutomatic,    // the cheapest by the cost model, for each use of a parameter
  kMaterialise,  // per-example gradients in memory
  kGhost,        // Gram matrices of inputs and output gradients, no per-example gradient
  kLoop,         // one forward and backward pass for each example: the reference
};

// Threads of libtorch that equal places allow on a CPU.
inline constexpr int kThreadsOfEqualPlaces = 2;

// What changes speed and memory, and what is checked; nothing here changes the sum beyond
// rounding, nor its sensitivity.
struct GradientOptions {
  NormMethod norms = NormMethod::kAutomatic;
  // Examples in each forward pass of a batch that is larger, where the last one is padded; 0 cuts
  // the batch when it does not fit into memory.
  std::int64_t physical_batch = 0;
  // Batches on a GPU, of a size and with a policy that come more than once, are recorded the second
  // time. The code of a loss function is not run in a replay: it has to do the same for every
  // batch.
  GraphUse graph = GraphUse::kOff;
  // What the parts of a batch are padded to where they are recorded, so that one recording serves
  // batches of many sizes and their size does not show in the time; 0: batches as they are.
  std::int64_t recorded_batch = 0;
  // A record's gradient has the same bits whatever its place in a batch, and whoever is beside it:
  // for models that are not trusted, which may make much of a last bit. All parts are padded to one
  // size, from physical_batch, or recorded_batch, on a CPU a multiple of 128, whose process has at
  // most kThreadsOfEqualPlaces threads. Not for estimated norms.
  bool equal_places = false;
  // Find out whose row is whose when the graph is new. Off means rows are taken to lie example by
  // example along the first dimension: only for models that were checked before.
  bool probe = true;
  // Compare the losses with those of an ordinary forward pass when the graph is new, and refuse a
  // model that means something else for examples in a batch (operation_comparison.h).
  bool compare = true;
  // Examples of the first batch (and of each batch with a new graph) whose gradients are compared
  // with those of ordinary autograd; 0 for none.
  std::int64_t checked_examples = 2;
  // What cannot be done per example runs example by example instead of being an error.
  bool fallback = false;
  // Made-up examples of the form of the batches, which make the sums those of private records. The
  // model is looked at with these, before its first sum and whatever that is of, so that a refusal
  // is a function of the model and of them. An error on a batch that these do not show comes from
  // the values of a record: each record is then computed alone, and one that fails adds nothing,
  // which nobody is told. Empty: the model is looked at with the batches, and all errors are shown.
  Batch made_up = {};
};

// What the sum is of; changes its sensitivity.
struct SumOptions {
  Adjacency adjacency = Adjacency::kAddRemove;
  // Gradients of this many consecutive examples are averaged before they are clipped together.
  std::int64_t micro_batch = 1;
  // The sensitivity is the bound on the exact sums times 1 + rounding: the part that floating-point
  // arithmetic may add (rounding.h). Sums are cut into blocks so short that this holds, or taken in
  // float64.
  double rounding = 0.01;
  // The largest batch that is expected, a public constant: the size of a Poisson batch is private.
  // A larger one has the same sensitivity, and is summed unit by unit (rounding/long_steps.h).
  std::int64_t largest_batch = 4096;
};

// Those that require a gradient, a tied weight under the first of its names. Throws Error for one
// that is computed from other tensors, and when none is left.
std::vector<NamedParameter> TrainedParameters(std::vector<NamedParameter> parameters);

class Clipper {
 public:
  explicit Clipper(std::vector<NamedParameter> parameters, GradientOptions options = {},
                   SumOptions sum = {});
  ~Clipper();
  Clipper(Clipper&&) noexcept;
  Clipper& operator=(Clipper&&) noexcept;

  // The clipped sum over the batch; zeros (with the same sensitivity) when it is empty.
  BoundedSum ClippedSum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);

  // How the last sums were computed: "recorded", or why they were not.
  std::string GraphStatus() const;

  // Norms of the examples' gradients by clipping group, [groups, examples], float64: for tests
  // and for audits of public data. They are private values.
  at::Tensor Norms(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy);

  // TrainedParameters of those that were given.
  const std::vector<NamedParameter>& parameters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_CLIPPER_H_
