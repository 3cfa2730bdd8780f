#include "sordino/models/internal/image_networks.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <array>
#include <cmath>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

namespace nn = torch::nn;
using at::Tensor;

std::int64_t FlatSize(std::string_view model, const ModelShape& shape) {
  if (shape.tokens) {
    throw Error(
        fmt::format("the model '{}' takes numbers and the data are token ids; choose "
                    "'lstm' or 'transformer'.",
                    model));
  }
  std::int64_t size = 1;
  for (const std::int64_t side : shape.input) size *= side;
  return size;
}

class Logistic : public Network {
 public:
  explicit Logistic(const ModelShape& shape)
      : classifier_(register_module("classifier",
                                    nn::Linear(FlatSize("logistic", shape), shape.classes))) {}
  Tensor Forward(const Tensor& x) override { return classifier_(x.flatten(1)); }

 private:
  nn::Linear classifier_;
};

class Mlp : public Network {
 public:
  Mlp(const ModelShape& shape, const ModelOptions& options)
      : activation_(ChooseActivation(options, "relu")) {
    const std::int64_t width = ChooseWidth(options, 256);
    linear1_ = register_module("linear1", nn::Linear(FlatSize("mlp", shape), width));
    linear2_ = register_module("linear2", nn::Linear(width, width));
    classifier_ = register_module("classifier", nn::Linear(width, shape.classes));
  }
  Tensor Forward(const Tensor& x) override {
    return classifier_(activation_(linear2_(activation_(linear1_(x.flatten(1))))));
  }

 private:
  Activation activation_;
  nn::Linear linear1_{nullptr};
  nn::Linear linear2_{nullptr};
  nn::Linear classifier_{nullptr};
};

class CnnMnist : public Network {
 public:
  static constexpr std::int64_t kMinSide = 14;

  CnnMnist(const ModelShape& shape, const ModelOptions& options)
      : activation_(ChooseActivation(options, "relu")) {
    const ImageSize size = ImagesFor("cnn-mnist", shape, kMinSide);
    const auto left = [](std::int64_t side) {
      const std::int64_t first = (side + 6 - 8) / 2 + 1 - 1;  // convolution, pooling
      return (first - 4) / 2 + 1 - 1;
    };
    conv1_ = register_module(
        "conv1", nn::Conv2d(nn::Conv2dOptions(size.channels, 16, 8).stride(2).padding(3)));
    conv2_ = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 4).stride(2)));
    linear1_ =
        register_module("linear1", nn::Linear(32 * left(size.height) * left(size.width), 32));
    classifier_ = register_module("classifier", nn::Linear(32, shape.classes));
  }
  Tensor Forward(const Tensor& x) override {
    const auto pool = [](const Tensor& y) { return at::max_pool2d(y, 2, 1); };
    const Tensor first = pool(activation_(conv1_(x)));
    const Tensor second = pool(activation_(conv2_(first)));
    return classifier_(activation_(linear1_(second.flatten(1))));
  }

 private:
  Activation activation_;
  nn::Conv2d conv1_{nullptr};
  nn::Conv2d conv2_{nullptr};
  nn::Linear linear1_{nullptr};
  nn::Linear classifier_{nullptr};
};

nn::Conv2d Convolution3x3(std::int64_t in, std::int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
}

// Its weights are drawn at the scale that its activation needs: eight layers with those that
// libtorch draws give logits that hardly depend on the image (a deviation of 1e-4 with ReLU), and
// the first steps of a run are lost.
class CnnCifar : public Network {
 public:
  CnnCifar(const ModelShape& shape, const ModelOptions& options)
      : activation_(ChooseActivation(options, "relu")) {
    std::int64_t in = ImagesFor("cnn-cifar", shape, 8).channels;
    for (std::size_t i = 0; i < kWidths.size(); ++i) {
      convolutions_[i] =
          register_module(fmt::format("conv{}", i + 1), Convolution3x3(in, kWidths[i]));
      in = kWidths[i];
    }
    classifier_ = register_module("classifier", Convolution3x3(in, shape.classes));
    for (const std::shared_ptr<nn::Module>& layer : children()) {
      const auto* const convolution = layer->as<nn::Conv2d>();
      nn::init::xavier_uniform_(convolution->weight, GainOf(activation_));
      nn::init::zeros_(convolution->bias);
    }
  }
  Tensor Forward(const Tensor& x) override {
    Tensor y = x;
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      y = activation_(convolutions_[i]->forward(y));
      if (i % 2 == 1) y = at::avg_pool2d(y, 2, 2);
    }
    return classifier_(y).mean({2, 3});
  }

 private:
  static constexpr std::array<std::int64_t, 7> kWidths = {32, 32, 64, 64, 128, 128, 256};

  Activation activation_;
  std::array<nn::Conv2d, 7> convolutions_ = {nullptr, nullptr, nullptr, nullptr,
                                             nullptr, nullptr, nullptr};
  nn::Conv2d classifier_{nullptr};
};

