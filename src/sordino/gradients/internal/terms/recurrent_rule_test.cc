#include "sordino/gradients/internal/terms/recurrent_rule.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "sordino/device/recorded_graph.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

namespace nn = torch::nn;

struct NetOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  bool batch_first = true;
  bool bias = true;
  double dropout = 0;
};

// Output and last states (hidden, and cell of an LSTM) of a layer with 6 features and 6 hidden.
struct NetOutputs {
  at::Tensor output;
  std::vector<at::Tensor> states;
};

// torch::nn's recurrent layers with one interface.
class Net {
 public:
  Net(const std::string& kind, const NetOptions& o) {
    const auto options = [&](auto made) {
      return made.num_layers(o.layers)
          .bidirectional(o.bidirectional)
          .batch_first(o.batch_first)
          .bias(o.bias)
          .dropout(o.dropout);
    };
    if (kind == "lstm") {
      net_ = nn::LSTM(options(nn::LSTMOptions(6, 6)));
    } else if (kind == "gru") {
      net_ = nn::GRU(options(nn::GRUOptions(6, 6)));
    } else if (kind == "tanh") {
      net_ = nn::RNN(options(nn::RNNOptions(6, 6)));
    } else {
      net_ = nn::RNN(options(nn::RNNOptions(6, 6).nonlinearity(torch::kReLU)));
    }
  }

  // Without given states when `first` is undefined.
  NetOutputs Forward(const at::Tensor& x, const at::Tensor& first = {}) {
    if (auto* lstm = std::get_if<nn::LSTM>(&net_)) {
      const auto [output, states] = first.defined()
                                        ? (*lstm)->forward(x, std::make_tuple(first, first.sin()))
                                        : (*lstm)->forward(x);
      return {output, {std::get<0>(states), std::get<1>(states)}};
    }
    const auto [output, state] = std::holds_alternative<nn::GRU>(net_)
                                     ? std::get<nn::GRU>(net_)->forward(x, first)
                                     : std::get<nn::RNN>(net_)->forward(x, first);
    return {output, {state}};
  }

  std::vector<NamedParameter> Parameters(const at::TensorOptions& options) {
    std::vector<NamedParameter> parameters;
    std::visit(
        [&](auto& net) {
          net->to(options.device(), options.dtype().toScalarType());
          for (const auto& p : net->named_parameters()) parameters.push_back({p.key(), p.value()});
        },
        net_);
    return parameters;
  }

 private:
  std::variant<nn::LSTM, nn::GRU, nn::RNN> net_{nn::LSTM(nullptr)};
};

using NetForward = std::function<at::Tensor(Net&, const at::Tensor& x)>;

at::Tensor OutputOf(Net& net, const at::Tensor& x) { return net.Forward(x).output; }

// sum_i min(1, bound / |g_i|) g_i with gradients of libtorch's own layers, example by example and
// without isolation: nothing of ours but the policy's formula.
std::vector<at::Tensor> OrdinarySum(const LossFunction& loss, const Batch& batch,
                                    const std::vector<NamedParameter>& parameters, double bound) {
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> sum;
  for (const NamedParameter& p : parameters) {
    leaves.push_back(p.value);
    sum.push_back(torch::zeros_like(p.value));
  }
  for (std::int64_t i = 0; i < batch[0].size(0); ++i) {
    const auto gradients = torch::autograd::grad({loss({batch[0].narrow(0, i, 1)}).sum()}, leaves);
    const double factor = std::min(1.0, bound / NormOf(gradients));
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k].add_(gradients[k], factor);
  }
  return sum;
}

struct RecurrentCase {
  std::string name;
  NetOptions options;
  NetForward forward = OutputOf;
};

