#include "sordino/gradients/testing/gradients_test_support.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/isolation/bfloat16_products.h"
#include "sordino/gradients/norm_clipping.h"

namespace sordino {
namespace {

namespace nn = torch::nn;

std::vector<NamedParameter> Named(const nn::Module& module) {
  std::vector<NamedParameter> named;
  for (const auto& parameter : module.named_parameters()) {
    named.push_back({parameter.key(), parameter.value()});
  }
  return named;
}

double Squared(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).square().sum().item<double>();
}

// Between the two middle ones and near no norm, so that no rounding decides who is clipped.
double MiddleOf(const at::Tensor& norms) {
  const at::Tensor sorted = std::get<0>(norms.to(at::kDouble).sort());
  const std::int64_t size = sorted.numel();
  if (size == 0) return 1;
  const double upper = sorted[size / 2].item<double>();
  const double lower = sorted[std::max<std::int64_t>(size / 2 - 1, 0)].item<double>();
  double middle = (lower + upper) / 2;
  if (!(middle > 0)) return 1;
  while (((sorted - middle).abs() < 1e-4 * middle).any().item<bool>()) middle *= 0.97;
  return middle;
}

}  // namespace

at::Tensor ModelMaker::Parameter(const std::string& name, at::IntArrayRef sizes, double scale,
                                 double mean) {
  at::Tensor value = (at::randn(sizes, at::kDouble) * scale + mean).to(type_);
  value.requires_grad_(true);
  parameters_.push_back({name, value});
  return value;
}

at::Tensor ModelMaker::Frozen(const std::string& name, at::IntArrayRef sizes) {
  at::Tensor value = Constant(sizes, 0.6);
  parameters_.push_back({name, value});
  return value;
}

at::Tensor ModelMaker::Constant(at::IntArrayRef sizes, double scale) const {
  return (at::randn(sizes, at::kDouble) * scale).to(type_);
}

void ModelMaker::Adopt(std::vector<NamedParameter> parameters) {
  for (NamedParameter& parameter : parameters) parameters_.push_back(std::move(parameter));
}

void ModelMaker::Input(std::vector<std::int64_t> sizes) {
  inputs_.push_back({std::move(sizes), 0});
}

void ModelMaker::Tokens(std::int64_t below, std::vector<std::int64_t> sizes) {
  inputs_.push_back({std::move(sizes), below});
}

Batch ModelMaker::MakeBatch(std::int64_t examples) const {
  Batch batch;
  for (const InputKind& input : inputs_) {
    std::vector<std::int64_t> sizes = input.sizes;
    sizes.insert(sizes.begin(), examples);
    batch.push_back(input.below > 0 ? at::randint(input.below, sizes, at::kLong)
                                    : at::randn(sizes, at::kDouble).to(type_));
  }
  return batch;
}

TestModel MakeModel(const ModelFunction& function, at::ScalarType type, std::uint64_t seed) {
  torch::manual_seed(seed);
  const auto maker = std::make_shared<ModelMaker>(type);
  TestModel model;
  model.loss = function(*maker);
  model.parameters = maker->parameters();
  model.batch = [maker](std::int64_t examples) { return maker->MakeBatch(examples); };
  return model;
}

at::Tensor LossOf(const at::Tensor& output, std::int64_t batch_dim) {
  at::Tensor rows = output.movedim(batch_dim, 0);
  rows = rows.reshape({rows.size(0), rows.size(0) == 0 ? 1 : -1});
  const at::Tensor weight =
      (at::arange(rows.size(1), rows.options().dtype(at::kDouble)) * 0.7 + 0.3)
          .cos()
          .to(rows.scalar_type());
  return (rows.tanh() * weight + rows * weight * 0.2).sum(1);
}

double Distance(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second) {
  double squared = 0;
  for (std::size_t k = 0; k < first.size(); ++k) {
    squared += Squared(first[k].to(at::kDouble) - second[k].to(at::kDouble));
  }
  return std::sqrt(squared);
}

double NormOf(const std::vector<at::Tensor>& tensors) {
  double squared = 0;
  for (const at::Tensor& tensor : tensors) squared += Squared(tensor);
  return std::sqrt(squared);
}

double RelativeError(const std::vector<at::Tensor>& found,
                     const std::vector<at::Tensor>& expected) {
  const double distance = Distance(found, expected);
  return distance == 0 ? 0 : distance / NormOf(expected);
}

std::unique_ptr<ClippingPolicy> HalfClippedFlat(const TestModel& model, const Batch& batch) {
  const FlatClipping wide(ClipNorm(1e9));
  std::vector<NamedParameter> trained;
  for (const auto& p : model.parameters) {
    if (p.value.requires_grad()) trained.push_back(p);
  }
  const at::Tensor norms = LoopClippedSum(model.loss, batch, trained, wide).norms;
  return std::make_unique<FlatClipping>(ClipNorm(MiddleOf(norms.select(0, 0))));
}

