// Layers made of several operations, shared and viewed parameters, other number types and script
// modules, each against the loop that runs example by example.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/script_model.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

TEST(RecurrentLayers, EqualTheLoop) {
  for (const std::string kind : {"rnn", "gru", "lstm"}) {
    for (const bool batch_first : {false, true}) {
      ExpectAgreesWithLoop(kind, RecurrentModel(kind, batch_first, 1, false), {.batches = {1, 4}});
    }
    ExpectAgreesWithLoop(kind + ", two layers, both directions",
                         RecurrentModel(kind, true, 2, true), {.batches = {3}});
  }
}

TEST(RecurrentLayers, CellsInALoopEqualTheLoop) {
  for (const std::string kind : {"gru", "lstm"}) {
    ExpectAgreesWithLoop(kind + " cell", RecurrentCellModel(kind), {.batches = {1, 4}});
  }
}

TEST(AttentionLayers, EqualTheLoop) {
  for (const bool separate : {false, true}) {
    for (const bool bias_kv : {false, true}) {
      ExpectAgreesWithLoop("multi-head attention", MultiHeadAttentionModel(separate, bias_kv),
                           {.batches = {1, 4}});
    }
  }
  for (const bool batch_first : {false, true}) {
    ExpectAgreesWithLoop("transformer", TransformerModel(batch_first), {.batches = {1, 3}});
  }
}

TEST(AttentionLayers, ScaledDotProductAttentionWithAPackedProjectionEqualsTheLoop) {
  ExpectAgreesWithLoop(
      "packed projection",
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("p.weight", {12, 4});
        const at::Tensor b = m.Parameter("p.bias", {12});
        const at::Tensor out = m.Parameter("o.weight", {4, 4});
        m.Input({3, 4});
        return [=](const Batch& x) {
          const std::int64_t n = x[0].size(0);
          const auto parts = at::linear(x[0], w, b).view({n, 3, 3, 2, 2}).permute({2, 0, 3, 1, 4});
          const at::Tensor y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
          return LossOf(at::linear(y.transpose(1, 2).reshape({n, 3, 4}), out));
        };
      },
      {.batches = {1, 4}});
}

TEST(ConvolutionalModels, WithReluInPlaceEqualTheLoop) {
  ExpectAgreesWithLoop("convolutional model", ConvolutionalModel(), {.batches = {0, 1, 4}});
}

TEST(Adapters, WithAFrozenBaseEqualTheLoopAndLeaveTheBaseOut) {
  const ModelFunction adapted = [](ModelMaker& m) {
    const at::Tensor base = m.Frozen("base.weight", {4, 4});
    const at::Tensor a = m.Parameter("lora.a", {2, 4});
    const at::Tensor b = m.Parameter("lora.b", {4, 2});
    m.Input({3, 4});
    return [=](const Batch& x) {
      return LossOf(at::linear(x[0], base) + at::linear(at::linear(x[0], a), b) * 0.5);
    };
  };
  ExpectAgreesWithLoop("adapter", adapted);
  const TestModel model = MakeModel(adapted, at::kFloat);
  Clipper clipper(model.parameters);
  ASSERT_EQ(clipper.parameters().size(), 2U);
  EXPECT_EQ(clipper.parameters()[0].name, "lora.a");
}

TEST(SharedParameters, CrossTermsOfALayerThatIsUsedTwiceAreInTheNorm) {
  ExpectAgreesWithLoop("the same linear twice", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {4, 4});
    const at::Tensor b = m.Parameter("l.bias", {4});
    m.Input({3, 4});
    return [=](const Batch& x) { return LossOf(at::linear(at::linear(x[0], w, b).tanh(), w, b)); };
  });
  ExpectAgreesWithLoop("one kernel in two convolutions", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("c.weight", {2, 2, 3, 3});
    const at::Tensor b = m.Parameter("c.bias", {2});
    m.Input({2, 5, 5});
    return [=](const Batch& x) {
      return LossOf(at::conv2d(at::conv2d(x[0], w, b, 1, 1).tanh(), w, b));
    };
  });
  ExpectAgreesWithLoop("one scale in two norms", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4}, 0.2, 1);
    m.Input({3, 4});
    return [=](const Batch& x) {
      return LossOf(at::layer_norm(at::layer_norm(x[0], {4}, w).tanh(), {4}, w) * w);
    };
  });
}

