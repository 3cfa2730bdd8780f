// Every rule against the loop that runs example by example: sums and norms, float64 and float32,
// batches of 0, 1 and 5, all norm methods, flat and layerwise clipping.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

using Sizes = std::vector<std::int64_t>;

// Rows of 3 and -3 at one entry cancel in the gradient, not in what rounding can do to it.
TEST(AbsoluteMass, CountsTheLookupsOfATiedTable) {
  const ExampleLayout layout{1, 2, 2};
  const Term lookup{.kind = TermKind::kLookup,
                    .a = at::tensor({1, 1, 0, 2}, at::kLong),
                    .b = at::tensor({3.0F, -3.0F, 0.5F, 0.25F}).unsqueeze(1),
                    .layout = layout,
                    .sizes = {4, 1}};
  const Term term{.kind = TermKind::kOuter,
                  .a = at::ones({4, 4}),
                  .b = at::ones({4, 1}),
                  .layout = layout,
                  .sizes = {4, 1},
                  .lookup = std::make_shared<const Term>(lookup)};
  EXPECT_TRUE(AbsoluteMass(term).equal(at::tensor({4.0 + 6.0, 4.0 + 0.75}, at::kDouble)));
}

TEST(LinearRule, EqualsTheLoopOnTwoToFiveDimensions) {
  const std::vector<Sizes> shapes = {{4}, {3, 4}, {2, 3, 4}, {2, 2, 3, 4}};
  for (const Sizes& shape : shapes) {
    for (const bool bias : {false, true}) {
      ExpectAgreesWithLoop("linear", [&](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {3, 4});
        const at::Tensor b = bias ? m.Parameter("l.bias", {3}) : at::Tensor();
        m.Input(shape);
        return [=](const Batch& x) { return LossOf(at::linear(x[0], w, b)); };
      });
    }
  }
}

TEST(LinearRule, CountsTheBiasInTheNorm) {
  // The bias alone decides: inputs are zero, so the weight has no gradient.
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {3, 4});
        const at::Tensor b = m.Parameter("l.bias", {3});
        m.Input({4});
        return [=](const Batch& x) { return LossOf(at::linear(x[0] * 0, w, b)); };
      },
      at::kDouble);
  const Batch batch = model.batch(3);
  const auto policy = HalfClippedFlat(model, batch);
  Clipper clipper(model.parameters);
  const at::Tensor norms = clipper.Norms(model.loss, batch, *policy);
  const LoopResult loop = LoopClippedSum(model.loss, batch, clipper.parameters(), *policy);
  EXPECT_GT(norms.min().item<double>(), 0);
  EXPECT_TRUE(at::allclose(norms, loop.norms, 1e-12, 0));
}

TEST(LinearRule, TakesInputsThatAreNotContiguous) {
  for (const bool bias : {false, true}) {
    ExpectAgreesWithLoop("strided", [&](ModelMaker& m) {
      const at::Tensor w = m.Parameter("l.weight", {3, 4});
      const at::Tensor b = bias ? m.Parameter("l.bias", {3}) : at::Tensor();
      m.Input({4, 6});
      return [=](const Batch& x) {
        return LossOf(at::linear(x[0].transpose(1, 2).slice(1, 0, 6, 2), w, b));
      };
    });
  }
}

TEST(MatrixProductRule, EqualsTheLoopOnEitherSide) {
  ExpectAgreesWithLoop("x w", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {4, 3});
    m.Input({2, 4});
    return [=](const Batch& x) { return LossOf(at::matmul(x[0], w)); };
  });
  ExpectAgreesWithLoop("w x^T", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {3, 4});
    m.Input({4});
    return [=](const Batch& x) { return LossOf(at::matmul(w, x[0].t()), 1); };
  });
  ExpectAgreesWithLoop("w x, broadcast", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {3, 4});
    m.Input({4, 2});
    return [=](const Batch& x) { return LossOf(at::matmul(w, x[0])); };
  });
}

