// No example has an effect on the gradient of another, whatever its values.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/own_tensor.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

struct Layer {
  std::string name;
  ModelFunction model;
};

// Every layer that has a rule. The first input is of floating-point numbers, so that an example can
// be spoilt.
std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  const auto rows = [&](const std::string& name, const std::vector<std::int64_t>& sizes,
                        auto wire) {
    layers.push_back({name, [=](ModelMaker& m) -> LossFunction {
                        auto forward = wire(m);
                        m.Input(sizes);
                        return [=](const Batch& b) { return LossOf(forward(b[0])); };
                      }});
  };
  rows("linear", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    const at::Tensor b = m.Parameter("l.bias", {3});
    return [=](const at::Tensor& x) { return at::linear(x, w, b); };
  });
  rows("linear on vectors", {4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    const at::Tensor b = m.Parameter("l.bias", {3});
    return [=](const at::Tensor& x) { return at::linear(x, w, b); };
  });
  rows("w x", {4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {3, 4});
    return [=](const at::Tensor& x) { return at::mm(w, x.t()).t(); };
  });
  rows("overlapping windows", {8}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {2, 4});
    return [=](const at::Tensor& x) {
      return at::linear(x.as_strided({x.size(0), 3, 4}, {8, 2, 1}), w);
    };
  });
  rows("spectrum over time", {32}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {32});
    return [=](const at::Tensor& x) {
      return at::stft(x * w, 8, 4, 8, at::ones({8}, x.options()), false, true, true).abs();
    };
  });
  rows("entries that a mask chooses", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {4});
    const at::Tensor v = m.Parameter("v", {4});
    return [=](const at::Tensor& x) {
      at::Tensor y = x * w;
      using Indices = c10::List<std::optional<at::Tensor>>;
      y.index_put_(Indices({x.gt(0.5)}), at::full({}, 0.25, y.options()));
      y.index_put_(Indices({x.sum(2).gt(0)}), v);
      return y.index_put(Indices({x.lt(-1)}), at::ones({1}, y.options()), /*accumulate=*/true);
    };
  });
  rows("a tensor made of parts", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {4});
    return [=](const at::Tensor& x) {
      const at::Tensor y = OwnTensor(at::zeros({x.size(0), 3, 6}, x.options()));
      y.narrow(2, 0, 4).copy_(x * w);
      y.select(1, 0).add_(x.select(1, 1).sum(1, /*keepdim=*/true) * w.sum());
      return y.tanh();
    };
  });
  rows("weight written into a view", {3, 4}, [](ModelMaker& m) {
    const at::Tensor v = m.Parameter("v", {4});
    const at::Tensor w = m.Parameter("w", {4});
    return [=](const at::Tensor& x) {
      const at::Tensor y = (x * v).clone();
      y.select(1, 0).copy_(w * 2);
      return y.tanh();
    };
  });
  rows("parts counted in bins", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {5});
    return [=](const at::Tensor& x) {
      std::vector<at::Tensor> counts;
      for (const at::Tensor& row : x.unbind()) counts.push_back(at::histc(row, 5, -2, 2));
      return at::stack(counts) * w;
    };
  });
  rows("stack of matrices", {2, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("w", {2, 4, 3});
    return [=](const at::Tensor& x) { return at::bmm(x.transpose(0, 1), w).transpose(0, 1); };
  });
  for (const std::int64_t groups : {1, 2}) {
    rows("convolution", {2, 5, 5}, [=](ModelMaker& m) {
      const at::Tensor w = m.Parameter("c.weight", {4, 2 / groups, 3, 3});
      const at::Tensor b = m.Parameter("c.bias", {4});
      return [=](const at::Tensor& x) { return at::conv2d(x, w, b, 2, 1, 1, groups); };
    });
  }
  rows("transposed convolution", {2, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("c.weight", {2, 3, 2});
    return [=](const at::Tensor& x) { return at::conv_transpose1d(x, w, {}, 2); };
  });
  rows("layer norm", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4});
    const at::Tensor b = m.Parameter("n.bias", {4});
    return [=](const at::Tensor& x) { return at::layer_norm(x, {4}, w, b); };
  });
  rows("group norm", {4, 3}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4});
    const at::Tensor b = m.Parameter("n.bias", {4});
    return [=](const at::Tensor& x) { return at::group_norm(x, 2, w, b); };
  });
  rows("instance norm", {2, 5}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {2});
    const at::Tensor b = m.Parameter("n.bias", {2});
    return [=](const at::Tensor& x) {
      return at::instance_norm(x, w, b, {}, {}, true, 0.1, 1e-5, false);
    };
  });
  rows("rms norm", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {4});
    return [=](const at::Tensor& x) { return at::rms_norm(x, {4}, w, 1e-6); };
  });
  rows("batch norm in evaluation mode", {3, 2}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("n.weight", {3});
    const at::Tensor mean = m.Constant({3});
    const at::Tensor variance = m.Constant({3}).square() + 1;
    return [=](const at::Tensor& x) {
      return at::batch_norm(x, w, {}, mean, variance, false, 0.1, 1e-5, false);
    };
  });
  rows("broadcasts", {3, 4}, [](ModelMaker& m) {
    const at::Tensor p = m.Parameter("p", {1, 3, 4});
    const at::Tensor q = m.Parameter("q", {4}, 0.1, 2);
    const at::Tensor s = m.Parameter("s", {1});
    return [=](const at::Tensor& x) {
      const at::Tensor y = (x + p) * s / q;
      return at::where(y > 0, y, at::prelu(y, s));
    };
  });
  rows("class token", {3, 4}, [](ModelMaker& m) {
    const at::Tensor token = m.Parameter("token", {1, 1, 4});
    const at::Tensor w = m.Parameter("l.weight", {4, 4});
    return [=](const at::Tensor& x) {
      const at::Tensor y = at::linear(at::cat({token.expand({x.size(0), 1, 4}), x}, 1), w);
      return at::matmul(y.softmax(-1), y.transpose(1, 2));
    };
  });
  rows("shared matrix and its transpose", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    return [=](const at::Tensor& x) { return at::linear(at::linear(x, w).tanh(), w.t()); };
  });
  rows("overlapping slices", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {5, 4});
    return [=](const at::Tensor& x) {
      return at::linear(x, w.slice(0, 0, 3)) * at::linear(x, w.slice(0, 2, 5));
    };
  });
  rows("attention", {3, 4}, [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {12, 4});
    return [=](const at::Tensor& x) {
      const auto parts = at::linear(x, w).chunk(3, -1);
      return at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    };
  });
  layers.push_back({"embedding", [](ModelMaker& m) -> LossFunction {
                      const at::Tensor table = m.Parameter("e.weight", {4, 3});
                      m.Input({5, 3});
                      m.Tokens(4, {5});
                      return [=](const Batch& b) {
                        return LossOf(at::embedding(table, b[1], 0) * b[0]);
                      };
                    }});
  layers.push_back({"embedding bag", [](ModelMaker& m) -> LossFunction {
                      const at::Tensor table = m.Parameter("e.weight", {4, 3});
                      m.Input({3});
                      m.Tokens(4, {5});
                      return [=](const Batch& b) {
                        return LossOf(
                            b[0] * std::get<0>(at::embedding_bag(table, b[1].reshape({-1}),
                                                                 at::arange(b[1].size(0)) * 5,
                                                                 false, 0, false, {}, false, -1)));
                      };
                    }});
  for (const std::string kind : {"rnn", "gru", "lstm"}) {
    layers.push_back({kind, RecurrentModel(kind, false, 1, false)});
  }
  layers.push_back({"multi-head attention", MultiHeadAttentionModel(false, false)});
  layers.push_back({"convolutional model", ConvolutionalModel()});
  return layers;
}

