#include "sordino/models/benchmark_models.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <array>
#include <memory>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/models/internal/large_networks.h"

namespace sordino {
namespace {

namespace nn = torch::nn;
using at::Tensor;

constexpr std::uint64_t kWeightSeed = 20100906;
constexpr std::int64_t kFeatures = 104;
constexpr std::int64_t kVocabulary = 10004;
constexpr std::int64_t kSentence = 256;           // tokens of embed and lstm
constexpr std::int64_t kTransformerTokens = 128;  // of transformer and gpt2

// ---- The networks ---------------------------------------------------------------------------

nn::Sequential LogisticRegression() {
  return nn::Sequential(nn::Linear(kFeatures, 1), nn::Sigmoid());
}

nn::Sequential FeedForward() {
  return nn::Sequential(nn::Linear(kFeatures, 50), nn::ReLU(), nn::Linear(50, 2));
}

nn::Sequential MnistConvolutions() {
  const auto pool = [] { return nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(1)); };
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 8).stride(2).padding(3)), nn::ReLU(),
                        pool(), nn::Conv2d(nn::Conv2dOptions(16, 32, 4).stride(2)), nn::ReLU(),
                        pool(), nn::Flatten(), nn::Linear(512, 32), nn::ReLU(), nn::Linear(32, 10));
}

nn::Sequential CifarConvolutions() {
  const auto convolution = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  nn::Sequential net;
  std::int64_t in = 3;
  for (const std::int64_t out : {32, 64, 128}) {
    net->push_back(convolution(in, out));
    net->push_back(nn::ReLU());
    net->push_back(convolution(out, out));
    net->push_back(nn::ReLU());
    net->push_back(nn::AvgPool2d(nn::AvgPool2dOptions(2).stride(2)));
    in = out;
  }
  net->push_back(convolution(128, 256));
  net->push_back(nn::ReLU());
  net->push_back(convolution(256, 10));
  net->push_back(nn::Functional([](const Tensor& y) { return y.mean({2, 3}); }));
  return net;
}

struct EmbedImpl : nn::Module {
  EmbedImpl() {
    register_module("embedding", embedding);
    register_module("head", head);
  }
  Tensor forward(const Tensor& tokens) { return head(embedding(tokens).mean(1)); }

  nn::Embedding embedding{kVocabulary, 16};
  nn::Linear head{16, 2};
};
TORCH_MODULE(Embed);

struct LstmImpl : nn::Module {
  LstmImpl() {
    register_module("embedding", embedding);
    register_module("lstm", lstm);
    register_module("head", head);
  }
  Tensor forward(const Tensor& tokens) {
    const auto [outputs, state] = lstm(embedding(tokens));
    return head(outputs.mean(1));
  }

  nn::Embedding embedding{kVocabulary, 100};
  nn::LSTM lstm{nn::LSTMOptions(100, 100).batch_first(true)};
  nn::Linear head{100, 2};
};
TORCH_MODULE(Lstm);

// torch::nn::TransformerEncoderLayer (post-norm, ReLU) with the examples in the first dimension,
// which that class cannot have, and with libtorch's fused attention, which it does not call.
struct EncoderLayerImpl : nn::Module {
  static constexpr std::int64_t kWidth = 256;
  static constexpr std::int64_t kHeads = 4;
  static constexpr std::int64_t kFeedForward = 1024;

  EncoderLayerImpl() {
    register_module("in_proj", in_proj);
    register_module("out_proj", out_proj);
    register_module("linear1", linear1);
    register_module("linear2", linear2);
    register_module("norm1", norm1);
    register_module("norm2", norm2);
  }

  Tensor Attend(const Tensor& x) {
    const std::int64_t examples = x.size(0);
    const std::int64_t tokens = x.size(1);
    const std::vector<Tensor> qkv = in_proj(x).chunk(3, -1);
    const auto heads = [&](const Tensor& t) {
      return t.reshape({examples, tokens, kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const Tensor y = at::scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]));
    return out_proj(y.transpose(1, 2).reshape({examples, tokens, kWidth}));
  }
  Tensor forward(const Tensor& x) {
    const Tensor attended = norm1(x + Attend(x));
    return norm2(attended + linear2(linear1(attended).relu()));
  }

  nn::Linear in_proj{kWidth, 3 * kWidth};
  nn::Linear out_proj{kWidth, kWidth};
  nn::Linear linear1{kWidth, kFeedForward};
  nn::Linear linear2{kFeedForward, kWidth};
  nn::LayerNorm norm1{nn::LayerNormOptions({kWidth})};
  nn::LayerNorm norm2{nn::LayerNormOptions({kWidth})};
};
TORCH_MODULE(EncoderLayer);

struct TransformerImpl : nn::Module {
  static constexpr int kLayers = 6;
  static constexpr std::int64_t kWidth = EncoderLayerImpl::kWidth;