TEST(MatrixProductRule, EqualsTheLoopForVectors) {
  ExpectAgreesWithLoop("x v", [](ModelMaker& m) {
    const at::Tensor v = m.Parameter("v", {4});
    m.Input({4});
    return [=](const Batch& x) { return LossOf(at::mv(x[0], v)); };
  });
  ExpectAgreesWithLoop("x v on three dimensions", [](ModelMaker& m) {
    const at::Tensor v = m.Parameter("v", {4});
    m.Input({3, 4});
    return [=](const Batch& x) { return LossOf(at::matmul(x[0], v)); };
  });
}

TEST(MatrixProductRule, EqualsTheLoopForStacksOfMatrices) {
  ExpectAgreesWithLoop("bmm with heads in front", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {2, 4, 3});
    m.Input({2, 4});
    return [=](const Batch& x) { return LossOf(at::bmm(x[0].transpose(0, 1), w), 1); };
  });
  ExpectAgreesWithLoop("bmm, parameter on the left", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {2, 3, 4});
    m.Input({2, 4});
    return [=](const Batch& x) { return LossOf(at::bmm(w, x[0].permute({1, 2, 0})), 2); };
  });
  ExpectAgreesWithLoop("broadcast stack", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {2, 4, 3});
    m.Input({2, 5, 4});
    return [=](const Batch& x) { return LossOf(at::matmul(x[0], w)); };
  });
  ExpectAgreesWithLoop("einsum", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {2, 4, 3});
    m.Input({5, 2, 4});
    return [=](const Batch& x) { return LossOf(at::einsum("bthd,hde->bhte", {x[0], w})); };
  });
}

TEST(MatrixProductRule, EqualsTheLoopWithAlphaBetaAndAMatrixBias) {
  ExpectAgreesWithLoop("addmm", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {4, 3});
    const at::Tensor b = m.Parameter("l.bias", {3});
    m.Input({4});
    return [=](const Batch& x) { return LossOf(at::addmm(b, x[0], w, 0.5, -2)); };
  });
  ExpectAgreesWithLoop("addmm with a row of bias", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {4, 3});
    const at::Tensor b = m.Parameter("l.bias", {1, 3});
    m.Input({4});
    return [=](const Batch& x) { return LossOf(at::addmm(b, x[0], w, 2, 3)); };
  });
  ExpectAgreesWithLoop("addmm with a column of bias", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    const at::Tensor b = m.Parameter("l.bias", {3, 1});
    m.Input({4});
    return [=](const Batch& x) { return LossOf(at::addmm(b, w, x[0].t(), 2, 3), 1); };
  });
  ExpectAgreesWithLoop("addmv", [](ModelMaker& m) {
    const at::Tensor v = m.Parameter("l.weight", {4});
    const at::Tensor b = m.Parameter("l.bias", {1});
    m.Input({4});
    return [=](const Batch& x) { return LossOf(at::addmv(b, x[0], v, 0.5, -2)); };
  });
}

struct ConvolutionShape {
  int dims;
  Sizes weight;
  Sizes input;
  Sizes stride;
  Sizes padding;
  Sizes dilation;
  std::int64_t groups;
};

