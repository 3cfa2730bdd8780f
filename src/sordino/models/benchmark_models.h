// The models that per-example gradients are compared on: the six of Subramani et al. (arXiv
// 2010.09063), a transformer encoder and three larger ones, written from plain torch::nn modules as
// anybody would.
//
//   logreg       Linear(104,1), sigmoid, binary cross-entropy                      105 parameters
//   ffnn         Linear(104,50) ReLU Linear(50,2)                                    5,352
//   mnist        two convolutions and two linear layers on 1x28x28                  26,010
//   cifar10      eight 3x3 convolutions on 3x32x32, mean over positions            605,226
//   embed        Embedding(10004,16), mean over 256 tokens, Linear(16,2)           160,098
//   lstm         Embedding(10004,100), LSTM(100,100) on 256 tokens, mean, Linear 1,081,402
//   transformer  6 post-norm layers of width 256 with 4 heads and a feed-forward  7,332,866
//                width of 1024 on 128 tokens (vocabulary 10,004), learned
//                positions, mean over tokens, Linear(256,2)
//   resnet18     ResNet-18 with group norm on 3x64x64, 1000 classes              11,689,512
//   vit          ViT-tiny: 196 patches of 16x16 of 3x224x224, 12 layers of        5,717,416
//                width 192 with 3 heads, class token, 1000 classes
//   gpt2         GPT-2: 4 layers of width 256 with 4 heads on 128 tokens          5,753,344
//                (vocabulary 10,004), a label for each token; one matrix is the
//                table of the tokens and the last layer
//
// There is no dropout, and nothing mixes examples. All losses are cross-entropies; that of logreg
// is binary.
#ifndef SORDINO_MODELS_BENCHMARK_MODELS_H_
#define SORDINO_MODELS_BENCHMARK_MODELS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sordino {

struct BenchmarkModel {
  std::string name;
  std::int64_t batch = 0;  // examples in a step, unless somebody wants another number
  // Leaves that require gradients, named as torch::nn names them.
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  // One loss for each example of {inputs, labels}, [examples].
  std::function<at::Tensor(const std::vector<at::Tensor>&)> losses;
  // {inputs, labels} of made-up examples: normal features or uniform tokens, uniform labels. The
  // same seed gives the same batch on every device.
  std::function<std::vector<at::Tensor>(std::int64_t examples, std::uint64_t seed)> make_batch;
};

// In the order above.
std::span<const std::string_view> BenchmarkModelNames();

// Float32, on the device. The weights are those of a fixed seed; libtorch draws them from its
// global generator, which is left re-seeded. Throws Error for a name that is not known.
BenchmarkModel MakeBenchmarkModel(std::string_view name, at::Device device);

}  // namespace sordino

#endif  // SORDINO_MODELS_BENCHMARK_MODELS_H_
