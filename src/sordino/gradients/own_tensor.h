// A tensor that a loss makes of sizes alone, and writes values of an example into.
//
// A loss is called once for all examples (docs/gradients.md), so at::zeros({...}) is one tensor for
// all of them, and no value of an example can be written to it. OwnTensor gives a copy for each
// example; any other tensor, and one outside of a loss, it gives back as it is.
//
//   at::Tensor y = sordino::OwnTensor(at::zeros({x.size(0), 8}));
//   y.narrow(1, 0, 4).copy_(x);
#ifndef SORDINO_GRADIENTS_OWN_TENSOR_H_
#define SORDINO_GRADIENTS_OWN_TENSOR_H_

#include <ATen/core/Tensor.h>

namespace sordino {

at::Tensor OwnTensor(const at::Tensor& tensor);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_OWN_TENSOR_H_
