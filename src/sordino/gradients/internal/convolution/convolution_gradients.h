// Per-example weight gradients of convolutions: norms, values and weighted sums.
//
// A convolution is a product of the weight with columns: for one image, dL/dW = dy cols^T with
// dy [out, positions] and cols [in * kernel, positions] (im2col of the input). For a transposed
// convolution the roles of input and output gradient are swapped. Groups split both into blocks.
// An example may own several images (frames of a video); its gradient is the sum over them.
//
// On the CPU (convolution_cpu.h) the threads share out the examples, and each multiplies blocks of
// columns that fit its cache; elsewhere (convolution_device.h) everything is a few operations of
// libtorch, without synchronisation and without TF32. Memory beyond the results: a few megabytes a
// thread and one float64 copy of the weight on the CPU, about kDeviceBytes elsewhere.
//
// Rounding: kRowsPerSum in convolution_products.h says how many positions of the kernel a float32
// accumulator sums before it is added to a float64 one. On other devices than the CPU one
// accumulator sums all positions of an example where these are more. Squared norms are summed in
// float64, over the gradient as rounded to its type or over exact products (convolution_gram.h).
//
// On the CPU a weighted sum of examples with few positions is float64 throughout (SumIsFloat64). A
// float32 product of one example would spend its time on its result, which is written, read and
// added; a float64 product can sum over many examples.
#ifndef SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_GRADIENTS_H_
#define SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/kernels/example_layout.h"

namespace sordino {

// One to three spatial dimensions.
struct Convolution {
  std::vector<std::int64_t> weight;  // sizes of the weight, as libtorch stores it
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  bool transposed = false;
  std::int64_t groups = 1;
};

// input [images, in, ...], output_gradient [images, out, ...]; images in the order of layout.
// Inputs may be float64, float32, bfloat16 or half; results are float64 for float64 and else
// float32. Any strides (channels-last too).

// Where that was faster (convolution_gradients_benchmark, aarch64).
inline bool SumIsFloat64(std::int64_t positions_per_example, std::int64_t weights) {
  return positions_per_example <= 16 && weights >= (1 << 15);
}

// Per-example gradients [examples, weight...], and into `squared` [examples] (float64, may be
// undefined) their squared norms are added. Contiguous.
at::Tensor ConvolutionGradients(const Convolution& convolution, const at::Tensor& input,
                                const at::Tensor& output_gradient, const ExampleLayout& layout,
                                const at::Tensor& squared);

// Adds squared norms into `squared` without keeping the gradients: one gradient at a time on the
// CPU, or float64 Gram matrices [positions, positions] where these cost less.
void AddConvolutionSquaredNorms(const Convolution& convolution, const at::Tensor& input,
                                const at::Tensor& output_gradient, const ExampleLayout& layout,
                                const at::Tensor& squared);

// sum_i factors[i] * gradient_i, in the shape of the weight. factors [examples], float64; an
// example with factor 0 contributes nothing even where its input or gradient is not finite. The
// result is float64 where it is to be `wide`.
at::Tensor WeightedConvolutionGradient(const Convolution& convolution, const at::Tensor& input,
                                       const at::Tensor& output_gradient,
                                       const ExampleLayout& layout, const at::Tensor& factors,
                                       bool wide = false);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_CONVOLUTION_CONVOLUTION_GRADIENTS_H_
