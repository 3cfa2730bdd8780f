#include "sordino/gradients/internal/terms/recurrent_layer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/flat_clipping.h"
#include "sordino/gradients/internal/terms/use_rule.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

namespace nn = torch::nn;

struct Shape {
  std::int64_t batch;
  std::int64_t time;
};

// The layer in float64, where libtorch takes it apart into operations of its own, and where the
// gradients of the gates can be seen as those of an addend to the bias of each row.
struct Reference {
  LstmLayer layer;
  LstmOutputGradients arriving;
  std::vector<at::Tensor> gradients;  // input, W_ih, W_hh, b_ih, h_0, c_0
};

Reference MakeReference(Shape shape, bool reverse, bool bias, bool through_output,
                        bool through_states) {
  constexpr std::int64_t kFeatures = 3;
  constexpr std::int64_t kHidden = 5;
  torch::manual_seed(11);
  const auto leaf = [](at::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kDouble).requires_grad_();
  };
  const at::Tensor input = leaf({shape.batch, shape.time, kFeatures});
  const at::Tensor input_weight = leaf({4 * kHidden, kFeatures});
  const at::Tensor hidden_weight = leaf({4 * kHidden, kHidden});
  const at::Tensor input_bias = leaf({4 * kHidden});
  const at::Tensor hidden_bias = leaf({4 * kHidden});
  const at::Tensor hidden = leaf({1, shape.batch, kHidden});
  const at::Tensor cell = leaf({1, shape.batch, kHidden});
  std::vector<at::Tensor> weights = {input_weight, hidden_weight};
  if (bias) weights.insert(weights.end(), {input_bias, hidden_bias});
  const at::Tensor entering = reverse ? input.flip(1) : input;
  auto [output, last_hidden, last_cell] =
      torch::lstm(entering, {hidden, cell}, weights, bias, /*num_layers=*/1, /*dropout=*/0.0,
                  /*train=*/true, /*bidirectional=*/false, /*batch_first=*/true);
  if (reverse) output = output.flip(1);

  Reference reference;
  at::Tensor loss = torch::zeros({}, torch::kDouble);
  if (through_output) {
    reference.arriving.output = torch::randn_like(output);
    loss = loss + (output * reference.arriving.output).sum();
  }
  if (through_states) {
    reference.arriving.last_hidden = torch::randn({shape.batch, kHidden}, torch::kDouble);
    reference.arriving.last_cell = torch::randn({shape.batch, kHidden}, torch::kDouble);
    loss = loss + (last_hidden[0] * reference.arriving.last_hidden).sum() +
           (last_cell[0] * reference.arriving.last_cell).sum();
  }
  std::vector<at::Tensor> leaves = {input, input_weight, hidden_weight, hidden, cell};
  if (bias) leaves.push_back(input_bias);
  reference.gradients = torch::autograd::grad({loss}, leaves);
  reference.layer = {.input = input.detach(),
                     .input_weight = input_weight.detach(),
                     .hidden_weight = hidden_weight.detach(),
                     .bias = bias ? (input_bias + hidden_bias).detach() : at::Tensor(),
                     .first_hidden = hidden.detach()[0],
                     .first_cell = cell.detach()[0],
                     .output = output.detach(),
                     .reverse = reverse};
  return reference;
}

TEST(LstmBackward, GivesTheGradientsOfTheDecomposedLayer) {
  for (const Shape shape : {Shape{1, 1}, Shape{1, 7}, Shape{4, 1}, Shape{5, 7}}) {
    for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const bool reverse = (flags & 1) != 0;
      const bool bias = (flags & 2) != 0;
      const bool through_states = (flags & 4) != 0;
      const Reference reference =
          MakeReference(shape, reverse, bias, /*through_output=*/true, through_states);
      const LstmRows rows = RowsOf(reference.layer);
      const LstmGradients found = LstmBackward(reference.layer, rows, reference.arriving);
      std::vector<at::Tensor> gradients = {
          LstmInputGradient(reference.layer, found), found.gates.t().mm(rows.input),
          found.gates.t().mm(rows.previous_hidden), found.first_hidden.unsqueeze(0),
          found.first_cell.unsqueeze(0)};
      if (bias) gradients.push_back(found.gates.sum(0));
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        EXPECT_LT(RelativeError({gradients[k]}, {reference.gradients[k]}), 1e-12)
            << "gradient " << k << ", batch " << shape.batch << ", time " << shape.time
            << ", flags " << flags;
      }
    }
  }
}

TEST(LstmBackward, TakesGradientsOfTheLastStatesAlone) {
  const Reference reference = MakeReference({3, 6}, false, true, false, true);
  const LstmGradients found =
      LstmBackward(reference.layer, RowsOf(reference.layer), reference.arriving);
  EXPECT_LT(RelativeError({LstmInputGradient(reference.layer, found)}, {reference.gradients[0]}),
            1e-12);
}

