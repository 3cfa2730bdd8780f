#include "sordino/gradients/internal/isolation/recurrent_node.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <tuple>
#include <vector>

#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

struct LayersCase {
  std::int64_t layers = 1;
  bool bidirectional = false;
  bool biases = true;
  double dropout = 0;
};

struct Sample {
  RecurrentCall call;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> leaves;  // input, hidden, cell of an LSTM, weights
};

Sample MakeSample(RecurrentKind kind, const LayersCase& layers, const at::TensorOptions& options) {
  constexpr std::int64_t kTime = 6;
  constexpr std::int64_t kBatch = 4;
  constexpr std::int64_t kFeatures = 3;
  constexpr std::int64_t kHidden = 5;
  const auto leaf = [&](at::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kDouble).mul_(0.7).to(options).requires_grad_();
  };
  const std::int64_t directions = layers.bidirectional ? 2 : 1;
  const std::int64_t states = layers.layers * directions;
  const std::int64_t gates =
      kHidden * (kind == RecurrentKind::kLstm ? 4 : (kind == RecurrentKind::kGru ? 3 : 1));
  Sample sample;
  sample.call.kind = kind;
  sample.call.input = leaf({kTime, kBatch, kFeatures});
  sample.call.hidden = leaf({states, kBatch, kHidden});
  sample.leaves = {sample.call.input, sample.call.hidden};
  if (kind == RecurrentKind::kLstm) {
    sample.call.cell = leaf({states, kBatch, kHidden});
    sample.leaves.push_back(sample.call.cell);
  }
  for (std::int64_t k = 0; k < states; ++k) {
    const std::int64_t features = k < directions ? kFeatures : directions * kHidden;
    sample.weights.push_back(leaf({gates, features}));
    sample.weights.push_back(leaf({gates, kHidden}));
    if (!layers.biases) continue;
    sample.weights.push_back(leaf({gates}));
    sample.weights.push_back(leaf({gates}));
  }
  sample.leaves.insert(sample.leaves.end(), sample.weights.begin(), sample.weights.end());
  sample.call.arguments = {sample.weights, layers.biases,  layers.layers,
                           layers.dropout, /*train=*/true, layers.bidirectional};
  return sample;
}

std::vector<at::Tensor> Listed(const RecurrentOutputs& outputs) {
  std::vector<at::Tensor> list = {outputs.output, outputs.hidden};
  if (outputs.cell.defined()) list.push_back(outputs.cell);
  return list;
}

std::vector<at::Tensor> OfLibtorch(const RecurrentCall& call) {
  const RecurrentArguments& a = call.arguments;
  if (call.kind == RecurrentKind::kLstm) {
    const auto [output, hidden, cell] =
        torch::lstm(call.input, {call.hidden, call.cell}, a.weights, a.has_biases, a.layers,
                    a.dropout, a.train, a.bidirectional, false);
    return {output, hidden, cell};
  }
  const auto run = call.kind == RecurrentKind::kGru       ? at::_ops::gru_input::call
                   : call.kind == RecurrentKind::kTanhRnn ? at::_ops::rnn_tanh_input::call
                                                          : at::_ops::rnn_relu_input::call;
  const auto [output, hidden] = run(call.input, call.hidden, a.weights, a.has_biases, a.layers,
                                    a.dropout, a.train, a.bidirectional, false);
  return {output, hidden};
}

at::Tensor LossOfOutputs(const std::vector<at::Tensor>& outputs) {
  at::Tensor loss = outputs[0].sin().sum();
  for (std::size_t k = 1; k < outputs.size(); ++k) {
    loss = loss + (outputs[k] * outputs[k].cos()).sum() * static_cast<double>(k);
  }
  return loss;
}