std::unique_ptr<ClippingPolicy> HalfClippedLayers(const TestModel& model, const Batch& batch) {
  std::vector<NamedParameter> trained;
  for (const auto& p : model.parameters) {
    if (p.value.requires_grad()) trained.push_back(p);
  }
  const auto wide = NormClipping::Layerwise(trained, ClipNorm(1e9));
  const at::Tensor norms = LoopClippedSum(model.loss, batch, trained, wide).norms;
  std::vector<ClipNorm> bounds;
  for (std::int64_t k = 0; k < norms.size(0); ++k) {
    bounds.emplace_back(MiddleOf(norms.select(0, k)));
  }
  return std::make_unique<NormClipping>(ClippingGroups::ByLayer(trained), bounds);
}

Tolerance ToleranceOf(at::ScalarType type) {
  if (type == at::kDouble) return {1e-12, 1e-12};
  if (type == at::kFloat) return {1e-5, 1e-5};
  return {0.05, 0.05};
}

void ExpectSameAsLoop(const BoundedSum& sum, const at::Tensor& norms, const LoopResult& loop,
                      const std::vector<NamedParameter>& parameters, Tolerance tolerance,
                      const std::string& what) {
  EXPECT_LE(RelativeError(sum.gradients, loop.sum), tolerance.sums) << what << ": the whole sum";
  const double whole = NormOf(loop.sum);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    ASSERT_EQ(sum.gradients[k].sizes(), parameters[k].value.sizes()) << what << ": shapes";
    // A gradient that cancels to nearly nothing has the rounding of its parts.
    const double allowed = tolerance.sums * (NormOf({loop.sum[k]}) + 0.03 * whole);
    EXPECT_LE(Distance({sum.gradients[k]}, {loop.sum[k]}), allowed)
        << what << ": the sum of " << parameters[k].name;
  }
  ASSERT_EQ(norms.sizes(), loop.norms.sizes()) << what << ": norms";
  const double largest = norms.numel() == 0 ? 0 : loop.norms.max().item<double>();
  const at::Tensor allowed = (loop.norms + 0.03 * largest) * tolerance.norms;
  EXPECT_TRUE(((norms - loop.norms).abs() <= allowed).all().item<bool>())
      << what << ": norms\n"
      << norms << "\nof the loop\n"
      << loop.norms;
  if (norms.numel() == 0) return;
  const at::Tensor clipped = sum.clipped.RevealForAudit();
  EXPECT_TRUE(clipped.equal((loop.factors < 1).sum(1))) << what << ": clipped examples";
}

