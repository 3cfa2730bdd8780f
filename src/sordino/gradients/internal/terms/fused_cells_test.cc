// The cells whose biases enter a fused kernel on CUDA (recurrent_rule.h).
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

namespace nn = torch::nn;

class FusedCells : public testing::TestWithParam<std::string> {};

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
    // Projections are not for the nodes of ours, and without cuDNN libtorch runs cells.
    at::globalContext().setUserEnabledCuDNN(false);
    run(nn::LSTM(nn::LSTMOptions(6, 4).num_layers(2).batch_first(true).proj_size(3)),
        [](nn::LSTM& net, const at::Tensor& x) { return std::get<0>(net->forward(x)); });
    at::globalContext().setUserEnabledCuDNN(true);
  }
}

INSTANTIATE_TEST_SUITE_P(OfLibtorch, FusedCells,
                         testing::Values("lstm cell", "gru cell", "projection without cudnn"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) {
                             if (c == ' ') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace sordino
