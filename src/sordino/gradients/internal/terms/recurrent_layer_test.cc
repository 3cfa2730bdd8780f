#include "sordino/gradients/internal/terms/recurrent_layer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "sordino/gradients/testing/gradients_test_support.h"
#include "sordino/kernels/lstm_kernels.h"

namespace sordino {
namespace {

struct LayerShape {
  std::int64_t batch;
  std::int64_t time;
};

struct LayerFlags {
  bool reverse = false;
  bool bias = true;
  bool through_output = true;
  bool through_states = false;
};

// The layer in float64, where libtorch takes it apart into operations of its own.
struct Reference {
  RecurrentLayer layer;
  RecurrentOutputGradients arriving;
  std::vector<at::Tensor> gradients;  // input, W_ih, W_hh, h_0, and, if any, c_0, b_ih, b_hh
};

constexpr std::int64_t kFeatures = 3;
constexpr std::int64_t kHidden = 5;

std::int64_t GatesOf(RecurrentKind kind) {
  if (kind == RecurrentKind::kLstm) return 4;
  return kind == RecurrentKind::kGru ? 3 : 1;
}

std::vector<at::Tensor> RunReference(RecurrentKind kind, const at::Tensor& input,
                                     const at::Tensor& hidden, const at::Tensor& cell,
                                     const std::vector<at::Tensor>& weights) {
  const bool bias = weights.size() > 2;
  if (kind == RecurrentKind::kLstm) {
    const auto [output, last_hidden, last_cell] =
        torch::lstm(input, {hidden, cell}, weights, bias, 1, 0.0, true, false, true);
    return {output, last_hidden, last_cell};
  }
  const auto run = kind == RecurrentKind::kGru       ? at::_ops::gru_input::call
                   : kind == RecurrentKind::kTanhRnn ? at::_ops::rnn_tanh_input::call
                                                     : at::_ops::rnn_relu_input::call;
  const auto [output, last_hidden] = run(input, hidden, weights, bias, 1, 0.0, true, false, true);
  return {output, last_hidden};
}

Reference MakeReference(RecurrentKind kind, LayerShape shape, LayerFlags flags) {
  torch::manual_seed(11);
  const auto leaf = [](at::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kDouble).requires_grad_();
  };
  const bool is_lstm = kind == RecurrentKind::kLstm;
  const std::int64_t gates = GatesOf(kind) * kHidden;
  const at::Tensor input = leaf({shape.batch, shape.time, kFeatures});
  const at::Tensor hidden = leaf({1, shape.batch, kHidden});
  const at::Tensor cell = is_lstm ? leaf({1, shape.batch, kHidden}) : at::Tensor();
  std::vector<at::Tensor> weights = {leaf({gates, kFeatures}), leaf({gates, kHidden})};
  if (flags.bias) weights.insert(weights.end(), {leaf({gates}), leaf({gates})});
  std::vector<at::Tensor> outputs =
      RunReference(kind, flags.reverse ? input.flip(1) : input, hidden, cell, weights);
  if (flags.reverse) outputs[0] = outputs[0].flip(1);

