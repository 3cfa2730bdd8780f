// The forward pass in which no example can see another one.
//
// The clipped sum has its sensitivity only if the loss of an example depends on that example alone.
// Checks on a few batches cannot show this: a model may mix examples for rare values, above a batch
// size, after some calls, or through a buffer. Here it holds by construction. The model is called
// once, under libtorch's vmap: every tensor of the batch is wrapped so that the dimension of the
// units is not visible, and the model sees the data of one unit, [1, ...] (or [micro_batch, ...]).
// Operations on wrapped tensors are batched by libtorch's rules, which are rules for independent
// computations. So, for any model, value, step and batch size:
//
//   * A value computed from an example is a wrapped tensor. Its entry for unit i depends on unit i,
//     on unwrapped tensors, and on random numbers drawn for unit i alone.
//   * An unwrapped tensor (a parameter, a buffer, a constant) never depends on an example. To write
//     a wrapped value into it is an error of libtorch, and so are item(), bool() and the like,
//     which would take a value out of the wrapper.
//   * A wrapped tensor that outlives its pass (an attribute that a model assigns, a captured
//     variable) cannot be used in a later one. Each pass has a level of its own, never used again
//     in the process, and an operation on a wrapped tensor of another level fails.
//
// What this does not cover: code that unwraps tensors through libtorch's internal interfaces, and
// rounding, which may differ with the batch size (docs/sharp-edges.md).
//
// The layer is entered without libtorch's interpreter stack (its front and back dispatch keys): the
// batching rules are found by the dispatch key of the wrapped tensors, and what they call runs on
// plain tensors with autograd. This costs one dispatch instead of four for an operation, and leaves
// the choice of the level to us.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATION_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATION_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// Gradients per example cannot be computed: the model needs other examples, keeps a state, or uses
// an operation that has no rule. The fallback to the loop catches it.
class NotPerExample : public Error {
 public:
  using Error::Error;
};

// The same, found by comparing values of examples. The fallback does not catch it: it would follow
// from a record, and change how all others are clipped.
class DifferentValues : public NotPerExample {
 public:
  using NotPerExample::NotPerExample;
};

// A vmap layer on this thread, from construction to destruction. Layers do not nest.
class IsolationLayer {
 public:
  explicit IsolationLayer(std::int64_t units);
  ~IsolationLayer();
  IsolationLayer(const IsolationLayer&) = delete;
  IsolationLayer& operator=(const IsolationLayer&) = delete;

  // Hides dimension 0, which has `units` entries.
  at::Tensor Wrap(const at::Tensor& tensor) const;
  // The plain tensor with the units in dimension 0; a tensor that is the same for all units is
  // expanded.
  at::Tensor Unwrap(const at::Tensor& tensor) const;
  std::int64_t level() const { return level_; }

 private:
  struct Guards;
  std::int64_t units_;
  std::int64_t level_;
  std::unique_ptr<Guards> guards_;
};

// The losses of all examples, [examples], each computed as if its unit were alone; `units` divides
// the number of examples. Errors of libtorch become NotPerExample or Error, without the numbers in
// them, which may be private; a failed allocation stays as it is.
at::Tensor IsolatedLosses(const LossFunction& loss, const Batch& batch, std::int64_t units);

// The same, for a look at a model that is new: a tensor that it kept from an earlier call is found
// at its first use, instead of making an operation of libtorch fail in a way of its own. Slow.
at::Tensor WatchedLosses(const LossFunction& loss, const Batch& batch, std::int64_t units);

// Throws what an error of libtorch behind the forward pass is for a user: NotPerExample without the
// numbers in it. Failed allocations and failures of a device stay as they are.
[[noreturn]] void RethrowFromBackward(const c10::Error& error);

// The losses of the batch as the model computes them on the whole of it. State is kept out as
// above: the batch as a whole is one unit.
at::Tensor JointLosses(const LossFunction& loss, const Batch& batch);

// libtorch's default generators of the CPU and of a device, as they were at construction.
class GeneratorStates {
 public:
  explicit GeneratorStates(at::Device device);
  void Rewind() const;
  void Seed(std::uint64_t seed) const;
  // Whether a number was drawn since.
  bool HaveMoved() const;

 private:
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> states_;
};

// Whether a tensor, or one inside of a value, belongs to a unit of some pass.
bool IsWrapped(const at::Tensor& tensor);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATION_H_
