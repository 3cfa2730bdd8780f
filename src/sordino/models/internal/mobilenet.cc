#include "sordino/models/internal/mobilenet.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

namespace nn = torch::nn;
using at::Tensor;

constexpr std::int64_t kStemWidth = 16;
constexpr std::int64_t kMobilenetChunk = 32;  // images whose features are computed at a time

struct BlockShape {
  std::int64_t expansion;
  std::int64_t out;
  std::int64_t stride;
};

constexpr std::array<BlockShape, 17> kBlocks = {{
    {1, 8, 1},
    {6, 16, 2},
    {6, 16, 1},
    {6, 16, 2},
    {6, 16, 1},
    {6, 16, 1},
    {6, 32, 2},
    {6, 32, 1},
    {6, 32, 1},
    {6, 32, 1},
    {6, 48, 1},
    {6, 48, 1},
    {6, 48, 1},
    {6, 80, 2},
    {6, 80, 1},
    {6, 80, 1},
    {6, 160, 1},
}};

// A convolution with TensorFlow's SAME padding: as many outputs as steps of the stride, with the
// larger half of the border on the right and at the bottom.
Tensor ConvolveSame(const nn::Conv2d& layer, const Tensor& x) {
  const std::int64_t kernel = layer->weight.size(2);
  const std::int64_t stride = layer->options.stride()->at(0);
  const auto border = [&](std::int64_t side) {
    const std::int64_t outputs = (side + stride - 1) / stride;
    return std::max<std::int64_t>((outputs - 1) * stride + kernel - side, 0);
  };
  const std::int64_t rows = border(x.size(2));
  const std::int64_t columns = border(x.size(3));
  const std::int64_t groups = layer->options.groups();
  const bool even = rows % 2 == 0 && columns % 2 == 0;
  const std::array<std::int64_t, 2> padding = {even ? rows / 2 : 0, even ? columns / 2 : 0};
  const Tensor padded =
      even ? x
           : at::constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2},
                                 0);
  return at::conv2d(padded, layer->weight, layer->bias, {stride, stride}, at::IntArrayRef(padding),
                    {1, 1}, groups);
}

nn::Conv2d Convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                       std::int64_t groups = 1) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, kernel).stride(stride).groups(groups));
  // He's: libtorch's own start is smaller, and after 52 layers without a norm nothing of the image
  // would be left.
  const at::NoGradGuard no_grad;
  const std::int64_t inputs = in / groups * kernel * kernel;
  layer->weight.normal_(0, std::sqrt(2.0 / static_cast<double>(inputs)));
  layer->bias.zero_();
  return layer;
}

class InvertedResidual : public nn::Module {
 public:
  InvertedResidual(std::int64_t in, BlockShape shape)
      : shortcut_(shape.stride == 1 && in == shape.out) {
    const std::int64_t inner = in * shape.expansion;
    if (shape.expansion != 1) expand_ = register_module("expand", Convolution(in, inner, 1, 1));
    depthwise_ = register_module("depthwise", Convolution(inner, inner, 3, shape.stride, inner));
    project_ = register_module("project", Convolution(inner, shape.out, 1, 1));
  }
  Tensor Forward(const Tensor& x) const {
    const Tensor wide = expand_.is_empty() ? x : at::relu6(ConvolveSame(expand_, x));
    const Tensor narrow = ConvolveSame(project_, at::relu6(ConvolveSame(depthwise_, wide)));
    return shortcut_ ? x + narrow : narrow;
  }

 private:
  bool shortcut_;
  nn::Conv2d expand_{nullptr};
  nn::Conv2d depthwise_{nullptr};
  nn::Conv2d project_{nullptr};
};

class Backbone : public nn::Module {
 public:
  Backbone() {
    stem_ = register_module("stem", Convolution(3, kStemWidth, 3, 2));
    std::int64_t in = kStemWidth;
    for (const BlockShape& shape : kBlocks) {
      blocks_.push_back(register_module(fmt::format("block{}", blocks_.size()),
                                        std::make_shared<InvertedResidual>(in, shape)));
      in = shape.out;
    }
    last_ = register_module("last", Convolution(in, kMobileNetFeatures, 1, 1));
  }
  // Images in [-1, 1] to the mean over positions, [n, 1280].
  Tensor Forward(const Tensor& images) const {
    Tensor y = at::relu6(ConvolveSame(stem_, images));
    for (const auto& block : blocks_) y = block->Forward(y);
    return at::relu6(ConvolveSame(last_, y)).mean({2, 3});
  }

 private:
  nn::Conv2d stem_{nullptr};
  std::vector<std::shared_ptr<InvertedResidual>> blocks_;
  nn::Conv2d last_{nullptr};
};

