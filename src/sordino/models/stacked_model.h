// Many models of one architecture at once: one pass for all of them.
//
// Small models on small batches are bound by how many operations are started and by convolutions
// whose gradients libtorch computes slowly on a CPU. Parameters of k models are stacked, [k, ...],
// each model has a batch of its own, and a layer is one product for all of them (bmm). What a model
// computes is what it would compute alone, to the rounding of float32.
#ifndef SORDINO_MODELS_STACKED_MODEL_H_
#define SORDINO_MODELS_STACKED_MODEL_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>
#include <vector>

#include "sordino/models/model.h"

namespace sordino {

// Parameters in the order of Model::Parameters(), [k, ...] each, and inputs [k, n, ...] to logits
// [k, n, classes]; differentiable in the parameters.
using StackedForward =
    std::function<at::Tensor(const std::vector<at::Tensor>& parameters, const at::Tensor& inputs)>;

// Empty for a model that has no such pass: logistic, mlp and cnn-mnist have one.
StackedForward FindStackedForward(std::string_view name, const ModelOptions& options);

}  // namespace sordino

#endif  // SORDINO_MODELS_STACKED_MODEL_H_