TEST(SharedParameters, EveryUseOfAParameterIsCounted) {
  // Uses of different kinds, so that no two of them are taken together.
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {4, 4});
        m.Input({4});
        return [=](const Batch& x) {
          return LossOf(at::linear(x[0], w) * w.select(0, 1) + at::matmul(x[0], w).tanh());
        };
      },
      at::kDouble);
  const Batch batch = model.batch(3);
  const auto policy = HalfClippedFlat(model, batch);
  Clipper clipper(model.parameters, {.checked_examples = 0});
  const LoopResult loop = LoopClippedSum(model.loss, batch, clipper.parameters(), *policy);
  EXPECT_LT(RelativeError(clipper.ClippedSum(model.loss, batch, *policy).gradients, loop.sum),
            1e-12);
  EXPECT_TRUE(at::allclose(clipper.Norms(model.loss, batch, *policy), loop.norms, 1e-12, 0));
}

TEST(SharedParameters, EmbeddingTiedToTheOutputLayerEqualsTheLoop) {
  ExpectAgreesWithLoop("tied embedding", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {6, 4});
    m.Tokens(6, {5});
    return [=](const Batch& x) {
      return LossOf(at::linear(at::embedding(table, x[0]).tanh(), table));
    };
  });
}

// A table that multiplies too, in every order and orientation. Tokens of an example repeat, so that
// rows of lookups meet in one entry.
TEST(SharedParameters, TablesThatMultiplyEqualTheLoop) {
  ExpectAgreesWithLoop("one row of products", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {6, 4});
    m.Tokens(6, {5});
    return [=](const Batch& x) {
      return LossOf(at::linear(at::embedding(table, x[0]).mean(1).tanh(), table));
    };
  });
  ExpectAgreesWithLoop("products first, by the transpose", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {6, 4});
    m.Input({3, 6});
    m.Tokens(6, {3});
    return [=](const Batch& x) {
      return LossOf(at::matmul(x[0], table).tanh() * at::embedding(table, x[1]));
    };
  });
  ExpectAgreesWithLoop("padding, and two products", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {5, 5});
    m.Tokens(5, {4});
    return [=](const Batch& x) {
      const at::Tensor first = at::linear(at::embedding(table, x[0], 2).tanh(), table);
      return LossOf(at::matmul(first.tanh(), table));
    };
  });
  ExpectAgreesWithLoop("two lookups and a product", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {6, 4});
    m.Tokens(6, {5});
    m.Tokens(6, {5});
    return [=](const Batch& x) {
      const at::Tensor both = at::embedding(table, x[0]) * at::embedding(table, x[1]);
      return LossOf(at::linear(both.tanh(), table));
    };
  });
  ExpectAgreesWithLoop("a bag and a product", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {6, 4});
    m.Tokens(6, {5});
    return [=](const Batch& x) {
      const at::Tensor bag =
          std::get<0>(at::embedding_bag(table, x[0].reshape({-1}), at::arange(x[0].size(0)) * 5));
      return LossOf(at::linear(bag.tanh(), table));
    };
  });
}

// Both parts of the gradient cancel but for a hundredth of a thousandth of their size: the norm is
// that of the difference, or the example is limited by how much its terms cancel.
TEST(SharedParameters, PartsOfATiedTableThatCancelStayWithinTheSensitivity) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor table = m.Parameter("e.weight", {6, 4});
        m.Tokens(6, {1});
        return [=](const Batch& x) {
          const at::Tensor token = x[0].unsqueeze(-1).eq(at::arange(6)).to(table.scalar_type());
          const at::Tensor looked_up = at::embedding(table, x[0]);
          const at::Tensor product = at::matmul(token, table);
          return (1e3 * (looked_up - (1 - 1e-5) * product)).sum({1, 2});
        };
      },
      at::kFloat);
  const Batch batch = model.batch(4);
  const FlatClipping policy(ClipNorm(1e-3));
  for (const NormMethod norms :
       {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
    // Rounding is larger than the gradient: the check would refuse it.
    Clipper clipper(model.parameters, {.norms = norms, .checked_examples = 0});
    const BoundedSum all = clipper.ClippedSum(model.loss, batch, policy);
    for (std::int64_t i = 0; i < 4; ++i) {
      const BoundedSum one = clipper.ClippedSum(model.loss, Slice(batch, i, i + 1), policy);
      EXPECT_LE(at::linalg_vector_norm(one.gradients[0]).item<double>(), all.sensitivity.value());
      EXPECT_GT(at::linalg_vector_norm(one.gradients[0]).item<double>(), 0);
    }
  }
}

TEST(SharedParameters, UnderTwoNamesAreOneParameter) {
  TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor table = m.Parameter("e.weight", {6, 4});
        m.Tokens(6, {5});
        return [=](const Batch& x) {
          return LossOf(at::linear(at::embedding(table, x[0]).tanh(), table));
        };
      },
      at::kDouble);
  model.parameters.push_back({"output.weight", model.parameters[0].value});
  Clipper clipper(model.parameters);
  ASSERT_EQ(clipper.parameters().size(), 1U);
  const Batch batch = model.batch(3);
  const FlatClipping policy(ClipNorm(0.5));
  const LoopResult loop = LoopClippedSum(model.loss, batch, clipper.parameters(), policy);
  EXPECT_LT(RelativeError(clipper.ClippedSum(model.loss, batch, policy).gradients, loop.sum),
            1e-12);
}