class MobileNet : public Network {
 public:
  explicit MobileNet(const ModelShape& shape) : size_(Size(shape)), to_pixels_(shape) {
    backbone_ = register_module("backbone", std::make_shared<Backbone>());
    classifier_ = register_module("classifier", nn::Linear(kMobileNetFeatures, shape.classes));
  }

  bool HasFeatures() const override {
    const std::vector<Tensor> weights = backbone_->parameters();
    return std::none_of(weights.begin(), weights.end(),
                        [](const Tensor& weight) { return weight.requires_grad(); });
  }
  Tensor Features(const Tensor& inputs) override {
    Tensor features = at::empty({inputs.size(0), kMobileNetFeatures}, inputs.options());
    for (std::int64_t begin = 0; begin < inputs.size(0); begin += kMobilenetChunk) {
      const std::int64_t end = std::min(begin + kMobilenetChunk, inputs.size(0));
      const Tensor images =
          Prepare(inputs.slice(0, begin, end)).contiguous(at::MemoryFormat::ChannelsLast);
      features.slice(0, begin, end).copy_(Rows(images));
    }
    return features;
  }
  Tensor Forward(const Tensor& features) override {
    return classifier_(HasFeatures() ? features : Rows(Prepare(features)));
  }
  NamedTensors Adapt(NamedTensors tensors) const override;

 private:
  static ImageSize Size(const ModelShape& shape) {
    const ImageSize size = ImagesFor("mobilenet", shape, 1);
    if (size.channels != 1 && size.channels != 3) {
      throw Error(
          fmt::format("the model 'mobilenet' takes grey or colour images (1 or 3 channels) "
                      "and these have {} channels.",
                      size.channels));
    }
    return size;
  }
  Tensor Prepare(const Tensor& inputs) const {
    Tensor images = to_pixels_(inputs) * 2 - 1;
    if (std::min(size_.height, size_.width) < kMobileNetPixels) {
      images = at::upsample_bilinear2d(images, {kMobileNetPixels, kMobileNetPixels}, false);
    }
    return size_.channels == 1 ? images.expand({-1, 3, -1, -1}) : images;
  }
  Tensor Rows(const Tensor& images) const {
    constexpr double kTiny = 1e-6;  // a row without contrast stays zero
    const Tensor rows = backbone_->Forward(images);
    const Tensor centred = rows - rows.mean(1, true);
    return centred *
           (kMobileNetNorm / at::linalg_vector_norm(centred, 2, 1, true).clamp_min(kTiny));
  }

  ImageSize size_;
  ToPixels to_pixels_;
  std::shared_ptr<Backbone> backbone_;
  nn::Linear classifier_{nullptr};
};

// TensorFlow's name of a layer to ours: "expanded_conv_3/expand" to "backbone.block3.expand".
std::map<std::string, std::string> TensorFlowLayers() {
  std::map<std::string, std::string> layers = {{"Conv", "backbone.stem"},
                                               {"Conv_1", "backbone.last"}};
  for (std::size_t i = 0; i < kBlocks.size(); ++i) {
    const std::string theirs = i == 0 ? "expanded_conv" : fmt::format("expanded_conv_{}", i);
    for (const std::string_view part : {"expand", "depthwise", "project"}) {
      layers.emplace(fmt::format("{}/{}", theirs, part),
                     fmt::format("backbone.block{}.{}", i, part));
    }
  }
  return layers;
}

NamedTensors MobileNet::Adapt(NamedTensors tensors) const {
  const std::map<std::string, std::string> layers = TensorFlowLayers();
  NamedTensors adapted;
  for (auto& [name, tensor] : tensors) {
    // Two constants of the input, which is scaled here already.
    if (name.starts_with("module_apply_default/hub_input/")) continue;
    const std::size_t slash = name.rfind('/');
    const auto layer =
        slash == std::string::npos ? layers.end() : layers.find(name.substr(0, slash));
    const bool known = layer != layers.end();
    if (known && name.ends_with("_bn_offset")) {
      adapted.emplace_back(layer->second + ".bias", tensor);
    } else if (known && name.ends_with("depthwise_weights") && tensor.dim() == 4) {
      adapted.emplace_back(layer->second + ".weight", tensor.permute({2, 3, 0, 1}));
    } else if (known && name.ends_with("weights") && tensor.dim() == 4) {
      adapted.emplace_back(layer->second + ".weight", tensor.permute({3, 2, 0, 1}));
    } else {
      adapted.emplace_back(name, tensor);
    }
  }
  return adapted;
}

}  // namespace

NetworkPointer MakeMobileNet(const ModelShape& shape, const ModelOptions& /*options*/) {
  return std::make_shared<MobileNet>(shape);
}

}  // namespace sordino::internal
