// Directional derivatives of all losses of a batch at once, by forward-mode differentiation.
//
// With a tangent v_p for each parameter p, one forward pass carries along, for each example,
//
//     d/dh loss_i(theta + h v) at h = 0   =   sum_p <gradient_i of p, v_p>:
//
// one number for each example, without a backward pass and without any per-example gradient.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_DIRECTIONAL_DERIVATIVE_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_DIRECTIONAL_DERIVATIVE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "sordino/gradients/loss_function.h"

namespace sordino {

// Evaluates one loss function on one batch several times with the same randomness in the model
// (dropout masks): derivatives of two evaluations, and the gradient of a third, are then those of
// one function. What is repeated is libtorch's default generator of the CPU and of the
// parameters' device; a model that draws elsewhere is not repeated.
//
// Some fast kernels (recurrent layers of oneDNN and cuDNN, fused attention) have no forward
// derivative. Where one is met, the evaluation is repeated with these kernels switched off, and
// they stay off as long as this object lives: a process-wide setting of libtorch, so nothing else
// should run a model meanwhile.
class RepeatedLoss {
 public:
  RepeatedLoss(LossFunction loss, Batch batch, const std::vector<NamedParameter>& parameters);
  ~RepeatedLoss();
  RepeatedLoss(const RepeatedLoss&) = delete;
  RepeatedLoss& operator=(const RepeatedLoss&) = delete;

  // [examples], float64. An undefined tangent stands for zero; each other has the shape, type and
  // device of its parameter. No tangent is left on a parameter, also when the loss throws. An
  // operation without a forward derivative is an Error that names it.
  at::Tensor Derivatives(const std::vector<at::Tensor>& tangents);

  // The losses of the batch, or of another one of the same shapes, with their graph. The default
  // generators continue from here.
  at::Tensor Losses() { return Losses(batch_); }
  at::Tensor Losses(const Batch& batch);

  // Whether the last evaluation took numbers from the default generators.
  bool DrewRandomNumbers() const;

  // The losses of another batch of the same shapes with the same randomness, without a graph.
  at::Tensor LossesOf(const Batch& other);

 private:
  void Rewind();
  at::Tensor TryDerivatives(const std::vector<at::Tensor>& tangents);

  struct FastKernelsOff;
  LossFunction loss_;
  Batch batch_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> states_;
  std::unique_ptr<FastKernelsOff> fast_kernels_off_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_DIRECTIONAL_DERIVATIVE_H_