Batch Spoilt(const Batch& batch, std::int64_t example, double value, bool whole) {
  Batch copy = batch;
  copy[0] = batch[0].clone();
  at::Tensor row = copy[0].select(0, example).reshape({-1});
  const at::Tensor values = whole ? at::full({row.numel()}, value, row.options()) : row.clone();
  if (!whole) values[0] = value;
  copy[0].select(0, example).copy_(values.view(copy[0].select(0, example).sizes()));
  return copy;
}

Batch Without(const Batch& batch, std::int64_t example) {
  Batch rest;
  for (const at::Tensor& t : batch) {
    rest.push_back(at::cat({t.slice(0, 0, example), t.slice(0, example + 1)}));
  }
  return rest;
}

// libtorch's own rules for some operations end at the 64th pass of a process.
TEST(Isolation, EveryLayerIsRightAfterManyPasses) {
  const TestModel any = MakeModel(Layers().front().model, at::kDouble);
  for (int pass = 0; pass < 70; ++pass) IsolatedLosses(any.loss, any.batch(2), 2);
  for (const Layer& layer : Layers()) {
    const TestModel model = MakeModel(layer.model, at::kDouble);
    const Batch batch = model.batch(3);
    const auto policy = HalfClippedLayers(model, batch);
    Clipper clipper(model.parameters, {.norms = NormMethod::kMaterialise});
    Clipper loop(model.parameters, {.norms = NormMethod::kLoop});
    EXPECT_TRUE(clipper.Norms(model.loss, batch, *policy)
                    .allclose(loop.Norms(model.loss, batch, *policy), 1e-9, 1e-12))
        << layer.name;
  }
}