TEST(SharedParameters, AMatrixAndItsTransposeEqualTheLoop) {
  ExpectAgreesWithLoop("autoencoder", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    m.Input({2, 4});
    return [=](const Batch& x) { return LossOf(at::linear(at::linear(x[0], w).tanh(), w.t())); };
  });
  ExpectAgreesWithLoop("square autoencoder", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {4, 4});
    m.Input({4});
    return [=](const Batch& x) {
      return LossOf(at::linear(at::matmul(x[0], w).tanh(), w) + at::linear(x[0], w));
    };
  });
}

TEST(SharedParameters, OneTableInTwoLookupsEqualsTheLoop) {
  ExpectAgreesWithLoop("two lookups of different padding", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {4, 3});
    m.Tokens(4, {5});
    m.Tokens(4, {5});
    return [=](const Batch& x) {
      return LossOf(at::embedding(table, x[0], 1).tanh() * at::embedding(table, x[1]));
    };
  });
  ExpectAgreesWithLoop("a lookup and a bag", [](ModelMaker& m) {
    const at::Tensor table = m.Parameter("e.weight", {4, 3});
    m.Tokens(4, {5});
    return [=](const Batch& x) {
      const std::int64_t n = x[0].size(0);
      const at::Tensor bag = std::get<0>(at::embedding_bag(
          table, x[0].reshape({-1}), at::arange(n) * 5, false, 0, false, {}, false, -1));
      return LossOf(at::embedding(table, x[0]).sum(1) * bag);
    };
  });
}

TEST(ViewsOfParameters, SlicesThatOverlapAddUp) {
  ExpectAgreesWithLoop("slices that overlap", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {5, 4});
    m.Input({3, 4});
    return [=](const Batch& x) {
      return LossOf(at::linear(x[0], w.slice(0, 0, 3)) + at::linear(x[0], w.slice(0, 2, 5)));
    };
  });
}

TEST(ViewsOfParameters, EqualTheLoop) {
  ExpectAgreesWithLoop("chunks, select, unbind", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {6, 4});
    const at::Tensor s = m.Parameter("s", {3, 2});
    m.Input({3, 4});
    return [=](const Batch& x) {
      const auto chunks = w.chunk(3);
      const auto rows = s.unbind(0);
      at::Tensor y = at::linear(x[0], chunks[0]) * rows[0] + at::linear(x[0], chunks[2]);
      return LossOf(y * s.select(1, 1).select(0, 0) + rows[2]);
    };
  });
  ExpectAgreesWithLoop("views, transposes, permutations", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {2, 3, 4});
    m.Input({2, 4});
    return [=](const Batch& x) {
      const at::Tensor first = at::linear(x[0], w.view({6, 4}));
      const at::Tensor second = at::matmul(x[0], w.permute({2, 0, 1}).reshape({4, 6}));
      return LossOf(first * second + w.select(0, 0).t().reshape({-1}).slice(0, 0, 12, 2));
    };
  });
  ExpectAgreesWithLoop("split of unequal sizes", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {6, 4});
    m.Input({4});
    return [=](const Batch& x) {
      const auto parts = w.split_with_sizes({1, 3, 2});
      return LossOf(at::cat({at::linear(x[0], parts[1]), at::linear(x[0], parts[2])}, 1));
    };
  });
}

TEST(CastsOfParameters, EqualTheLoop) {
  ExpectAgreesWithLoop("float64 computation on the parameter's copy", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    const at::Tensor b = m.Parameter("l.bias", {3});
    m.Input({2, 4});
    return [=](const Batch& x) {
      return LossOf(at::linear(x[0].to(at::kDouble), w.to(at::kDouble), b.to(at::kDouble)));
    };
  });
  ExpectAgreesWithLoop("transposed and cast", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    m.Input({2, 3});
    return [=](const Batch& x) {
      return LossOf(at::linear(x[0].to(at::kDouble), w.t().to(at::kDouble)));
    };
  });
}

// As models do that compute their loss in float32 whatever they are of.
TEST(CastsOfParameters, AFloat64ModelMayHaveAFloat32Loss) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {3, 4});
        const at::Tensor b = m.Parameter("l.bias", {3});
        m.Input({2, 4});
        return [=](const Batch& x) { return LossOf(at::linear(x[0], w, b).to(at::kFloat)); };
      },
      at::kDouble);
  const FlatClipping policy(ClipNorm(1));
  const Batch batch = model.batch(5);
  Clipper clipper(model.parameters);
  const BoundedSum sum = clipper.ClippedSum(model.loss, batch, policy);
  const LoopResult loop = LoopClippedSum(model.loss, batch, model.parameters, policy);
  for (std::size_t k = 0; k < loop.sum.size(); ++k) {
    EXPECT_LT(NormOf({sum.gradients[k] - loop.sum[k]}), 1e-5 * NormOf({loop.sum[k]}));
  }
}