  TransformerImpl() {
    register_module("embedding", embedding);
    position = register_parameter("position", at::randn({1, kTransformerTokens, kWidth}) * 0.02);
    for (int i = 0; i < kLayers; ++i) layers->push_back(EncoderLayer());
    register_module("layers", layers);
    register_module("head", head);
  }
  Tensor forward(const Tensor& tokens) {
    Tensor x = embedding(tokens) + position;
    for (int i = 0; i < kLayers; ++i) x = layers->at<EncoderLayerImpl>(i).forward(x);
    return head(x.mean(1));
  }

  nn::Embedding embedding{kVocabulary, kWidth};
  Tensor position;
  nn::ModuleList layers;
  nn::Linear head{kWidth, 2};
};
TORCH_MODULE(Transformer);

// ---- What a step is made of -----------------------------------------------------------------

// What one example looks like.
struct InputShape {
  std::vector<std::int64_t> sizes;
  bool tokens = false;
  std::int64_t classes = 2;
  bool label_each_token = false;
  std::int64_t batch = 256;
};

Tensor CrossEntropies(const Tensor& logits, const Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::None);
}

Tensor BinaryCrossEntropies(const Tensor& probabilities, const Tensor& labels) {
  return at::binary_cross_entropy(probabilities.squeeze(1), labels, {}, at::Reduction::None);
}

// The mean over the tokens of an example: logits [n, length, classes], labels [n, length].
Tensor TokenCrossEntropies(const Tensor& logits, const Tensor& labels) {
  return CrossEntropies(logits.flatten(0, 1), labels.flatten()).view(labels.sizes()).mean(1);
}

std::vector<Tensor> MakeBatch(const InputShape& shape, at::Device device, at::ScalarType labels,
                              std::int64_t examples, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<std::int64_t> sizes = shape.sizes;
  sizes.insert(sizes.begin(), examples);
  const Tensor inputs = shape.tokens ? at::randint(0, kVocabulary, sizes, generator, at::kLong)
                                     : at::randn(sizes, generator);
  if (!shape.label_each_token) sizes.resize(1);
  const Tensor targets = at::randint(0, shape.classes, sizes, generator, labels);
  return {inputs.to(device), targets.to(device)};
}

template <typename Net>
BenchmarkModel Assemble(std::string_view name, at::Device device, Net net, InputShape shape,
                        Tensor (*losses)(const Tensor&, const Tensor&) = CrossEntropies) {
  net->to(device);
  BenchmarkModel model;
  model.name = name;
  model.batch = shape.batch;
  for (const auto& parameter : net->named_parameters()) {
    model.parameters.emplace_back(parameter.key(), parameter.value());
  }
  model.losses = [net, losses](const std::vector<Tensor>& batch) mutable {
    return losses(net->forward(batch.at(0)), batch.at(1));
  };
  const at::ScalarType labels = losses == BinaryCrossEntropies ? at::kFloat : at::kLong;
  model.make_batch = [shape = std::move(shape), device, labels](std::int64_t examples,
                                                                std::uint64_t seed) {
    return MakeBatch(shape, device, labels, examples, seed);
  };
  return model;
}

struct NamedMaker {
  std::string_view name;
  BenchmarkModel (*make)(std::string_view name, at::Device device);
};

constexpr std::array<NamedMaker, 10> kMakers = {{
    {"logreg",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, LogisticRegression(), {.sizes = {kFeatures}},
                       BinaryCrossEntropies);
     }},
    {"ffnn",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, FeedForward(), {.sizes = {kFeatures}});
     }},
    {"mnist",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, MnistConvolutions(), {.sizes = {1, 28, 28}, .classes = 10});
     }},
    {"cifar10",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, CifarConvolutions(), {.sizes = {3, 32, 32}, .classes = 10});
     }},
    {"embed",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, Embed(), {.sizes = {kSentence}, .tokens = true});
     }},
    {"lstm",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, Lstm(), {.sizes = {kSentence}, .tokens = true});
     }},
    {"transformer",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, Transformer(),
                       {.sizes = {kTransformerTokens}, .tokens = true});
     }},
    {"resnet18",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, internal::MakeResNet18(),
                       {.sizes = {3, 64, 64}, .classes = internal::kLargeClasses, .batch = 32});
     }},
    {"vit",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, internal::MakeVitTiny(),
                       {.sizes = {3, 224, 224}, .classes = internal::kLargeClasses, .batch = 16});
     }},
    {"gpt2",
     [](std::string_view name, at::Device device) {
       return Assemble(name, device, internal::MakeGpt2Tiny(kVocabulary, kTransformerTokens),
                       {.sizes = {kTransformerTokens},
                        .tokens = true,
                        .classes = kVocabulary,
                        .label_each_token = true,
                        .batch = 32},
                       TokenCrossEntropies);
     }},
}};

constexpr auto kBenchmarkNames = [] {
  std::array<std::string_view, kMakers.size()> names;
  for (std::size_t i = 0; i < kMakers.size(); ++i) names[i] = kMakers[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> BenchmarkModelNames() { return kBenchmarkNames; }

BenchmarkModel MakeBenchmarkModel(std::string_view name, at::Device device) {
  const NamedMaker& maker = kMakers[IndexOfName("the model", name, kBenchmarkNames)];
  at::manual_seed(kWeightSeed);
  return maker.make(name, device);
}

}  // namespace sordino
