// No example has an effect on the gradient of another, whatever its values, and the distance of
// the sums of neighbouring batches is at most their sensitivity.
#include <ATen/ATen.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sordino/gradients/adaclip.h"
#include "sordino/gradients/adaptive_clipping.h"
#include "sordino/gradients/automatic_clipping.h"
#include "sordino/gradients/flat_clipping.h"
#include "sordino/gradients/global_clipping.h"
#include "sordino/gradients/layerwise_clipping.h"
#include "sordino/gradients/testing/forged_values.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Layer {
  std::string name;
  ModelFunction model;
};

// Every layer that has a rule. The first input is of floating-point numbers, so that an example can
// be spoilt.
std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  const auto rows = [&](const std::string& name, std::vector<std::int64_t> sizes, auto wire) {
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

TEST(Isolation, OtherExamplesKeepTheirNormsWhateverOneExampleHolds) {
  for (const Layer& layer : Layers()) {
    const TestModel model = MakeModel(layer.model, at::kDouble);
    const Batch batch = model.batch(4);
    const auto policy = HalfClippedLayers(model, batch);
    for (const NormMethod method : {NormMethod::kMaterialise, NormMethod::kGhost}) {
      Clipper clipper(model.parameters, {.norms = method, .checked_examples = 0});
      const at::Tensor plain = Without({clipper.Norms(model.loss, batch, *policy).t()}, 1)[0];
      for (const double value : {3.0, 1e30, 1e300, 1e-310, kInf, -kInf, kNan}) {
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
        for (const double value : {kNan, kInf}) {
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

struct NamedPolicy {
  std::string name;
  std::unique_ptr<ClippingPolicy> policy;
};

std::vector<NamedPolicy> Policies(const std::vector<NamedParameter>& parameters) {
  std::vector<NamedPolicy> policies;
  const auto add = [&](const std::string& name, auto policy) {
    policies.push_back({name, std::make_unique<decltype(policy)>(std::move(policy))});
  };
  const AdaptiveClippingOptions adaptive = {.expected_batch = 5, .count_noise = 3};
  add("flat", FlatClipping(ClipNorm(0.3)));
  add("layerwise", LayerwiseClipping::Equal(parameters, ClipNorm(0.3)));
  add("global", GlobalClipping(GlobalBound{ClipNorm(0.3), ClipNorm(2)}));
  add("automatic", AutomaticClipping(ClipNorm(0.3)));
  add("adaptive", AdaptiveClipping(ClipNorm(0.3), adaptive));
  auto adaclip = std::make_unique<AdaClip>(parameters);
  std::vector<at::Tensor> mean;
  for (const NamedParameter& p : parameters) {
    mean.push_back(at::randn(p.value.sizes(), p.value.options()).detach());
  }
  adaclip->Update(ForgedGradients(mean, 0.1));
  policies.push_back({"AdaCliP", std::move(adaclip)});
  return policies;
}

ModelFunction NeighbourModel() {
  return [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {4, 3});
    const at::Tensor b = m.Parameter("l.bias", {4});
    const at::Tensor n = m.Parameter("n.weight", {4}, 0.3, 1);
    const at::Tensor v = m.Parameter("v.weight", {4});
    m.Input({2, 3});
    m.Input({});  // a weight of the loss: 0 takes a record out
    return [=](const Batch& x) {
      const at::Tensor h = at::linear(x[0], w, b).relu() * n;
      return at::matmul(h, v).sum(1) * x[1];
    };
  };
}

// Records that break arithmetic.
std::vector<Batch> Adversaries(at::ScalarType type, const Batch& like) {
  std::vector<Batch> records;
  const double huge = type == at::kDouble ? 1e300 : 1e38;
  const double denormal = type == at::kDouble ? 1e-310 : 1e-40;
  for (const double value : {0.0, 1.0, -3.0, 1e10, -1e18, 1e-20, huge, denormal, kNan, kInf}) {
    records.push_back(
        {at::full({1, 2, 3}, value, like[0].options()), at::ones({1}, like[1].options())});
  }
  records.push_back(Slice(like, 0, 1));  // a duplicate
  return records;
}

Batch Join(const Batch& first, const Batch& second) {
  Batch joined;
  for (std::size_t k = 0; k < first.size(); ++k) joined.push_back(at::cat({first[k], second[k]}));
  return joined;
}

void ExpectWithinSensitivity(const BoundedSum& first, const BoundedSum& second,
                             const std::string& what) {
  const double distance = Distance(first.gradients, second.gradients);
  EXPECT_LE(distance, first.sensitivity.value()) << what;
  EXPECT_EQ(first.sensitivity.value(), second.sensitivity.value()) << what;
  const at::Tensor counts = first.counts.RevealForAudit();
  const at::Tensor others = second.counts.RevealForAudit();
  if (counts.defined() && others.defined()) {
    EXPECT_LE((counts - others).norm().item<double>(), first.count_sensitivity.value()) << what;
  }
}

TEST(NeighbouringBatches, DifferByAtMostTheSensitivityForEveryPolicy) {
  double largest = 0;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(NeighbourModel(), type);
    Batch batch = model.batch(5);
    batch[1] = at::ones_like(batch[1]);
    batch = Join(batch, Slice(batch, 2, 4));  // with duplicates
    for (const NamedPolicy& named : Policies(model.parameters)) {
      Clipper removing(model.parameters, {}, {.adjacency = Adjacency::kAddRemove});
      Clipper replacing(model.parameters, {}, {.adjacency = Adjacency::kReplaceOne});
      const BoundedSum before = removing.ClippedSum(model.loss, batch, *named.policy);
      const auto records = Adversaries(type, batch);
      for (std::size_t k = 0; k < records.size(); ++k) {
        const std::string what = named.name + ", record " + std::to_string(k);
        const Batch more = Join(batch, records[k]);
        const BoundedSum after = removing.ClippedSum(model.loss, more, *named.policy);
        ExpectWithinSensitivity(before, after, what);
        largest = std::max(
            largest, Distance(before.gradients, after.gradients) / before.sensitivity.value());
        const Batch other = Join(batch, records[(k + 1) % records.size()]);
        ExpectWithinSensitivity(replacing.ClippedSum(model.loss, more, *named.policy),
                                replacing.ClippedSum(model.loss, other, *named.policy), what);
      }
    }
  }
  // The bound is reached: a test of distances that are all zero could not fail.
  EXPECT_GT(largest, 0.98);
}

TEST(NeighbouringBatches, OfMicroBatchesDifferByAtMostTheSensitivity) {
  const TestModel model = MakeModel(NeighbourModel(), at::kDouble);
  Batch batch = model.batch(7);
  batch[1] = at::ones_like(batch[1]);
  // The record pulls its micro-batch against the other examples there: without it the average
  // turns round, and two bounds lie between the clipped vectors.
  batch[0].slice(0, 2, 6).copy_((batch[0].slice(0, 2, 3) * 10).clone());
  batch[1][3] = -50;
  for (const Adjacency adjacency : {Adjacency::kZeroOut, Adjacency::kReplaceOne}) {
    double largest = 0;
    for (const NamedPolicy& named : Policies(model.parameters)) {
      for (const std::int64_t width : {2, 3}) {
        Clipper clipper(model.parameters, {}, {.adjacency = adjacency, .micro_batch = width});
        const BoundedSum before = clipper.ClippedSum(model.loss, batch, *named.policy);
        for (const double weight : {0.0, 50.0, 1e-300, kNan}) {
          if (adjacency == Adjacency::kZeroOut && weight != 0) continue;
          Batch other = batch;
          other[1] = batch[1].clone();
          other[1][3] = weight;
          const BoundedSum after = clipper.ClippedSum(model.loss, other, *named.policy);
          ExpectWithinSensitivity(before, after, named.name);
          largest = std::max(
              largest, Distance(before.gradients, after.gradients) / before.sensitivity.value());
        }
      }
    }
    EXPECT_GT(largest, 0.95) << AdjacencyName(adjacency);
  }
}

TEST(MicroBatches, AreClippedTogetherAsInTheLoop) {
  const TestModel model = MakeModel(NeighbourModel(), at::kDouble);
  const Batch batch = model.batch(7);
  const FlatClipping policy(ClipNorm(0.4));
  for (const std::int64_t width : {2, 3, 7}) {
    for (const std::int64_t physical : {0, 1, 4}) {
      Clipper clipper(model.parameters, {.physical_batch = physical},
                      {.adjacency = Adjacency::kZeroOut, .micro_batch = width});
      const BoundedSum sum = clipper.ClippedSum(model.loss, batch, policy);
      const LoopResult loop =
          LoopClippedSum(model.loss, batch, clipper.parameters(), policy, width);
      EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-12);
    }
  }
}

TEST(CutBatches, GiveTheSumAndTheCountsOfTheWholeBatch) {
  for (const bool recurrent : {false, true}) {
    const TestModel model = MakeModel(
        recurrent ? RecurrentModel("gru", false, 1, false) : NeighbourModel(), at::kDouble);
    const Batch batch = model.batch(7);
    for (const NamedPolicy& named : Policies(model.parameters)) {
      Clipper whole(model.parameters);
      const BoundedSum expected = whole.ClippedSum(model.loss, batch, *named.policy);
      for (const std::int64_t physical : {1, 2, 3, 7}) {
        Clipper cut(model.parameters, {.physical_batch = physical});
        const BoundedSum sum = cut.ClippedSum(model.loss, batch, *named.policy);
        EXPECT_LT(RelativeError(sum.gradients, expected.gradients), 1e-12)
            << named.name << " in parts of " << physical;
        EXPECT_EQ(sum.sensitivity.value(), expected.sensitivity.value());
        EXPECT_TRUE(sum.clipped.RevealForAudit().equal(expected.clipped.RevealForAudit()));
        if (!expected.counts.RevealForAudit().defined()) continue;
        EXPECT_TRUE(sum.counts.RevealForAudit().equal(expected.counts.RevealForAudit()));
        EXPECT_EQ(sum.count_sensitivity.value(), expected.count_sensitivity.value());
      }
    }
  }
}

TEST(CutBatches, OfADeclaredSizeHaveThatSizeInEveryPass) {
  const TestModel model = MakeModel(NeighbourModel(), at::kDouble);
  std::set<std::int64_t> sizes;
  const LossFunction watched = [&](const Batch& batch) {
    sizes.insert(at::functorch::maybeGetBatchedImpl(batch.front())->value().size(0));
    return model.loss(batch);
  };
  const FlatClipping policy(ClipNorm(0.4));
  Clipper clipper(model.parameters, {.physical_batch = 4});
  clipper.ClippedSum(watched, model.batch(8), policy);  // looks at the model, with other sizes too
  sizes.clear();
  for (const std::int64_t examples : {5, 6, 7, 8, 9, 11}) {
    clipper.ClippedSum(watched, model.batch(examples), policy);
  }
  EXPECT_EQ(sizes, std::set<std::int64_t>{4});
}

TEST(EmptyBatches, HaveZeroSumsZeroCountsAndTheSameSensitivity) {
  const TestModel model = MakeModel(NeighbourModel(), at::kDouble);
  for (const NamedPolicy& named : Policies(model.parameters)) {
    Clipper clipper(model.parameters);
    const BoundedSum full = clipper.ClippedSum(model.loss, model.batch(3), *named.policy);
    const BoundedSum empty = clipper.ClippedSum(model.loss, model.batch(0), *named.policy);
    EXPECT_EQ(NormOf(empty.gradients), 0) << named.name;
    EXPECT_EQ(empty.sensitivity.value(), full.sensitivity.value());
    const at::Tensor counts = full.counts.RevealForAudit();
    const at::Tensor none = empty.counts.RevealForAudit();
    ASSERT_EQ(counts.defined(), none.defined()) << named.name;
    if (counts.defined()) {
      EXPECT_TRUE(none.equal(at::zeros_like(counts)));
    }
    EXPECT_EQ(clipper.Norms(model.loss, model.batch(0), *named.policy).size(1), 0);
  }
}

}  // namespace
}  // namespace sordino