  Reference reference;
  at::Tensor loss = torch::zeros({}, torch::kDouble);
  if (flags.through_output) {
    reference.arriving.output = torch::randn_like(outputs[0]);
    loss = loss + (outputs[0] * reference.arriving.output).sum();
  }
  if (flags.through_states) {
    reference.arriving.last_hidden = torch::randn({shape.batch, kHidden}, torch::kDouble);
    loss = loss + (outputs[1][0] * reference.arriving.last_hidden).sum();
  }
  if (flags.through_states && is_lstm) {
    reference.arriving.last_cell = torch::randn({shape.batch, kHidden}, torch::kDouble);
    loss = loss + (outputs[2][0] * reference.arriving.last_cell).sum();
  }
  std::vector<at::Tensor> leaves = {input, weights[0], weights[1], hidden};
  if (is_lstm) leaves.push_back(cell);
  if (flags.bias) leaves.insert(leaves.end(), {weights[2], weights[3]});
  reference.gradients = torch::autograd::grad({loss}, leaves);
  reference.layer = {.kind = kind,
                     .input = input.detach(),
                     .input_weight = weights[0].detach(),
                     .hidden_weight = weights[1].detach(),
                     .input_bias = flags.bias ? weights[2].detach() : at::Tensor(),
                     .hidden_bias = flags.bias ? weights[3].detach() : at::Tensor(),
                     .first_hidden = hidden.detach()[0],
                     .first_cell = is_lstm ? cell.detach()[0] : at::Tensor(),
                     .output = outputs[0].detach(),
                     .reverse = flags.reverse};
  return reference;
}

// In the order of Reference::gradients.
std::vector<at::Tensor> GradientsOf(const RecurrentLayer& layer, const RecurrentRows& rows,
                                    const RecurrentGradients& found) {
  std::vector<at::Tensor> gradients = {
      RecurrentInputGradient(layer, found), found.input_gates.t().mm(rows.input),
      found.hidden_gates.t().mm(rows.previous_hidden), found.first_hidden.unsqueeze(0)};
  if (found.first_cell.defined()) gradients.push_back(found.first_cell.unsqueeze(0));
  if (layer.input_bias.defined()) {
    gradients.insert(gradients.end(), {found.input_gates.sum(0), found.hidden_gates.sum(0)});
  }
  return gradients;
}

using Backward = RecurrentGradients (*)(const RecurrentLayer&, const RecurrentRows&,
                                        const RecurrentOutputGradients&);

struct BackwardCase {
  std::string name;
  RecurrentKind kind;
  Backward run;
};

// What the threads of a GPU do, one after another.
class EntryByEntry : public LstmKernels {
 public:
  void Open(const LstmBuffers& buffers) const override {
    ForEach(buffers, [](const auto& entries, std::int64_t sequence, std::int64_t k) {
      entries.Open(sequence, k);
    });
  }
  void StepBack(const LstmBuffers& buffers, std::int64_t place) const override {
    ForEach(buffers, [place](const auto& entries, std::int64_t sequence, std::int64_t k) {
      entries.StepBack(sequence, k, place);
    });
  }

 private:
  template <typename Visit>
  static void ForEach(const LstmBuffers& buffers, const Visit& visit) {
    const auto all = [&](const auto& entries) {
      for (std::int64_t sequence = 0; sequence < entries.batch; ++sequence) {
        for (std::int64_t k = 0; k < entries.hidden; ++k) visit(entries, sequence, k);
      }
    };
    if (buffers.gates.scalar_type() == at::kDouble) {
      all(buffers.Entries<double>());
    } else {
      all(buffers.Entries<float>());
    }
  }
};

RecurrentGradients BackwardEntryByEntry(const RecurrentLayer& layer, const RecurrentRows& rows,
                                        const RecurrentOutputGradients& arriving) {
  return LstmBackwardByKernels(layer, rows, arriving, EntryByEntry());
}

class RecurrentBackwards : public testing::TestWithParam<BackwardCase> {
 protected:
  static Reference Make(LayerShape shape, LayerFlags flags) {
    return MakeReference(GetParam().kind, shape, flags);
  }
  static RecurrentGradients Run(const Reference& reference) {
    return GetParam().run(reference.layer, RowsOf(reference.layer), reference.arriving);
  }
};

TEST_P(RecurrentBackwards, GiveTheGradientsOfTheDecomposedLayer) {
  for (const LayerShape shape : {LayerShape{1, 1}, {1, 7}, {4, 1}, {5, 7}}) {
    for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7, 12, 13}) {
      const LayerFlags flags{.reverse = (bits & 1) != 0,
                             .bias = (bits & 2) == 0,
                             .through_output = (bits & 8) == 0,
                             .through_states = (bits & 4) != 0};
      const Reference reference = Make(shape, flags);
      const std::vector<at::Tensor> gradients =
          GradientsOf(reference.layer, RowsOf(reference.layer), Run(reference));
      ASSERT_EQ(gradients.size(), reference.gradients.size());
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        EXPECT_LT(RelativeError({gradients[k]}, {reference.gradients[k]}), 1e-12)
            << "gradient " << k << ", batch " << shape.batch << ", time " << shape.time
            << ", flags " << bits;
      }
    }
  }
}

void MoveTo(Reference& reference, const at::TensorOptions& options) {
  RecurrentLayer& layer = reference.layer;
  for (at::Tensor* tensor : {&layer.input, &layer.input_weight, &layer.hidden_weight,
                             &layer.input_bias, &layer.hidden_bias, &layer.first_hidden,
                             &layer.first_cell, &layer.output, &reference.arriving.output,
                             &reference.arriving.last_hidden, &reference.arriving.last_cell}) {
    if (tensor->defined()) *tensor = tensor->to(options);
  }
}