TEST(LstmBackward, AcceptsAnExpandedGradient) {
  Reference reference = MakeReference({3, 6}, false, true, true, false);
  const LstmRows rows = RowsOf(reference.layer);
  const at::Tensor row = torch::randn({3, 1, 5}, torch::kDouble);
  reference.arriving.output = row.expand({3, 6, 5});
  const at::Tensor expanded = LstmBackward(reference.layer, rows, reference.arriving).gates;
  reference.arriving.output = row.expand({3, 6, 5}).contiguous();
  const at::Tensor copied = LstmBackward(reference.layer, rows, reference.arriving).gates;
  EXPECT_TRUE(expanded.equal(copied));
}

TEST(LstmBackward, KeepsASequenceWithInfinitiesToItself) {
  Reference reference = MakeReference({3, 6}, false, true, true, false);
  const LstmRows rows = RowsOf(reference.layer);
  const at::Tensor clean = LstmBackward(reference.layer, rows, reference.arriving).gates;
  reference.arriving.output[1][4][2] = std::numeric_limits<double>::infinity();
  const at::Tensor dirty = LstmBackward(reference.layer, rows, reference.arriving).gates;
  EXPECT_FALSE(dirty.view({3, 6, -1})[1].isfinite().all().item<bool>());
  for (const std::int64_t other : {0, 2}) {
    EXPECT_TRUE(dirty.view({3, 6, -1})[other].equal(clean.view({3, 6, -1})[other]));
  }
}

// float32 models, whose LSTM is one node a layer and direction.
using Forward = std::function<at::Tensor(nn::LSTM&, const at::Tensor& x)>;

nn::LSTMOptions Options(std::int64_t layers = 1, bool bidirectional = false,
                        bool batch_first = true, bool bias = true) {
  return nn::LSTMOptions(6, 6)
      .num_layers(layers)
      .bidirectional(bidirectional)
      .batch_first(batch_first)
      .bias(bias);
}

// `forward` takes [batch, time, 6] and gives what LossOf makes a loss of.
void ExpectLikeLoop(const std::string& what, const nn::LSTMOptions& options, const Forward& forward,
                    const std::vector<Shape>& shapes = {{2, 1}, {5, 7}}) {
  for (const Shape shape : shapes) {
    const auto function = [&](ModelMaker& m) -> LossFunction {
      m.Input({shape.time, 6});
      nn::LSTM lstm(options);
      const at::Tensor before = m.Parameter("before", {6, 6});
      std::vector<NamedParameter> parameters;
      for (const auto& p : lstm->named_parameters()) parameters.push_back({p.key(), p.value()});
      m.Adopt(parameters);
      return [lstm, before, forward](const Batch& batch) {
        nn::LSTM copy = lstm;
        return LossOf(forward(copy, at::matmul(batch[0], before)));
      };
    };
    ExpectAgreesWithLoop(what + " on " + std::to_string(shape.time) + " steps", function,
                         {.batches = {shape.batch}, .types = {at::kFloat}});
  }
}

at::Tensor Output(nn::LSTM& lstm, const at::Tensor& x) { return std::get<0>(lstm->forward(x)); }

TEST(FusedLstm, AgreesWithTheLoop) {
  ExpectLikeLoop("lstm", Options(), Output, {{1, 1}, {1, 7}, {2, 1}, {2, 7}, {5, 7}});
}

TEST(FusedLstm, AgreesWithTheLoopInLayersAndDirections) {
  ExpectLikeLoop("two layers, two directions", Options(2, true), Output, {{1, 7}, {5, 7}});
}

TEST(FusedLstm, AgreesWithTheLoopWithoutBias) {
  ExpectLikeLoop("no bias", Options(1, true, true, false), Output);
}

TEST(FusedLstm, AgreesWithTheLoopInTimeMajorOrder) {
  ExpectLikeLoop("time first", Options(2, false, false), [](nn::LSTM& lstm, const at::Tensor& x) {
    return Output(lstm, x.transpose(0, 1)).transpose(0, 1);
  });
}

TEST(FusedLstm, AgreesWithTheLoopForTheLastStepAlone) {
  ExpectLikeLoop("last step", Options(2),
                 [](nn::LSTM& lstm, const at::Tensor& x) { return Output(lstm, x).select(1, -1); });
}

TEST(FusedLstm, AgreesWithTheLoopForTheLastStatesAlone) {
  ExpectLikeLoop("last hidden", Options(2, true), [](nn::LSTM& lstm, const at::Tensor& x) {
    return std::get<0>(std::get<1>(lstm->forward(x))).transpose(0, 1);
  });
  ExpectLikeLoop("last cell", Options(), [](nn::LSTM& lstm, const at::Tensor& x) {
    return std::get<1>(std::get<1>(lstm->forward(x))).transpose(0, 1);
  });
}