std::vector<RecurrentCase> RecurrentCases() {
  const auto last_step = [](Net& net, const at::Tensor& x) {
    return OutputOf(net, x).select(1, -1);
  };
  const auto last_states = [](Net& net, const at::Tensor& x) {
    return torch::cat(net.Forward(x).states, 2).transpose(0, 1);
  };
  const auto all_outputs = [](Net& net, const at::Tensor& x) {
    const NetOutputs outputs = net.Forward(x);
    return torch::cat({outputs.output.mean(1), outputs.states[0][1], outputs.states.back()[0]}, 1);
  };
  const auto given_states = [](Net& net, const at::Tensor& x) {
    return net.Forward(x.sigmoid(), torch::stack({x.mean(1).tanh(), x.select(1, 0)})).output;
  };
  const auto residual = [](Net& net, const at::Tensor& x) {
    const at::Tensor y = x + OutputOf(net, x);
    return y * OutputOf(net, y);
  };
  const auto time_first = [](Net& net, const at::Tensor& x) {
    return OutputOf(net, x.transpose(0, 1)).transpose(0, 1);
  };
  return {{"plain", {}},
          {"two layers, two directions", {.layers = 2, .bidirectional = true}},
          {"no bias", {.bidirectional = true, .bias = false}},
          {"time first", {.layers = 2, .batch_first = false}, time_first},
          {"last step", {.layers = 2}, last_step},
          {"last states", {.layers = 2, .bidirectional = true}, last_states},
          {"all outputs", {.bidirectional = true}, all_outputs},
          {"given states", {.bidirectional = true}, given_states},
          {"twice in a residual", {.layers = 2}, residual}};
}

struct CaseModel {
  std::vector<NamedParameter> parameters;
  LossFunction loss;
};

// [batch, time, 6], through a matrix with a gradient of its own.
CaseModel MakeCaseModel(const std::string& kind, const RecurrentCase& test,
                        const at::TensorOptions& options) {
  torch::manual_seed(8);
  Net net(kind, test.options);
  const at::Tensor before = torch::randn({6, 6}, torch::kDouble).to(options).requires_grad_();
  CaseModel model{net.Parameters(options), nullptr};
  model.parameters.push_back({"before", before});
  model.loss = [net, before, forward = test.forward](const Batch& batch) {
    Net copy = net;
    return LossOf(forward(copy, at::matmul(batch[0], before)));
  };
  return model;
}

void ExpectLikeOrdinary(const std::string& kind, const RecurrentCase& test,
                        const at::TensorOptions& options) {
  const CaseModel model = MakeCaseModel(kind, test, options);
  const Batch batch = {torch::randn({5, 7, 6}, torch::kDouble).to(options)};
  const std::vector<at::Tensor> all = OrdinarySum(model.loss, batch, model.parameters, 1e9);
  for (const double bound : {1e9, NormOf(all) / 8}) {
    const std::vector<at::Tensor> expected =
        OrdinarySum(model.loss, batch, model.parameters, bound);
    const FlatClipping policy{ClipNorm(bound)};
    for (const GradientOptions& how :
         {GradientOptions{.norms = NormMethod::kMaterialise},
          GradientOptions{.norms = NormMethod::kGhost}, GradientOptions{.physical_batch = 2}}) {
      Clipper clipper(model.parameters, how);
      const BoundedSum sum = clipper.ClippedSum(model.loss, batch, policy);
      EXPECT_LT(RelativeError(sum.gradients, expected),
                options.dtype() == at::kDouble ? 1e-9 : 1e-4)
          << kind << ", " << test.name << ", bound " << bound;
    }
  }
}

class RecurrentLayerRules : public testing::TestWithParam<std::string> {};

TEST_P(RecurrentLayerRules, AgreeWithOrdinaryGradientsExampleByExample) {
  for (const RecurrentCase& test : RecurrentCases()) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      ExpectLikeOrdinary(GetParam(), test, type);
    }
  }
}

TEST_P(RecurrentLayerRules, AgreeWithOrdinaryGradientsExampleByExampleOnCuda) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  const bool tf32 = at::globalContext().allowTF32CuDNN();
  at::globalContext().setAllowTF32CuDNN(false);
  for (const RecurrentCase& test : RecurrentCases()) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      ExpectLikeOrdinary(GetParam(), test, at::TensorOptions(at::kCUDA).dtype(type));
    }
  }
  at::globalContext().setAllowTF32CuDNN(tf32);
}