TEST(ConvolutionRule, EqualsTheLoopForStridePaddingDilationAndGroups) {
  const std::vector<ConvolutionShape> shapes = {
      {1, {4, 2, 3}, {2, 7}, {1}, {0}, {1}, 1},
      {1, {4, 1, 3}, {2, 8}, {2}, {1}, {2}, 2},
      {2, {4, 2, 3, 2}, {2, 6, 5}, {1, 1}, {0, 0}, {1, 1}, 1},
      {2, {3, 2, 3, 3}, {2, 7, 6}, {2, 3}, {1, 2}, {1, 1}, 1},
      {2, {4, 2, 2, 2}, {4, 6, 6}, {1, 2}, {1, 0}, {2, 1}, 2},
      {2, {4, 1, 3, 3}, {4, 5, 5}, {1, 1}, {1, 1}, {1, 1}, 4},
      {2, {3, 2, 1, 1}, {2, 4, 4}, {1, 1}, {0, 0}, {1, 1}, 1},
      {3, {2, 2, 2, 2, 2}, {2, 3, 4, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}, 1},
      {3, {2, 1, 2, 1, 2}, {2, 3, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 2},
  };
  for (const ConvolutionShape& s : shapes) {
    for (const bool bias : {false, true}) {
      ExpectAgreesWithLoop("convolution", [&](ModelMaker& m) {
        const at::Tensor w = m.Parameter("c.weight", s.weight);
        const at::Tensor b = bias ? m.Parameter("c.bias", {s.weight[0]}) : at::Tensor();
        m.Input(s.input);
        return [=](const Batch& x) {
          return LossOf(at::convolution(x[0], w, b, s.stride, s.padding, s.dilation, false,
                                        Sizes(s.stride.size(), 0), s.groups));
        };
      });
    }
  }
}

TEST(ConvolutionRule, EqualsTheLoopWhenTransposed) {
  ExpectAgreesWithLoop("conv_transpose1d", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("c.weight", {2, 3, 3});
    const at::Tensor b = m.Parameter("c.bias", {3});
    m.Input({2, 5});
    return
        [=](const Batch& x) { return LossOf(at::conv_transpose1d(x[0], w, b, {2}, {1}, {1}, 1)); };
  });
  for (const std::int64_t groups : {1, 2}) {
    ExpectAgreesWithLoop("conv_transpose2d", [&](ModelMaker& m) {
      const at::Tensor w = m.Parameter("c.weight", {4, 3, 2, 3});
      const at::Tensor b = m.Parameter("c.bias", {3 * groups});
      m.Input({4, 3, 4});
      return [=](const Batch& x) {
        return LossOf(at::conv_transpose2d(x[0], w, b, {2, 2}, {0, 1}, {1, 0}, groups, {1, 2}));
      };
    });
  }
  ExpectAgreesWithLoop("conv_transpose3d", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("c.weight", {2, 2, 2, 2, 1});
    m.Input({2, 2, 3, 2});
    return [=](const Batch& x) { return LossOf(at::conv_transpose3d(x[0], w, {}, {1, 2, 1})); };
  });
}

TEST(ConvolutionRule, EqualsTheLoopBehindImagesOfSeveralFrames) {
  // Each example has three images: before and after the examples of the batch.
  for (const bool frames_first : {false, true}) {
    ExpectAgreesWithLoop("frames", [&](ModelMaker& m) {
      const at::Tensor w = m.Parameter("c.weight", {2, 2, 2, 2});
      const at::Tensor b = m.Parameter("c.bias", {2});
      m.Input({3, 2, 4, 4});
      return [=](const Batch& x) {
        const at::Tensor frames = frames_first ? x[0].transpose(0, 1) : x[0];
        const at::Tensor y = at::conv2d(frames.reshape({-1, 2, 4, 4}), w, b).tanh();
        const at::Tensor apart = y.view({frames.size(0), frames.size(1), 2, 3, 3});
        return LossOf(apart, frames_first ? 1 : 0);
      };
    });
  }
}

TEST(EmbeddingRule, CountsRepeatedTokensTogetherAndPaddingNotAtAll) {
  for (const std::int64_t padding : {-1, 0, 3}) {
    ExpectAgreesWithLoop("embedding", [&](ModelMaker& m) {
      const at::Tensor table = m.Parameter("e.weight", {4, 3});
      m.Tokens(4, {6});
      return [=](const Batch& x) { return LossOf(at::embedding(table, x[0], padding)); };
    });
    ExpectAgreesWithLoop("embedding of pairs, time-major", [&](ModelMaker& m) {
      const at::Tensor table = m.Parameter("e.weight", {4, 3});
      m.Tokens(4, {3, 2});
      return [=](const Batch& x) {
        return LossOf(at::embedding(table, x[0].transpose(0, 1), padding), 1);
      };
    });
  }
}

TEST(EmbeddingBagRule, EqualsTheLoopForSumsMeansWeightsAndPadding) {
  for (const std::int64_t mode : {0, 1}) {
    for (const std::int64_t padding : {-1, 2}) {
      for (const bool weights : {false, true}) {
        if (weights && mode == 1) continue;
        ExpectAgreesWithLoop("embedding bag", [&](ModelMaker& m) {
          const at::Tensor table = m.Parameter("e.weight", {5, 3});
          const at::Tensor scale = m.Constant({6});
          m.Tokens(5, {6});
          return [=](const Batch& x) {
            const std::int64_t n = x[0].size(0);
            // Three bags an example, of two, one and three tokens.
            const at::Tensor starts = at::arange(n).unsqueeze(1) * 6 + at::tensor({0, 2, 3});
            const at::Tensor w = weights ? scale.repeat({n}) : at::Tensor();
            const at::Tensor y =
                std::get<0>(at::embedding_bag(table, x[0].reshape({-1}), starts.reshape({-1}),
                                              false, mode, false, w, false, padding));
            return LossOf(y.view({n, 3, 3}));
          };
        });
      }
    }
  }
}