TEST_P(RecurrentBackwards, ComputeInFloat32) {
  Reference reference = Make({5, 7}, {.through_states = true});
  MoveTo(reference, at::kFloat);
  const std::vector<at::Tensor> gradients =
      GradientsOf(reference.layer, RowsOf(reference.layer), Run(reference));
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    ASSERT_EQ(gradients[k].scalar_type(), at::kFloat);
    EXPECT_LT(RelativeError({gradients[k]}, {reference.gradients[k]}), 1e-5) << k;
  }
}

// By our kernels, where they were built, and by operations.
TEST_P(RecurrentBackwards, ComputeOnCuda) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  if (GetParam().run == BackwardEntryByEntry) GTEST_SKIP() << "for the CPU";
  for (const bool reverse : {false, true}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      Reference reference = Make({67, 9}, {.reverse = reverse, .through_states = true});
      MoveTo(reference, at::TensorOptions(at::kCUDA).dtype(type));
      const std::vector<at::Tensor> gradients =
          GradientsOf(reference.layer, RowsOf(reference.layer), Run(reference));
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        EXPECT_LT(RelativeError({gradients[k].cpu()}, {reference.gradients[k]}),
                  type == at::kDouble ? 1e-12 : 1e-5)
            << k;
      }
    }
  }
}

TEST_P(RecurrentBackwards, AcceptAnExpandedGradient) {
  Reference reference = Make({3, 6}, {});
  const at::Tensor row = torch::randn({3, 1, kHidden}, torch::kDouble);
  reference.arriving.output = row.expand({3, 6, kHidden});
  const RecurrentGradients expanded = Run(reference);
  reference.arriving.output = row.expand({3, 6, kHidden}).contiguous();
  const RecurrentGradients copied = Run(reference);
  EXPECT_TRUE(expanded.input_gates.equal(copied.input_gates));
  EXPECT_TRUE(expanded.hidden_gates.equal(copied.hidden_gates));
}

TEST_P(RecurrentBackwards, ChangeNothingThatTheyAreGiven) {
  const Reference reference = Make({3, 6}, {.through_states = true});
  const RecurrentRows rows = RowsOf(reference.layer);
  const std::vector<at::Tensor> given = {rows.input,
                                         rows.previous_hidden,
                                         reference.arriving.output,
                                         reference.arriving.last_hidden,
                                         reference.layer.hidden_weight,
                                         reference.layer.first_hidden};
  std::vector<at::Tensor> before;
  before.reserve(given.size());
  for (const at::Tensor& tensor : given) before.push_back(tensor.clone());
  const RecurrentGradients first = GetParam().run(reference.layer, rows, reference.arriving);
  const RecurrentGradients again = GetParam().run(reference.layer, rows, reference.arriving);
  for (std::size_t k = 0; k < given.size(); ++k) EXPECT_TRUE(given[k].equal(before[k])) << k;
  EXPECT_TRUE(first.input_gates.equal(again.input_gates));
}

TEST_P(RecurrentBackwards, KeepASequenceWithInfinitiesToItself) {
  Reference reference = Make({3, 6}, {});
  const RecurrentGradients clean = Run(reference);
  reference.arriving.output[1][4][2] = std::numeric_limits<double>::infinity();
  reference.arriving.output[1][3][1] = std::numeric_limits<double>::quiet_NaN();
  const RecurrentGradients dirty = Run(reference);
  const auto by_example = [](const at::Tensor& rows) { return rows.view({3, 6, -1}); };
  EXPECT_FALSE(by_example(dirty.input_gates)[1].isfinite().all().item<bool>());
  for (const std::int64_t other : {0, 2}) {
    EXPECT_TRUE(by_example(dirty.input_gates)[other].equal(by_example(clean.input_gates)[other]));
    EXPECT_TRUE(by_example(dirty.hidden_gates)[other].equal(by_example(clean.hidden_gates)[other]));
    EXPECT_TRUE(dirty.first_hidden[other].equal(clean.first_hidden[other]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfKinds, RecurrentBackwards,
    testing::Values(BackwardCase{"Lstm", RecurrentKind::kLstm, RecurrentBackward},
                    BackwardCase{"LstmByOperations", RecurrentKind::kLstm,
                                 RecurrentBackwardByOperations},
                    BackwardCase{"LstmByKernels", RecurrentKind::kLstm, BackwardEntryByEntry},
                    BackwardCase{"Gru", RecurrentKind::kGru, RecurrentBackward},
                    BackwardCase{"TanhRnn", RecurrentKind::kTanhRnn, RecurrentBackward},
                    BackwardCase{"ReluRnn", RecurrentKind::kReluRnn, RecurrentBackward}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sordino