// Steps that are recorded as a CUDA graph and replayed with other data.
TEST_P(RecurrentLayerRules, AreRecordedOnCuda) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  if (!RecordingProblem(at::Device(at::kCUDA, 0)).empty()) GTEST_SKIP() << "built without nvcc";
  const at::TensorOptions options = at::TensorOptions(at::Device(at::kCUDA, 0)).dtype(at::kFloat);
  const CaseModel model = MakeCaseModel(GetParam(), RecurrentCases()[1], options);
  const FlatClipping policy(ClipNorm(0.5));
  Clipper recorded(model.parameters, {.graph = GraphUse::kOn});
  Clipper eager(model.parameters);
  for (int step = 0; step < 8; ++step) {
    const Batch batch = {torch::randn({5, 7, 6}, options)};
    const BoundedSum found = recorded.ClippedSum(model.loss, batch, policy);
    const BoundedSum expected = eager.ClippedSum(model.loss, batch, policy);
    EXPECT_LT(RelativeError(found.gradients, expected.gradients), 1e-5) << step;
  }
  EXPECT_EQ(recorded.GraphStatus(), "recorded");
}

TEST_P(RecurrentLayerRules, AgreeWithTheLoopOnUnitsOfAnySize) {
  for (const std::int64_t time : {1, 7}) {
    const auto function = [&](ModelMaker& m) -> LossFunction {
      m.Input({time, 6});
      Net net(GetParam(), {.layers = 2, .bidirectional = true});
      m.Adopt(net.Parameters(m.options()));
      return [net](const Batch& batch) {
        Net copy = net;
        return LossOf(OutputOf(copy, batch[0]));
      };
    };
    ExpectAgreesWithLoop(GetParam() + " on " + std::to_string(time) + " steps", function,
                         {.batches = {1, 2, 5}});
  }
  const CaseModel model = MakeCaseModel(GetParam(), RecurrentCases()[1], at::kDouble);
  const Batch batch = {torch::randn({6, 7, 6}, torch::kDouble)};
  const FlatClipping policy(ClipNorm(0.5));
  for (const std::int64_t width : {2, 3}) {
    Clipper clipper(model.parameters, {}, {.adjacency = Adjacency::kZeroOut, .micro_batch = width});
    const BoundedSum sum = clipper.ClippedSum(model.loss, batch, policy);
    const LoopResult loop = LoopClippedSum(model.loss, batch, clipper.parameters(), policy, width);
    EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-12);
  }
}

// The masks are those of a batch, so the comparison with it and the check of the gradients hold.
TEST_P(RecurrentLayerRules, TrainWithDropoutBetweenLayers) {
  const RecurrentCase test{"dropout", {.layers = 3, .dropout = 0.4}};
  const CaseModel model = MakeCaseModel(GetParam(), test, at::kDouble);
  Clipper clipper(model.parameters, {.checked_examples = 5});
  const Batch batch = {torch::randn({5, 7, 6}, torch::kDouble)};
  EXPECT_GT(NormOf(clipper.ClippedSum(model.loss, batch, FlatClipping(ClipNorm(0.5))).gradients),
            0);
}

INSTANTIATE_TEST_SUITE_P(OfKinds, RecurrentLayerRules,
                         testing::Values("lstm", "gru", "tanh", "relu"),
                         [](const auto& test) { return test.param; });

struct TokenModel : nn::Module {
  nn::Embedding embedding{nn::EmbeddingOptions(9, 6)};
  nn::LSTM lstm{nn::LSTMOptions(6, 4)};
  TokenModel() {
    register_module("embedding", embedding);
    register_module("lstm", lstm);
  }
  std::vector<NamedParameter> Parameters() const {
    std::vector<NamedParameter> named;
    for (const auto& p : named_parameters()) named.push_back({p.key(), p.value()});
    return named;
  }
};