TEST(NormRules, EqualTheLoop) {
  ExpectAgreesWithLoop("layer norm", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4}, 0.3, 1);
    const at::Tensor b = m.Parameter("n.bias", {4});
    m.Input({3, 4});
    return [=](const Batch& x) { return LossOf(at::layer_norm(x[0], {4}, w, b)); };
  });
  ExpectAgreesWithLoop("layer norm over two dimensions, time-major", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {2, 4}, 0.3, 1);
    const at::Tensor b = m.Parameter("n.bias", {2, 4});
    m.Input({3, 2, 4});
    return [=](const Batch& x) {
      return LossOf(at::layer_norm(x[0].transpose(0, 1), {2, 4}, w, b), 1);
    };
  });
  for (const Sizes& shape : std::vector<Sizes>{{4}, {4, 3}, {4, 3, 2}}) {
    ExpectAgreesWithLoop("group norm", [&](ModelMaker& m) {
      const at::Tensor w = m.Parameter("n.weight", {4}, 0.3, 1);
      const at::Tensor b = m.Parameter("n.bias", {4});
      m.Input(shape);
      return [=](const Batch& x) { return LossOf(at::group_norm(x[0], 2, w, b)); };
    });
  }
  ExpectAgreesWithLoop("instance norm", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {3}, 0.3, 1);
    const at::Tensor b = m.Parameter("n.bias", {3});
    m.Input({3, 4, 2});
    return [=](const Batch& x) {
      return LossOf(at::instance_norm(x[0], w, b, {}, {}, true, 0.1, 1e-5, false));
    };
  });
  ExpectAgreesWithLoop("rms norm", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4}, 0.3, 1);
    m.Input({3, 4});
    return [=](const Batch& x) { return LossOf(at::rms_norm(x[0], {4}, w, 1e-6)); };
  });
  ExpectAgreesWithLoop("fused rms norm", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4}, 0.3, 1);
    m.Input({3, 4});
    return [=](const Batch& x) {
      return LossOf(std::get<0>(at::_fused_rms_norm(x[0], {4}, w, 1e-6)));
    };
  });
  ExpectAgreesWithLoop("rms norm by hand", [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4}, 0.3, 1);
    m.Input({3, 4});
    return [=](const Batch& x) {
      const at::Tensor scale = (x[0].square().mean(-1, true) + 1e-6).rsqrt();
      return LossOf(w * (x[0] * scale));
    };
  });
}

TEST(NormRules, BatchNormInEvaluationModeEqualsTheLoop) {
  for (const Sizes& shape : std::vector<Sizes>{{3}, {3, 4}, {3, 2, 2}}) {
    ExpectAgreesWithLoop("batch norm", [&](ModelMaker& m) {
      const at::Tensor w = m.Parameter("n.weight", {3}, 0.3, 1);
      const at::Tensor b = m.Parameter("n.bias", {3});
      const at::Tensor mean = m.Constant({3});
      const at::Tensor variance = m.Constant({3}).square() + 0.5;
      m.Input(shape);
      return [=](const Batch& x) {
        return LossOf(at::batch_norm(x[0], w, b, mean, variance, false, 0.1, 1e-5, false));
      };
    });
  }
}