// A convolution without bias whose weights are standardised (Qiao et al., 1903.10520): for each
// output channel they have the mean 0 and the squared norm 1, times a gain that is trained.
// They are computed as a group norm of one image: on a GPU, the gradients of all examples are then
// one launch.
class StandardisedConvolution : public nn::Module {
 public:
  StandardisedConvolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                          std::int64_t stride)
      : stride_(stride), padding_(kernel / 2) {
    const nn::Conv2d initial(nn::Conv2dOptions(in, out, kernel).bias(false));
    weight_ = register_parameter("weight", initial->weight.detach().clone());
    gain_ = register_parameter("gain", at::ones({out, 1, 1, 1}));
  }
  Tensor Forward(const Tensor& x) const {
    const std::int64_t outputs = weight_.size(0);
    const std::int64_t entries = weight_.numel() / outputs;
    const auto count = static_cast<double>(entries);
    const Tensor standard =
        at::group_norm(weight_.view({1, outputs, entries}), outputs,
                       gain_.view({outputs}) * (1 / std::sqrt(count)), {}, kLeastSquares / count)
            .view(weight_.sizes());
    return at::conv2d(x, standard, {}, stride_, padding_);
  }

 private:
  static constexpr double kLeastSquares = 1e-4;  // added to the squared norm

  std::int64_t stride_;
  std::int64_t padding_;
  Tensor weight_;
  Tensor gain_;
};

// Norm, activation and convolution twice, beside a shortcut. Where the shape changes the shortcut
// is a 1x1 convolution of what comes out of the first activation.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(std::int64_t in, std::int64_t out, std::int64_t stride, Activation activation)
      : activation_(activation),
        norm1_(register_module("norm1", Norm(in))),
        conv1_(register_module("conv1", Convolution(in, out, 3, stride))),
        norm2_(register_module("norm2", Norm(out))),
        conv2_(register_module("conv2", Convolution(out, out, 3, 1))) {
    if (in == out && stride == 1) return;
    shortcut_ = register_module("shortcut", Convolution(in, out, 1, stride));
  }
  static std::shared_ptr<StandardisedConvolution> Convolution(std::int64_t in, std::int64_t out,
                                                              std::int64_t kernel,
                                                              std::int64_t stride) {
    return std::make_shared<StandardisedConvolution>(in, out, kernel, stride);
  }
  static nn::GroupNorm Norm(std::int64_t channels) {
    return nn::GroupNorm(nn::GroupNormOptions(16, channels));
  }
  Tensor Forward(const Tensor& x) {
    const Tensor active = activation_(norm1_(x));
    const Tensor deep = conv2_->Forward(activation_(norm2_(conv1_->Forward(active))));
    return deep + (shortcut_ ? shortcut_->Forward(active) : x);
  }

 private:
  Activation activation_;
  nn::GroupNorm norm1_;
  std::shared_ptr<StandardisedConvolution> conv1_;
  nn::GroupNorm norm2_;
  std::shared_ptr<StandardisedConvolution> conv2_;
  std::shared_ptr<StandardisedConvolution> shortcut_;
};

class WideResNet : public Network {
 public:
  WideResNet(const ModelShape& shape, const ModelOptions& options)
      : activation_(ChooseActivation(options, "relu")) {
    const ImageSize size = ImagesFor("wrn-16-4", shape, 4);
    stem_ = register_module("stem", ResidualBlock::Convolution(size.channels, 16, 3, 1));
    std::int64_t in = 16;
    for (const std::int64_t out : {64, 128, 256}) {
      for (int i = 0; i < 2; ++i) {
        const std::int64_t stride = i == 0 && out > 64 ? 2 : 1;
        blocks_.push_back(
            register_module(fmt::format("block{}", blocks_.size() + 1),
                            std::make_shared<ResidualBlock>(in, out, stride, activation_)));
        in = out;
      }
    }
    norm_ = register_module("norm", ResidualBlock::Norm(in));
    classifier_ = register_module("classifier", nn::Linear(in, shape.classes));
  }
  Tensor Forward(const Tensor& x) override {
    Tensor y = stem_->Forward(x);
    for (const auto& block : blocks_) y = block->Forward(y);
    return classifier_(activation_(norm_(y)).mean({2, 3}));
  }

 private:
  Activation activation_;
  std::shared_ptr<StandardisedConvolution> stem_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  nn::GroupNorm norm_{nullptr};
  nn::Linear classifier_{nullptr};
};

}  // namespace

NetworkPointer MakeLogistic(const ModelShape& shape, const ModelOptions& /*options*/) {
  return std::make_shared<Logistic>(shape);
}
NetworkPointer MakeMlp(const ModelShape& shape, const ModelOptions& options) {
  return std::make_shared<Mlp>(shape, options);
}
NetworkPointer MakeCnnMnist(const ModelShape& shape, const ModelOptions& options) {
  return std::make_shared<CnnMnist>(shape, options);
}
NetworkPointer MakeCnnCifar(const ModelShape& shape, const ModelOptions& options) {
  return std::make_shared<CnnCifar>(shape, options);
}
NetworkPointer MakeWideResNet(const ModelShape& shape, const ModelOptions& options) {
  return std::make_shared<WideResNet>(shape, options);
}

}  // namespace sordino::internal
