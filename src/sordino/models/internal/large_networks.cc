#include "sordino/models/internal/large_networks.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <vector>

namespace sordino::internal {
namespace {

namespace nn = torch::nn;
using at::Tensor;

// ---- ResNet-18 ------------------------------------------------------------------------------

nn::GroupNorm NormOfGroups(std::int64_t channels) {
  return nn::GroupNorm(nn::GroupNormOptions(32, channels));
}

nn::Conv2d ConvolutionWithoutBias(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                  std::int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", ConvolutionWithoutBias(in, out, 3, stride))),
        norm1(register_module("norm1", NormOfGroups(out))),
        conv2(register_module("conv2", ConvolutionWithoutBias(out, out, 3, 1))),
        norm2(register_module("norm2", NormOfGroups(out))) {
    if (in == out && stride == 1) return;
    shortcut = register_module(
        "shortcut", nn::Sequential(ConvolutionWithoutBias(in, out, 1, stride), NormOfGroups(out)));
  }
  Tensor forward(const Tensor& x) {
    const Tensor deep = norm2(conv2(norm1(conv1(x)).relu()));
    return (deep + (shortcut.is_empty() ? x : shortcut->forward(x))).relu();
  }

  nn::Conv2d conv1;
  nn::GroupNorm norm1;
  nn::Conv2d conv2;
  nn::GroupNorm norm2;
  nn::Sequential shortcut{nullptr};
};
TORCH_MODULE(BasicBlock);

struct ResNet18 : LargeNetwork {
  ResNet18() {
    std::int64_t in = 64;
    for (const std::int64_t out : {64, 128, 256, 512}) {
      blocks->push_back(BasicBlock(in, out, out == 64 ? 1 : 2));
      blocks->push_back(BasicBlock(out, out, 1));
      in = out;
    }
    register_module("blocks", blocks);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor first = at::max_pool2d(norm(stem(x)).relu(), 3, 2, 1);
    return head(blocks->forward(first).mean({2, 3}));
  }

  nn::Conv2d stem = register_module("stem", ConvolutionWithoutBias(3, 64, 7, 2));
  nn::GroupNorm norm = register_module("norm", NormOfGroups(64));
  nn::Sequential blocks;
  nn::Linear head = register_module("head", nn::Linear(512, kLargeClasses));
};

// ---- Transformers with the norms in front ---------------------------------------------------

struct PreNormLayerImpl : nn::Module {
  // `causal`: a token sees those in front of it only, and GELU is approximated, as in GPT-2.
  PreNormLayerImpl(std::int64_t the_width, std::int64_t the_heads, double epsilon, bool is_causal)
      : width(the_width),
        heads(the_heads),
        causal(is_causal),
        norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width}).eps(epsilon)))),
        in_proj(register_module("in_proj", nn::Linear(width, 3 * width))),
        out_proj(register_module("out_proj", nn::Linear(width, width))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width}).eps(epsilon)))),
        linear1(register_module("linear1", nn::Linear(width, 4 * width))),
        linear2(register_module("linear2", nn::Linear(4 * width, width))) {}

  Tensor Attend(const Tensor& x) {
    const std::int64_t examples = x.size(0);
    const std::int64_t tokens = x.size(1);
    const std::vector<Tensor> qkv = in_proj(x).chunk(3, -1);
    const auto by_head = [&](const Tensor& t) {
      return t.reshape({examples, tokens, heads, width / heads}).transpose(1, 2);
    };
    const Tensor y = at::scaled_dot_product_attention(by_head(qkv[0]), by_head(qkv[1]),
                                                      by_head(qkv[2]), {}, 0, causal);
    return out_proj(y.transpose(1, 2).reshape({examples, tokens, width}));
  }
  Tensor forward(const Tensor& x) {
    const Tensor attended = x + Attend(norm1(x));
    const Tensor active = at::gelu(linear1(norm2(attended)), causal ? "tanh" : "none");
    return attended + linear2(active);
  }

  std::int64_t width;
  std::int64_t heads;
  bool causal;
  nn::LayerNorm norm1;
  nn::Linear in_proj;
  nn::Linear out_proj;
  nn::LayerNorm norm2;
  nn::Linear linear1;
  nn::Linear linear2;
};
TORCH_MODULE(PreNormLayer);

struct VitTiny : LargeNetwork {
  static constexpr std::int64_t kWidth = 192;
  static constexpr std::int64_t kPatches = std::int64_t{14} * 14;
  static constexpr double kEpsilon = 1e-6;

  VitTiny() {
    for (int i = 0; i < 12; ++i) layers->push_back(PreNormLayer(kWidth, 3, kEpsilon, false));
    register_module("layers", layers);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor tokens = patches(x).flatten(2).transpose(1, 2);
    const Tensor all = at::cat({class_token.expand({x.size(0), -1, -1}), tokens}, 1) + position;
    return head(norm(layers->forward(all)).select(1, 0));
  }

  nn::Conv2d patches =
      register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, kWidth, 16).stride(16)));
  Tensor class_token = register_parameter("class_token", at::randn({1, 1, kWidth}) * 0.02);
  Tensor position = register_parameter("position", at::randn({1, kPatches + 1, kWidth}) * 0.02);
  nn::Sequential layers;
  nn::LayerNorm norm =
      register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth}).eps(kEpsilon)));
  nn::Linear head = register_module("head", nn::Linear(kWidth, kLargeClasses));
};

struct Gpt2Tiny : LargeNetwork {
  static constexpr std::int64_t kWidth = 256;

  Gpt2Tiny(std::int64_t vocabulary, std::int64_t length)
      : tokens(register_module("tokens", nn::Embedding(vocabulary, kWidth))),
        positions(register_module("positions", nn::Embedding(length, kWidth))) {
    const at::NoGradGuard no_grad;
    tokens->weight.mul_(0.02);
    positions->weight.mul_(0.02);
    for (int i = 0; i < 4; ++i) layers->push_back(PreNormLayer(kWidth, 4, 1e-5, true));
    register_module("layers", layers);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor places = at::arange(x.size(1), x.options());
    const Tensor last = norm(layers->forward(tokens(x) + positions(places)));
    return at::linear(last, tokens->weight);
  }

  nn::Embedding tokens;
  nn::Embedding positions;
  nn::Sequential layers;
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
};

}  // namespace

std::shared_ptr<LargeNetwork> MakeResNet18() { return std::make_shared<ResNet18>(); }

std::shared_ptr<LargeNetwork> MakeVitTiny() { return std::make_shared<VitTiny>(); }

std::shared_ptr<LargeNetwork> MakeGpt2Tiny(std::int64_t vocabulary, std::int64_t length) {
  return std::make_shared<Gpt2Tiny>(vocabulary, length);
}

}  // namespace sordino::internal