TEST(BroadcastRules, PositionEmbeddingsAndScalesEqualTheLoop) {
  for (const Sizes& shape :
       std::vector<Sizes>{{1, 3, 4}, {3, 4}, {1, 1, 4}, {4}, {3, 1}, {1}, {}, {1, 3, 1}}) {
    ExpectAgreesWithLoop("add", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape);
      m.Input({3, 4});
      return [=](const Batch& x) { return LossOf(x[0] + p); };
    });
    ExpectAgreesWithLoop("add with a factor, parameter first", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape);
      m.Input({3, 4});
      return [=](const Batch& x) { return LossOf(at::add(p, x[0], 3)); };
    });
    ExpectAgreesWithLoop("subtract with a factor", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape);
      m.Input({3, 4});
      return [=](const Batch& x) { return LossOf(at::sub(x[0], p, 0.5)); };
    });
    ExpectAgreesWithLoop("multiply", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape);
      m.Input({3, 4});
      return [=](const Batch& x) { return LossOf(p * x[0]); };
    });
    ExpectAgreesWithLoop("divide by", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape, 0.1, 2);
      m.Input({3, 4});
      return [=](const Batch& x) { return LossOf(x[0] / p); };
    });
    ExpectAgreesWithLoop("divided by data, time-major", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape);
      m.Input({4});
      return [=](const Batch& x) {
        const at::Tensor data = x[0].square().unsqueeze(1) + 1;
        return LossOf((p / data).expand({x[0].size(0), 3, 4}));
      };
    });
    ExpectAgreesWithLoop("where", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", shape);
      const at::Tensor q = m.Parameter("q", {1});
      m.Input({3, 4});
      return [=](const Batch& x) {
        const at::Tensor first = at::where(x[0] > 0, p, x[0]);
        return LossOf(at::where(x[0] > 0.5, first, q));
      };
    });
  }
}

TEST(BroadcastRules, ScaleOfChannelsAndPReluEqualTheLoop) {
  ExpectAgreesWithLoop("scale of channels", [](ModelMaker& m) {
    const at::Tensor p = m.Parameter("p", {3, 1, 1});
    m.Input({3, 2, 4});
    return [=](const Batch& x) { return LossOf(x[0] * p); };
  });
  for (const std::int64_t slopes : {1, 3}) {
    ExpectAgreesWithLoop("prelu", [&](ModelMaker& m) {
      const at::Tensor p = m.Parameter("p", {slopes});
      m.Input({3, 2});
      return [=](const Batch& x) { return LossOf(at::prelu(x[0], p)); };
    });
  }
}

TEST(BroadcastRules, TimeMajorPositionEmbeddingsEqualTheLoop) {
  ExpectAgreesWithLoop("[T,1,D]", [](ModelMaker& m) {
    const at::Tensor p = m.Parameter("p", {3, 1, 4});
    m.Input({3, 4});
    return [=](const Batch& x) { return LossOf(x[0].transpose(0, 1) + p, 1); };
  });
}

TEST(ExpansionRules, ClassTokensAndRepetitionsEqualTheLoop) {
  ExpectAgreesWithLoop("class token", [](ModelMaker& m) {
    const at::Tensor token = m.Parameter("token", {1, 1, 4});
    const at::Tensor w = m.Parameter("l.weight", {4, 4});
    m.Input({3, 4});
    return [=](const Batch& x) {
      const at::Tensor row = token.expand({x[0].size(0), -1, -1});
      return LossOf(at::linear(at::cat({row, x[0]}, 1), w));
    };
  });
  ExpectAgreesWithLoop("repeat", [](ModelMaker& m) {
    const at::Tensor p = m.Parameter("p", {2, 3});
    m.Input({4, 3});
    return [=](const Batch& x) { return LossOf(p.repeat({x[0].size(0), 2, 1}) * x[0]); };
  });
  ExpectAgreesWithLoop("repeat over time and batch, time-major", [](ModelMaker& m) {
    const at::Tensor p = m.Parameter("p", {1, 1, 3});
    m.Input({4, 3});
    return [=](const Batch& x) {
      return LossOf(p.repeat({4, x[0].size(0), 1}) * x[0].transpose(0, 1), 1);
    };
  });
  ExpectAgreesWithLoop("expanded over no examples", [](ModelMaker& m) {
    const at::Tensor p = m.Parameter("p", {1, 3});
    m.Input({3});
    return [=](const Batch& x) {
      return LossOf(at::linear(x[0], p.expand({4, 3})) + at::linear(x[0], p.repeat({4, 1})));
    };
  });
}

}  // namespace
}  // namespace sordino