// Nothing of the input requires a gradient, so what runs along the batch shows in the gradients of
// the gates alone: those of the output are clean, one row for each example.
TEST(LstmLayer, RefusesToRunAlongTheBatch) {
  torch::manual_seed(3);
  TokenModel model;
  model.embedding->weight.set_requires_grad(false);
  Clipper clipper(model.Parameters(), {.checked_examples = 0}, {});
  const LossFunction loss = [&](const Batch& batch) {
    // [batch, time] tokens taken for [time, batch].
    return LossOf(std::get<0>(model.lstm(model.embedding(batch[0]))));
  };
  EXPECT_THROW(clipper.ClippedSum(loss, {torch::randint(9, {5, 4})}, FlatClipping(ClipNorm(1))),
               NotPerExample);
}

TEST(LstmLayer, TrainsWithFrozenWeights) {
  torch::manual_seed(4);
  TokenModel model;
  model.lstm->all_weights()[0].set_requires_grad(false);
  model.lstm->all_weights()[3].set_requires_grad(false);
  Clipper clipper(model.Parameters(), {.checked_examples = 0}, {});
  const LossFunction loss = [&](const Batch& batch) {
    return LossOf(std::get<0>(model.lstm(model.embedding(batch[0].t()))), 1);
  };
  const Batch batch = {torch::randint(9, {5, 4})};
  const FlatClipping policy(ClipNorm(0.5));
  const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
  const LoopResult loop = LoopClippedSum(loss, batch, clipper.parameters(), policy);
  EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-5);
}

TEST(LstmLayer, TakesWeightsThatAreComputedFromParameters) {
  torch::manual_seed(6);
  TokenModel model;
  const at::Tensor scale = torch::ones({16, 1}).requires_grad_();
  std::vector<NamedParameter> parameters = model.Parameters();
  parameters.push_back({"scale", scale});
  const LossFunction loss = [&](const Batch& batch) {
    const at::Tensor x = model.embedding(batch[0]).transpose(0, 1);
    const at::Tensor state = torch::zeros({1, x.size(1), 4});
    const auto weights = model.lstm->all_weights();
    return LossOf(std::get<0>(torch::lstm(x, {state, state},
                                          {weights[0] * scale, weights[1], weights[2], weights[3]},
                                          true, 1, 0.0, true, false, false)),
                  1);
  };
  Clipper clipper(parameters);
  const Batch batch = {torch::randint(9, {5, 4})};
  const FlatClipping policy(ClipNorm(0.5));
  const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
  const LoopResult loop = LoopClippedSum(loss, batch, clipper.parameters(), policy);
  EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-5);
}

TEST(RecurrentLayerRules, RefusePackedSequencesByName) {
  torch::manual_seed(9);
  TokenModel model;
  const LossFunction loss = [&](const Batch& batch) {
    const auto packed = nn::utils::rnn::pack_padded_sequence(
        model.embedding(batch[0]), torch::full({batch[0].size(0)}, 3), /*batch_first=*/true);
    return LossOf(
        std::get<0>(std::get<1>(model.lstm->forward_with_packed_input(packed))).transpose(0, 1));
  };
  Clipper clipper(model.Parameters());
  EXPECT_THROW(clipper.ClippedSum(loss, {torch::randint(9, {5, 4})}, FlatClipping(ClipNorm(1))),
               NotPerExample);
}

// With cuDNN on, they are refused: docs/gradients.md.
TEST(RecurrentLayerRules, TakeProjectionsAsLibtorchDecomposesThem) {
  torch::manual_seed(10);
  nn::LSTM lstm(nn::LSTMOptions(6, 6).batch_first(true).proj_size(4));
  std::vector<NamedParameter> parameters;
  for (const auto& p : lstm->named_parameters()) parameters.push_back({p.key(), p.value()});
  const LossFunction loss = [&](const Batch& b) {
    return LossOf(std::get<0>(lstm->forward(b[0])));
  };
  const Batch batch = {torch::randn({5, 7, 6})};
  Clipper clipper(parameters);
  const BoundedSum sum = clipper.ClippedSum(loss, batch, FlatClipping(ClipNorm(0.05)));
  EXPECT_LT(RelativeError(sum.gradients, OrdinarySum(loss, batch, parameters, 0.05)), 1e-4);
}

}  // namespace
}  // namespace sordino