void ExpectAgreesWithLoop(const std::string& what, const ModelFunction& function,
                          const LoopComparison& comparison) {
  for (const at::ScalarType type : comparison.types) {
    const TestModel model = MakeModel(function, type);
    for (const std::int64_t examples : comparison.batches) {
      const Batch batch = model.batch(examples);
      for (const bool layerwise : {false, true}) {
        const auto policy =
            layerwise ? HalfClippedLayers(model, batch) : HalfClippedFlat(model, batch);
        for (const NormMethod method :
             {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
          const std::string where = what + ", " + c10::toString(type) + ", batch " +
                                    std::to_string(examples) +
                                    (layerwise ? ", layerwise" : ", flat") + ", method " +
                                    std::to_string(static_cast<int>(method));
          GradientOptions options = comparison.options;
          options.norms = method;
          try {
            Clipper clipper(model.parameters, options);
            const LoopResult loop =
                LoopClippedSum(model.loss, batch, clipper.parameters(), *policy);
            const BoundedSum sum = clipper.ClippedSum(model.loss, batch, *policy);
            const at::Tensor norms =
                examples == 0 ? loop.norms : clipper.Norms(model.loss, batch, *policy);
            ExpectSameAsLoop(sum, norms, loop, clipper.parameters(),
                             ToleranceOf(isolated::RoundingType(type)), where);
          } catch (const std::exception& error) {
            ADD_FAILURE() << where << ": " << error.what();
            return;
          }
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

std::string Refusal(const TestModel& model, const Batch& batch, GradientOptions options) {
  Clipper clipper(model.parameters, options);
  try {
    clipper.ClippedSum(model.loss, batch, FlatClipping(ClipNorm(1)));
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "the model was not refused";
  return {};
}

ModelFunction TransformerModel(bool batch_first_input) {
  return [=](ModelMaker& m) -> LossFunction {
    nn::TransformerEncoderLayer layer(
        nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6).dropout(0));
    nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(layer, 2));
    encoder->to(m.type());
    m.Adopt(Named(*encoder));
    const at::Tensor position = m.Parameter("position.weight", {1, 3, 4});
    const at::Tensor table = m.Parameter("embedding.weight", {7, 4});
    m.Tokens(7, {3});
    return [=](const Batch& b) {
      auto net = encoder;
      at::Tensor x = at::embedding(table, b[0]) + position;
      if (batch_first_input) return LossOf(net->forward(x.transpose(0, 1)).transpose(0, 1));
      return LossOf(net->forward(x.transpose(0, 1)), 1);
    };
  };
}

ModelFunction MultiHeadAttentionModel(bool separate_inputs, bool bias_kv) {
  return [=](ModelMaker& m) -> LossFunction {
    nn::MultiheadAttention attention(
        nn::MultiheadAttentionOptions(4, 2).add_bias_kv(bias_kv).add_zero_attn(bias_kv));
    attention->to(m.type());
    m.Adopt(Named(*attention));
    m.Input({3, 4});
    m.Input({5, 4});
    m.Input({5, 4});
    return [=](const Batch& b) {
      auto net = attention;
      const at::Tensor query = b[0].transpose(0, 1);
      const at::Tensor key = separate_inputs ? b[1].transpose(0, 1) : query;
      const at::Tensor value = separate_inputs ? b[2].transpose(0, 1) : query;
      return LossOf(std::get<0>(net->forward(query, key, value)), 1);
    };
  };
}

ModelFunction RecurrentModel(const std::string& kind, bool batch_first, std::int64_t layers,
                             bool bidirectional) {
  return [=](ModelMaker& m) -> LossFunction {
    m.Input({4, 3});
    const auto wire = [&](auto net, auto output) -> LossFunction {
      net->to(m.type());
      m.Adopt(Named(*net));
      return [=](const Batch& b) {
        auto copy = net;
        const at::Tensor x = batch_first ? b[0] : b[0].transpose(0, 1);
        return LossOf(output(copy, x), batch_first ? 0 : 1);
      };
    };
    const auto first = [](auto& net, const at::Tensor& x) { return std::get<0>(net->forward(x)); };
    if (kind == "lstm") {
      return wire(nn::LSTM(nn::LSTMOptions(3, 2)
                               .batch_first(batch_first)
                               .num_layers(layers)
                               .bidirectional(bidirectional)),
                  first);
    }
    if (kind == "gru") {
      return wire(nn::GRU(nn::GRUOptions(3, 2)
                              .batch_first(batch_first)
                              .num_layers(layers)
                              .bidirectional(bidirectional)),
                  first);
    }
    return wire(nn::RNN(nn::RNNOptions(3, 2)
                            .batch_first(batch_first)
                            .num_layers(layers)
                            .bidirectional(bidirectional)),
                first);
  };
}

ModelFunction RecurrentCellModel(const std::string& kind) {
  return [=](ModelMaker& m) -> LossFunction {
    m.Input({4, 3});
    nn::GRUCell gru(3, 2);
    nn::LSTMCell lstm(3, 2);
    const bool is_gru = kind == "gru";
    gru->to(m.type());
    lstm->to(m.type());
    m.Adopt(is_gru ? Named(*gru) : Named(*lstm));
    return [=](const Batch& b) {
      auto gru_cell = gru;
      auto lstm_cell = lstm;
      at::Tensor h = at::zeros({b[0].size(0), 2}, b[0].options());
      at::Tensor c = h;
      for (std::int64_t t = 0; t < b[0].size(1); ++t) {
        const at::Tensor x = b[0].select(1, t);
        if (is_gru) {
          h = gru_cell->forward(x, h);
        } else {
          std::tie(h, c) = lstm_cell->forward(x, std::make_tuple(h, c));
        }
      }
      return LossOf(h);
    };
  };
}

ModelFunction ConvolutionalModel() {
  return [](ModelMaker& m) -> LossFunction {
    nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).stride(2).padding(1)),
                       nn::ReLU(nn::ReLUOptions().inplace(true)), nn::GroupNorm(2, 4),
                       nn::Conv2d(nn::Conv2dOptions(4, 4, 2).groups(2)), nn::Tanh(),
                       nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(1)), nn::Flatten(),
                       nn::Linear(4, 3));
    net->to(m.type());
    m.Adopt(Named(*net));
    m.Input({2, 6, 6});
    m.Tokens(3, {});
    return [=](const Batch& b) {
      auto copy = net;
      return at::cross_entropy_loss(copy->forward(b[0]), b[1], {}, at::Reduction::None);
    };
  };
}

}  // namespace sordino