// What is beyond an example in memory is that of another one.
TEST(Isolation, StridesStayWithinAnExample) {
  const at::Tensor x = at::arange(12, at::kDouble).view({3, 4});
  const auto losses = [&](const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& strides, std::int64_t offset) {
    return IsolatedLosses(
        [&](const Batch& b) {
          return b[0].as_strided(sizes, strides, offset).sum().reshape({1}) + 0 * b[0].sum();
        },
        {x}, 3);
  };
  EXPECT_TRUE(losses({2, 2}, {1, 2}, 0).equal(at::tensor({6.0, 22.0, 38.0}, at::kDouble)));
  EXPECT_TRUE(losses({2}, {1}, 2).equal(at::tensor({5.0, 13.0, 21.0}, at::kDouble)));
  EXPECT_THROW(losses({5}, {1}, 0), NotPerExample);
  EXPECT_THROW(losses({2, 3}, {2, 1}, 1), NotPerExample);
  EXPECT_THROW(losses({2}, {1}, 3), NotPerExample);
  EXPECT_THROW(losses({1}, {1}, -1), std::exception);
  EXPECT_THROW(losses({2, 2}, {std::int64_t{1} << 62, std::int64_t{1} << 62}, 0), NotPerExample);
}

TEST(Isolation, CountsInBinsAreThoseOfEachExample) {
  at::manual_seed(3);
  at::Tensor x = at::randn({6, 40}, at::kDouble);
  x[1].fill_(2);  // both ends of its own bins are one
  x[2][0] = 1.5;  // an edge
  for (const auto& [bins, low, high] : std::vector<std::tuple<std::int64_t, double, double>>{
           {7, -1.5, 1.5}, {4, 0, 0}, {1, 0, 3}}) {
    const at::Tensor places = at::arange(1, bins + 1, at::kDouble);
    const at::Tensor found = IsolatedLosses(
        [&](const Batch& b) {
          return (at::histc(b[0], bins, low, high) * places).sum().reshape({1});
        },
        {x}, 6);
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(found[i].item<double>(),
                (at::histc(x[i], bins, low, high) * places).sum().item<double>())
          << bins << " bins, example " << i;
    }
  }
}