TEST(FusedLstm, AgreesWithTheLoopForOutputAndStates) {
  ExpectLikeLoop("all outputs", Options(1, true), [](nn::LSTM& lstm, const at::Tensor& x) {
    const auto [output, states] = lstm->forward(x);
    return torch::cat({output.mean(1), std::get<0>(states)[1], std::get<1>(states)[0]}, 1);
  });
}

TEST(FusedLstm, AgreesWithTheLoopFromGivenStates) {
  ExpectLikeLoop("given states", Options(1, true), [](nn::LSTM& lstm, const at::Tensor& x) {
    const at::Tensor start = torch::stack({x.mean(1).tanh(), x.select(1, 0)});
    return std::get<0>(lstm->forward(x.sigmoid(), std::make_tuple(start, start.sin())));
  });
}

TEST(FusedLstm, AgreesWithTheLoopInsideAResidual) {
  ExpectLikeLoop("residual", Options(2), [](nn::LSTM& lstm, const at::Tensor& x) {
    const at::Tensor y = x + Output(lstm, x);
    return y * Output(lstm, y);
  });
}

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
TEST(FusedLstm, RefusesToRunAlongTheBatch) {
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

TEST(FusedLstm, TrainsWithFrozenWeights) {
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

TEST(FusedLstm, TakesWeightsThatAreComputedFromParameters) {
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

class FusedCells : public testing::TestWithParam<std::string> {};

// The cells whose biases enter a fused kernel, one step after another.
TEST_P(FusedCells, AgreeWithTheLoopOnCuda) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  torch::manual_seed(7);
  const auto run = [](auto cell, auto step) {
    cell->to(torch::kCUDA);
    std::vector<NamedParameter> parameters;
    for (const auto& p : cell->named_parameters()) parameters.push_back({p.key(), p.value()});
    Clipper clipper(parameters, {.checked_examples = 0}, {});
    const Batch batch = {torch::randn({5, 7, 6}, torch::kCUDA)};
    const LossFunction loss = [&](const Batch& b) { return LossOf(step(cell, b[0])); };
    for (const double bound : {1e-2, 1e2}) {
      const FlatClipping policy{ClipNorm(bound)};
      const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
      const LoopResult loop = LoopClippedSum(loss, batch, clipper.parameters(), policy);
      EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-5);
    }
  };
  if (GetParam() == "lstm cell") {
    run(nn::LSTMCell(6, 4), [](nn::LSTMCell& cell, const at::Tensor& x) {
      auto state = cell->forward(x.select(1, 0));
      for (std::int64_t t = 1; t < x.size(1); ++t) state = cell->forward(x.select(1, t), state);
      return std::get<0>(state);
    });
  } else if (GetParam() == "gru cell") {
    run(nn::GRUCell(6, 4), [](nn::GRUCell& cell, const at::Tensor& x) {
      at::Tensor state = cell->forward(x.select(1, 0));
      for (std::int64_t t = 1; t < x.size(1); ++t) state = cell->forward(x.select(1, t), state);
      return state;
    });
  } else {
    at::globalContext().setUserEnabledCuDNN(false);
    const auto first = [](auto& net, const at::Tensor& x) { return std::get<0>(net->forward(x)); };
    if (GetParam() == "lstm without cudnn") {
      run(nn::LSTM(nn::LSTMOptions(6, 4).num_layers(2).batch_first(true)), first);
    } else {
      run(nn::GRU(nn::GRUOptions(6, 4).num_layers(2).batch_first(true)), first);
    }
    at::globalContext().setUserEnabledCuDNN(true);
  }
}

INSTANTIATE_TEST_SUITE_P(OfLibtorch, FusedCells,
                         testing::Values("lstm cell", "gru cell", "lstm without cudnn",
                                         "gru without cudnn"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) {
                             if (c == ' ') c = '_';
                           }
                           return name;
                         });

TEST(CudnnLstm, IsRefusedWithTheWayOut) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  nn::LSTM lstm(nn::LSTMOptions(6, 4).batch_first(true));
  lstm->to(torch::kCUDA);
  std::vector<NamedParameter> parameters;
  for (const auto& p : lstm->named_parameters()) parameters.push_back({p.key(), p.value()});
  Clipper clipper(parameters, {}, {});
  try {
    clipper.ClippedSum([&](const Batch& b) { return LossOf(Output(lstm, b[0])); },
                       {torch::randn({5, 7, 6}, torch::kCUDA)}, FlatClipping(ClipNorm(1)));
    FAIL() << "not refused";
  } catch (const NotPerExample& error) {
    EXPECT_NE(std::string(error.what()).find("setUserEnabledCuDNN(false)"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace sordino