void ExpectLikeLibtorch(RecurrentKind kind, const LayersCase& layers,
                        const at::TensorOptions& options) {
  torch::manual_seed(2);
  const Sample sample = MakeSample(kind, layers, options);
  ASSERT_TRUE(HasRecurrentLayers(sample.call));
  torch::manual_seed(3);
  const std::vector<at::Tensor> found = Listed(RecurrentLayers(sample.call));
  torch::manual_seed(3);
  const std::vector<at::Tensor> expected = OfLibtorch(sample.call);
  // cuDNN adds up in an order of its own.
  const double float32 = options.device().is_cuda() ? 1e-4 : 1e-5;
  const double tolerance = options.dtype() == at::kDouble ? 1e-12 : float32;
  const std::string what = "kind " + std::to_string(static_cast<int>(kind)) + ", layers " +
                           std::to_string(layers.layers) + ", directions " +
                           std::to_string(layers.bidirectional ? 2 : 1);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    ASSERT_EQ(found[k].sizes(), expected[k].sizes()) << what;
    EXPECT_LT(RelativeError({found[k]}, {expected[k]}), tolerance) << what << ", output " << k;
  }
  // Of all outputs, and of each alone.
  for (std::size_t k = 0; k <= found.size(); ++k) {
    const auto gradients = [&](const std::vector<at::Tensor>& outputs) {
      const at::Tensor loss = k < outputs.size() ? outputs[k].sin().sum() : LossOfOutputs(outputs);
      return torch::autograd::grad({loss}, sample.leaves, {}, /*retain_graph=*/true,
                                   /*create_graph=*/false, /*allow_unused=*/true);
    };
    const std::vector<at::Tensor> ours = gradients(found);
    const std::vector<at::Tensor> theirs = gradients(expected);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (!theirs[i].defined()) continue;
      ASSERT_TRUE(ours[i].defined()) << what << ", leaf " << i;
      EXPECT_LT(RelativeError({ours[i]}, {theirs[i]}), tolerance)
          << what << ", output " << k << ", leaf " << i;
    }
  }
}

constexpr RecurrentKind kKinds[] = {RecurrentKind::kReluRnn, RecurrentKind::kTanhRnn,
                                    RecurrentKind::kLstm, RecurrentKind::kGru};

TEST(RecurrentNodes, HaveTheValuesAndGradientsOfLibtorchsLayers) {
  for (const RecurrentKind kind : kKinds) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      for (const LayersCase& layers :
           {LayersCase{}, LayersCase{.biases = false}, LayersCase{.bidirectional = true},
            LayersCase{.layers = 3}, LayersCase{.layers = 2, .bidirectional = true},
            LayersCase{.layers = 2, .bidirectional = true, .biases = false, .dropout = 0.4}}) {
        ExpectLikeLibtorch(kind, layers, type);
      }
    }
  }
}

TEST(RecurrentNodes, HaveTheValuesAndGradientsOfLibtorchsLayersOnCuda) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  const bool tf32 = at::globalContext().allowTF32CuDNN();
  at::globalContext().setAllowTF32CuDNN(false);
  for (const bool cudnn : {true, false}) {
    at::globalContext().setUserEnabledCuDNN(cudnn);
    for (const RecurrentKind kind : kKinds) {
      for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
        for (const LayersCase& layers :
             {LayersCase{}, LayersCase{.biases = false}, LayersCase{.bidirectional = true},
              LayersCase{.layers = 3}, LayersCase{.layers = 2, .bidirectional = true}}) {
          ExpectLikeLibtorch(kind, layers, at::TensorOptions(at::kCUDA).dtype(type));
        }
      }
    }
  }
  at::globalContext().setUserEnabledCuDNN(true);
  at::globalContext().setAllowTF32CuDNN(tf32);
}

TEST(RecurrentNodes, RecordNothingWithoutNeed) {
  torch::manual_seed(4);
  const Sample sample = MakeSample(RecurrentKind::kGru, {}, at::kDouble);
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(RecurrentLayers(sample.call).output.requires_grad());
}

TEST(RecurrentNodes, RefuseSecondDerivatives) {
  torch::manual_seed(5);
  const Sample sample = MakeSample(RecurrentKind::kGru, {}, at::kDouble);
  const at::Tensor loss = LossOfOutputs(Listed(RecurrentLayers(sample.call)));
  EXPECT_THROW(torch::autograd::grad({loss}, sample.leaves, {}, true, /*create_graph=*/true),
               NotPerExample);
}

TEST(RecurrentNodes, AreNotForProjectionsMixedTypesOrWrongStates) {
  torch::manual_seed(6);
  Sample sample = MakeSample(RecurrentKind::kLstm, {}, at::kDouble);
  EXPECT_TRUE(HasRecurrentLayers(sample.call));
  std::vector<at::Tensor> weights = sample.weights;
  weights.push_back(torch::randn({2, 5}, torch::kDouble));
  RecurrentCall projected = sample.call;
  projected.arguments.weights = weights;
  EXPECT_FALSE(HasRecurrentLayers(projected));
  RecurrentCall mixed = sample.call;
  mixed.hidden = mixed.hidden.detach().to(at::kFloat);
  EXPECT_FALSE(HasRecurrentLayers(mixed));
  RecurrentCall wrong = sample.call;
  wrong.hidden = torch::zeros({2, 4, 5}, torch::kDouble);
  EXPECT_FALSE(HasRecurrentLayers(wrong));
}

}  // namespace
}  // namespace sordino