// Each entry that is true takes the value, in whatever dimensions the mask and the value have.
TEST(Isolation, MasksWriteAsTheyDoInOneExample) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({4, 2, 3, 5}, at::kDouble);
  const auto compare = [&](const auto& write) {
    const auto weighted = [&](const at::Tensor& written) {
      return (written * at::arange(written.numel(), at::kDouble).view(written.sizes()))
          .sum()
          .reshape({1});
    };
    const at::Tensor found =
        IsolatedLosses([&](const Batch& b) { return weighted(write(b[0][0])); }, {x}, 4);
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(found[i].item<double>(), weighted(write(x[i])).template item<double>(), 1e-9);
    }
  };
  const at::Tensor row = at::randn({5}, at::kDouble);
  const at::Tensor square = at::randn({1, 5}, at::kDouble);
  using Indices = c10::List<std::optional<at::Tensor>>;
  for (const bool accumulate : {false, true}) {
    compare([&](const at::Tensor& y) {
      return y.index_put(Indices({y.gt(0)}), at::full({}, 2, at::kDouble), accumulate);
    });
    compare([&](const at::Tensor& y) {
      return y.index_put(Indices({y.sum(2).gt(0)}), row, accumulate);
    });
    compare([&](const at::Tensor& y) {
      return y.index_put(Indices({y.sum(at::IntArrayRef{1, 2}).gt(0)}), square, accumulate);
    });
    compare([&](const at::Tensor& y) {
      return y.index_put(Indices({std::nullopt, y.sum(at::IntArrayRef{0, 2}).gt(0)}), square,
                         accumulate);
    });
    compare([&](const at::Tensor& y) {
      return y.index_put(Indices({std::nullopt, y.sum(0).gt(0)}), at::ones({2, 1}, at::kDouble),
                         accumulate);
    });
  }
  // As many values as entries are true.
  EXPECT_THROW(IsolatedLosses(
                   [&](const Batch& b) {
                     const at::Tensor y = b[0][0].clone();
                     y.index_put_(Indices({y.gt(0)}), row);
                     return y.sum().reshape({1});
                   },
                   {x}, 4),
               NotPerExample);
}

TEST(Isolation, OtherExamplesKeepTheirNormsWhateverOneExampleHolds) {
  for (const Layer& layer : Layers()) {
    const TestModel model = MakeModel(layer.model, at::kDouble);
    const Batch batch = model.batch(4);
    const auto policy = HalfClippedLayers(model, batch);
    for (const NormMethod method : {NormMethod::kMaterialise, NormMethod::kGhost}) {
      Clipper clipper(model.parameters, {.norms = method, .checked_examples = 0});
      const at::Tensor plain = Without({clipper.Norms(model.loss, batch, *policy).t()}, 1)[0];
      for (const double value : {3.0, 1e30, 1e300, 1e-310, kInfinity, -kInfinity, kNan}) {
        for (const bool whole : {false, true}) {
          const at::Tensor norms =
              clipper.Norms(model.loss, Spoilt(batch, 1, value, whole), *policy).t();
          const at::Tensor others = Without({norms}, 1)[0];
          EXPECT_TRUE(((others - plain).abs() <= 1e-12 * plain).all().item<bool>())
              << layer.name << " with " << value << "\n"
              << others << "\n"
              << plain;
        }
      }
    }
  }
}

TEST(Isolation, AnExampleOfNanOrInfinityContributesExactlyZero) {
  for (const Layer& layer : Layers()) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const TestModel model = MakeModel(layer.model, type);
      const Batch batch = model.batch(4);
      const auto policy = HalfClippedFlat(model, batch);
      for (const NormMethod method : {NormMethod::kMaterialise, NormMethod::kGhost}) {
        Clipper clipper(model.parameters, {.norms = method});
        const BoundedSum rest = clipper.ClippedSum(model.loss, Without(batch, 2), *policy);
        for (const double value : {kNan, kInfinity}) {
          const Batch spoilt = Spoilt(batch, 2, value, true);
          const BoundedSum sum = clipper.ClippedSum(model.loss, spoilt, *policy);
          const at::Tensor norms = clipper.Norms(model.loss, spoilt, *policy);
          // A saturated function may leave an infinite input with a finite gradient.
          if (norms.select(1, 2).isfinite().all().item<bool>()) continue;
          EXPECT_LE(RelativeError(sum.gradients, rest.gradients),
                    type == at::kDouble ? 1e-12 : 1e-5)
              << layer.name << " with " << value;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sordino