TEST(UnreachedParameters, GiveZero) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {3, 4});
        m.Parameter("unused.weight", {2, 2});
        m.Input({4});
        return [=](const Batch& x) { return LossOf(at::linear(x[0], w)); };
      },
      at::kDouble);
  Clipper clipper(model.parameters);
  const BoundedSum sum = clipper.ClippedSum(model.loss, model.batch(3), FlatClipping(ClipNorm(1)));
  EXPECT_TRUE(sum.gradients[1].equal(at::zeros({2, 2}, at::kDouble)));
  EXPECT_GT(NormOf({sum.gradients[0]}), 0);
}

TEST(UnreachedParameters, BehindAMultiplicationByZeroAgreeWithTheLoop) {
  ExpectAgreesWithLoop("zero gradient", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    const at::Tensor v = m.Parameter("v.weight", {3, 4});
    m.Input({4});
    return [=](const Batch& x) {
      return LossOf(at::linear(x[0], w) + at::linear(x[0], v).relu() * 0);
    };
  });
}

TEST(NarrowTypes, HaveSumsInFloat32ThatAgreeWithTheLoop) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const TestModel model = MakeModel(
        [](ModelMaker& m) {
          const at::Tensor w = m.Parameter("l.weight", {5, 4});
          const at::Tensor b = m.Parameter("l.bias", {5});
          const at::Tensor n = m.Parameter("n.weight", {5}, 0.2, 1);
          const at::Tensor p = m.Parameter("p", {1, 3, 5});
          m.Input({3, 4});
          return [=](const Batch& x) {
            return LossOf(at::layer_norm(at::linear(x[0], w, b) + p, {5}, n)).to(at::kFloat);
          };
        },
        type);
    const Batch batch = model.batch(6);
    const FlatClipping policy(ClipNorm(1));
    for (const NormMethod method : {NormMethod::kMaterialise, NormMethod::kGhost}) {
      Clipper clipper(model.parameters, {.norms = method});
      const BoundedSum sum = clipper.ClippedSum(model.loss, batch, policy);
      const LoopResult loop = LoopClippedSum(model.loss, batch, clipper.parameters(), policy);
      EXPECT_LT(RelativeError(sum.gradients, loop.sum), 0.03);
      for (const at::Tensor& gradient : sum.gradients) EXPECT_EQ(gradient.dtype(), at::kFloat);
      const at::Tensor norms = clipper.Norms(model.loss, batch, policy);
      EXPECT_EQ(norms.dtype(), at::kDouble);
      EXPECT_TRUE(at::allclose(norms, loop.norms, 0.03));
    }
  }
}

constexpr const char* kScript = R"(
def forward(self, x):
    h = torch.tanh(torch.linear(x, self.w, self.b))
    h = torch.layer_norm(h, [5], self.n)
    return torch.sum(torch.linear(torch.relu(h * self.n), self.w.t()), dim=1)
)";

TEST(ScriptModels, FromAFileEqualTheLoopHoweverOftenTheyRan) {
  torch::jit::Module module("scripted");
  at::manual_seed(3);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  module.register_parameter("w", at::randn({5, 4}, options).requires_grad_(true), false);
  module.register_parameter("b", at::randn({5}, options).requires_grad_(true), false);
  module.register_parameter("n", at::randn({5}, options).requires_grad_(true), false);
  module.define(kScript);
  const TestFolder folder;
  const std::filesystem::path file = folder / "model.pt";
  module.save(file.string());

  const ScriptModel model = LoadScriptModel(file, at::kCPU);
  ASSERT_EQ(model.Parameters().size(), 3U);
  const LossFunction loss = [=](const Batch& b) { return LossOf(model.Forward(b)); };
  Clipper clipper(model.Parameters());
  for (int run = 0; run < 6; ++run) {
    const Batch batch = {at::randn({4, 3, 4}, options)};
    const FlatClipping policy(ClipNorm(2));
    const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
    const LoopResult loop = LoopClippedSum(loss, batch, clipper.parameters(), policy);
    EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-12) << "run " << run;
  }
}

TEST(ScriptModels, AMissingFileIsAnErrorThatNamesIt) {
  try {
    LoadScriptModel("no-such-model.pt", at::kCPU);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'no-such-model.pt' does not exist"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace sordino
