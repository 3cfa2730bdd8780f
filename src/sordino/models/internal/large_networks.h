// The larger networks of benchmark_models.h, in the sizes in which they were published.
#ifndef SORDINO_MODELS_INTERNAL_LARGE_NETWORKS_H_
#define SORDINO_MODELS_INTERNAL_LARGE_NETWORKS_H_

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

namespace sordino::internal {

class LargeNetwork : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& inputs) = 0;
};

inline constexpr std::int64_t kLargeClasses = 1000;

// [n, 3, height, width] to logits [n, kLargeClasses]. He et al. (arXiv 1512.03385), with group norm
// of 32 groups (arXiv 1803.08494) in the place of batch norm.
std::shared_ptr<LargeNetwork> MakeResNet18();

// [n, 3, 224, 224] to logits [n, kLargeClasses]: patches of 16x16, width 192, 12 layers, 3 heads.
// Touvron et al. (arXiv 2012.12877).
std::shared_ptr<LargeNetwork> MakeVitTiny();

// Tokens [n, length] to logits [n, length, vocabulary]: GPT-2 with 4 layers of width 256 and 4
// heads. One matrix is the table of the tokens and the last layer.
std::shared_ptr<LargeNetwork> MakeGpt2Tiny(std::int64_t vocabulary, std::int64_t length);

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_LARGE_NETWORKS_H_
