#include "sordino/models/internal/token_networks.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <cmath>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

namespace nn = torch::nn;
using at::Tensor;

// The mean over the tokens that are no padding, [n, length, width] to [n, width]; zeros for a
// sentence of padding alone.
Tensor MeanOfTokens(const Tensor& outputs, const Tensor& tokens) {
  const Tensor real = tokens.ne(0).unsqueeze(-1).to(outputs.scalar_type());
  return (outputs * real).sum(1) / real.sum(1).clamp_min(1);
}

class Lstm : public Network {
 public:
  Lstm(const ModelShape& shape, const ModelOptions& options) {
    CheckTokensFor("lstm", shape);
    const std::int64_t width = ChooseWidth(options, 100);
    embedding_ = register_module("embedding", nn::Embedding(shape.vocabulary, width));
    lstm_ = register_module("lstm", nn::LSTM(nn::LSTMOptions(width, width).batch_first(true)));
    classifier_ = register_module("classifier", nn::Linear(width, shape.classes));
  }
  Tensor Forward(const Tensor& tokens) override {
    const auto [outputs, state] = lstm_(embedding_(tokens));
    return classifier_(MeanOfTokens(outputs, tokens));
  }

 private:
  nn::Embedding embedding_{nullptr};
  nn::LSTM lstm_{nullptr};
  nn::Linear classifier_{nullptr};
};

constexpr std::int64_t kHeads = 4;

class EncoderLayer : public nn::Module {
 public:
  EncoderLayer(std::int64_t width, Activation activation)
      : width_(width),
        activation_(activation),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})))),
        in_proj_(register_module("in_proj", nn::Linear(width, 3 * width))),
        out_proj_(register_module("out_proj", nn::Linear(width, width))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})))),
        linear1_(register_module("linear1", nn::Linear(width, 4 * width))),
        linear2_(register_module("linear2", nn::Linear(4 * width, width))) {}

  // `seen`, [n, 1, 1, length]: the tokens that may be looked at.
  Tensor Forward(const Tensor& x, const Tensor& seen) {
    const Tensor attended = x + Attend(norm1_(x), seen);
    return attended + linear2_(activation_(linear1_(norm2_(attended))));
  }

 private:
  Tensor Attend(const Tensor& x, const Tensor& seen) {
    const std::int64_t examples = x.size(0);
    const std::int64_t length = x.size(1);
    const std::vector<Tensor> qkv = in_proj_(x).chunk(3, -1);
    const auto heads = [&](const Tensor& t) {
      return t.reshape({examples, length, kHeads, width_ / kHeads}).transpose(1, 2);
    };
    const Tensor y =
        at::scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), seen);
    return out_proj_(y.transpose(1, 2).reshape({examples, length, width_}));
  }

  std::int64_t width_;
  Activation activation_;
  nn::LayerNorm norm1_;
  nn::Linear in_proj_;
  nn::Linear out_proj_;
  nn::LayerNorm norm2_;
  nn::Linear linear1_;
  nn::Linear linear2_;
};

class Transformer : public Network {
 public:
  Transformer(const ModelShape& shape, const ModelOptions& options) {
    CheckTokensFor("transformer", shape);
    const std::int64_t width = ChooseWidth(options, 128);
    if (width % kHeads != 0) {
      throw Error(
          fmt::format("the width of 'transformer' is divided among {} heads and {} was "
                      "given; give a multiple of {}.",
                      kHeads, width, kHeads));
    }
    const Activation activation = ChooseActivation(options, "relu");
    embedding_ = register_module("embedding", nn::Embedding(shape.vocabulary, width));
    {
      const at::NoGradGuard no_grad;
      embedding_->weight.mul_(1 / std::sqrt(static_cast<double>(width)));
    }
    position_ = register_parameter("position", at::randn({1, shape.input[0], width}) * 0.02);
    for (int i = 1; i <= kLayers; ++i) {
      layers_.push_back(register_module(fmt::format("layer{}", i),
                                        std::make_shared<EncoderLayer>(width, activation)));
    }
    norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})));
    classifier_ = register_module("classifier", nn::Linear(width, shape.classes));
  }
  Tensor Forward(const Tensor& tokens) override {
    // The first token may always be looked at: attention to nothing at all is not a number.
    Tensor seen = tokens.ne(0);
    seen.select(1, 0).fill_(true);
    seen = seen.unsqueeze(1).unsqueeze(1);
    Tensor x = embedding_(tokens) + position_;
    for (const auto& layer : layers_) x = layer->Forward(x, seen);
    return classifier_(MeanOfTokens(norm_(x), tokens));
  }

 private:
  static constexpr int kLayers = 2;

  nn::Embedding embedding_{nullptr};
  Tensor position_;
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  nn::LayerNorm norm_{nullptr};
  nn::Linear classifier_{nullptr};
};

}  // namespace

NetworkPointer MakeLstm(const ModelShape& shape, const ModelOptions& options) {
  return std::make_shared<Lstm>(shape, options);
}
NetworkPointer MakeTransformer(const ModelShape& shape, const ModelOptions& options) {
  return std::make_shared<Transformer>(shape, options);
}

}  // namespace sordino::internal
