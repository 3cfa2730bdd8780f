// Whose row is it? Layouts are found, mixing is refused by name, and nothing that was found before
// is trusted where it may not hold.
#include "sordino/gradients/internal/graph/ownership.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// Batch, time and features are all of size 4: sizes tell nothing.
constexpr std::int64_t kSame = 4;
const LoopComparison kSquare = {.batches = {kSame}};

// A refusal, or the loop's result: never anything else.
enum class Outcome { kRight, kRefused, kWrong };

Outcome Try(Clipper& clipper, const LossFunction& loss, const Batch& batch, double bound = 0.5) {
  const FlatClipping policy{ClipNorm(bound)};
  const LoopResult loop = LoopClippedSum(loss, batch, clipper.parameters(), policy);
  try {
    const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
    return RelativeError(sum.gradients, loop.sum) < 1e-11 ? Outcome::kRight : Outcome::kWrong;
  } catch (const Error&) {
    return Outcome::kRefused;
  }
}

TEST(Layouts, OfEqualBatchTimeAndWidthAreFoundForBatchMajorTimeMajorAndMergedRows) {
  const auto model = [](bool time_major, bool merged) {
    return [=](ModelMaker& m) {
      const at::Tensor w = m.Parameter("l.weight", {kSame, kSame});
      const at::Tensor b = m.Parameter("l.bias", {kSame});
      const at::Tensor s = m.Parameter("s", {kSame});
      const at::Tensor n = m.Parameter("n.weight", {kSame});
      m.Input({kSame, kSame});
      return [=](const Batch& batch) {
        at::Tensor x = time_major ? batch[0].transpose(0, 1).contiguous() : batch[0];
        const auto sizes = x.sizes().vec();
        if (merged) x = x.reshape({-1, kSame});
        x = at::layer_norm(at::linear(x, w, b) * s, {kSame}, n).tanh();
        x = at::matmul(x, w) + s;
        return LossOf(x.view(sizes), time_major ? 1 : 0);
      };
    };
  };
  for (const bool time_major : {false, true}) {
    for (const bool merged : {false, true}) {
      ExpectAgreesWithLoop(
          std::string(time_major ? "time-major" : "batch-major") + (merged ? ", merged" : ""),
          model(time_major, merged), kSquare);
    }
  }
}

TEST(Layouts, OfFeaturesInFrontOfTheBatchAreFound) {
  ExpectAgreesWithLoop(
      "w x",
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {kSame, kSame});
        m.Input({kSame});
        return [=](const Batch& b) { return LossOf(at::mm(w, b[0].t()), 1); };
      },
      kSquare);
}

// The first examples have no gradient, so that a look at a few shows nothing, and the probe is of
// all of them: more than one pass has weights for.
TEST(Layouts, OfSeventeenExamplesNeedTwoPassesAndAreFound) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {3, 2});
        m.Input({2, 2});
        return [=](const Batch& b) {
          return at::linear(b[0].transpose(0, 1), w).square().sum(at::IntArrayRef{0, 2});
        };
      },
      at::kDouble);
  for (const std::int64_t examples : {17, 31}) {
    const Batch batch = model.batch(examples);
    batch[0].narrow(0, 0, 8).zero_();
    Clipper clipper(model.parameters);
    EXPECT_EQ(Try(clipper, model.loss, batch), Outcome::kRight);
  }
}

TEST(Layouts, OfManyExamplesAreFound) {
  ExpectAgreesWithLoop("many examples",
                       [](ModelMaker& m) {
                         const at::Tensor w = m.Parameter("w", {3, 2});
                         m.Input({2, 2});
                         return [=](const Batch& b) {
                           return LossOf(at::linear(b[0].transpose(0, 1), w), 1);
                         };
                       },
                       {.batches = {16, 17, 33, 260}, .types = {at::kDouble}});
}

TestModel BatchNormModel(bool affine, bool in_front) {
  return MakeModel(
      [=](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {3, 3});
        const at::Tensor scale = affine ? m.Parameter("bn.weight", {3}) : at::Tensor();
        m.Input({3, 5});
        return [=](const Batch& b) {
          const auto norm = [&](const at::Tensor& x) {
            return at::batch_norm(x, scale, {}, {}, {}, true, 0.1, 1e-5, false);
          };
          const at::Tensor x = in_front ? norm(b[0]) : b[0];
          const at::Tensor y = at::linear(x.transpose(1, 2), w).transpose(1, 2);
          return LossOf(in_front ? y : norm(y).tanh());
        };
      },
      at::kDouble);
}

TEST(Mixing, ByABatchNormIsRefusedWithItsName) {
  for (const bool affine : {false, true}) {
    const TestModel model = BatchNormModel(affine, false);
    EXPECT_THAT(Refusal(model, model.batch(4)),
                AllOf(HasSubstr("batch norm"), HasSubstr("use group norm or layer norm")));
  }
}

TEST(Mixing, InFrontOfTheFirstParameterIsRefused) {
  const TestModel model = BatchNormModel(false, true);
  EXPECT_THAT(Refusal(model, model.batch(4)),
              AllOf(HasSubstr("batch_norm"), HasSubstr("use group norm or layer norm")));
}

ModelFunction HiddenModel(const std::function<at::Tensor(const at::Tensor&)>& loss_of_hidden) {
  return [=](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {3, 4});
    const at::Tensor b = m.Parameter("l.bias", {3});
    m.Input({4});
    return [=](const Batch& x) { return loss_of_hidden(at::linear(x[0], w, b).tanh()); };
  };
}

TEST(Mixing, ByALossOverTheBatchIsRefused) {
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> losses = {
      [](const at::Tensor& h) {  // contrastive
        return at::cross_entropy_loss(at::mm(h, h.t()), at::arange(h.size(0)), {},
                                      at::Reduction::None);
      },
      [](const at::Tensor& h) { return LossOf(h) / (LossOf(h).mean() + 3); },
      [](const at::Tensor& h) { return LossOf(h - h.mean(0)); },
      [](const at::Tensor& h) { return LossOf(h) + h.sum(); },
      [](const at::Tensor& h) { return LossOf(h.cumsum(0)); },
      [](const at::Tensor& h) { return LossOf(h.softmax(0)); },
      [](const at::Tensor& h) { return LossOf(std::get<0>(h.sort(0))); },
      [](const at::Tensor& h) { return LossOf(h.roll(1, 0) * h); },
  };
  for (const auto& loss : losses) {
    const TestModel model = MakeModel(HiddenModel(loss), at::kDouble);
    EXPECT_THAT(Refusal(model, model.batch(5), {.checked_examples = 0}),
                AnyOf(HasSubstr("mixes the examples"), HasSubstr("not in the same order")));
  }
}

// What the comparison cannot see has no effect: every example is alone.
TEST(Mixing, TooWeakForTheEyeDoesNotHappen) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double strength = type == at::kDouble ? 1e-9 : 1e-5;
    const TestModel model = MakeModel(
        HiddenModel([=](const at::Tensor& h) { return LossOf(h + strength * h.sum(0)); }), type);
    Clipper clipper(model.parameters, {.compare = false});
    Batch batch = model.batch(8);
    const FlatClipping policy(ClipNorm(1));
    const at::Tensor norms = clipper.Norms(model.loss, batch, policy);
    batch[0] = batch[0].clone();
    batch[0][0].fill_(1e3);
    EXPECT_TRUE(clipper.Norms(model.loss, batch, policy).slice(1, 1).equal(norms.slice(1, 1)));
  }
}

TEST(Mixing, ThroughADetachedPathIsRefusedWithItsOperation) {
  const TestModel model = MakeModel(
      HiddenModel([](const at::Tensor& h) { return LossOf(h * h.detach().mean(0)); }), at::kDouble);
  EXPECT_THAT(Refusal(model, model.batch(4)), HasSubstr("'mean'"));
}

TEST(Mixing, ThroughIntegerInputsIsRefusedWithItsOperation) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor table = m.Parameter("e.weight", {5, 3});
        m.Tokens(5, {4});
        return [=](const Batch& b) {
          return LossOf(at::embedding(table, b[0]) * b[0].to(at::kDouble).mean());
        };
      },
      at::kDouble);
  EXPECT_THAT(Refusal(model, model.batch(4)), HasSubstr("'mean'"));
}

// Tensors of examples have their graph inside of a wrapper, where no hook can be put.
TEST(Mixing, ByAHookThatLooksAtTheWholeGradientIsRefused) {
  const TestModel model =
      MakeModel(HiddenModel([](const at::Tensor& h) {
                  h.register_hook([](const at::Tensor& g) { return g / g.norm(); });
                  return LossOf(h);
                }),
                at::kDouble);
  EXPECT_THAT(Refusal(model, model.batch(4)), HasSubstr("hook"));
}

TEST(ParametersWithoutData, AreRight) {
  // Queries that are projected once for the whole batch, and a matrix that is squared.
  const std::vector<ModelFunction> functions = {
      [](ModelMaker& m) {
        const at::Tensor queries = m.Parameter("queries", {3, 4});
        const at::Tensor w = m.Parameter("l.weight", {4, 4});
        m.Input({4, 2});
        return [=](const Batch& b) { return LossOf(at::matmul(at::linear(queries, w), b[0])); };
      },
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {4, 4});
        m.Input({4});
        return [=](const Batch& b) { return LossOf(at::linear(b[0], w * w)); };
      }};
  for (const ModelFunction& function : functions) {
    const TestModel model = MakeModel(function, at::kDouble);
    Clipper together(model.parameters, {.checked_examples = 0});
    EXPECT_EQ(Try(together, model.loss, model.batch(4)), Outcome::kRight);
    Clipper apart(model.parameters, {.physical_batch = 1, .checked_examples = 0});
    EXPECT_EQ(Try(apart, model.loss, model.batch(4)), Outcome::kRight);
  }
}

TEST(PermutedExamples, AreRefused) {
  const at::Tensor order = at::tensor({2, 0, 3, 1});
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> losses = {
      [=](const at::Tensor& h) { return LossOf(h.index_select(0, order)); },
      [=](const at::Tensor& h) { return LossOf(h.index({order})); },
      [=](const at::Tensor& h) { return LossOf(at::embedding(h, order)); },
      [=](const at::Tensor& h) { return LossOf(h.flip(0)); },
      [=](const at::Tensor& h) { return LossOf(h.roll(1, 0)); },
  };
  for (const auto& loss : losses) {
    const TestModel model = MakeModel(HiddenModel(loss), at::kDouble);
    EXPECT_THAT(Refusal(model, model.batch(4), {.checked_examples = 0}),
                AnyOf(HasSubstr("alone in its batch"), HasSubstr("mixes")));
  }
}

TEST(PermutedExamples, ThatComeBackInOrderAreRight) {
  const TestModel model =
      MakeModel(HiddenModel([](const at::Tensor& h) { return LossOf(h.flip(0).square()).flip(0); }),
                at::kDouble);
  Clipper clipper(model.parameters, {.checked_examples = 0});
  EXPECT_EQ(Try(clipper, model.loss, model.batch(4)), Outcome::kRight);
}

TEST(RememberedLayouts, HoldForEveryOtherBatchSize) {
  for (const bool time_major : {false, true}) {
    const TestModel model = MakeModel(
        [=](ModelMaker& m) {
          const at::Tensor w = m.Parameter("l.weight", {kSame, kSame});
          const at::Tensor p = m.Parameter("p", {kSame, 1, kSame});
          const at::Tensor q = m.Parameter("q", {kSame});
          m.Input({kSame, kSame});
          return [=](const Batch& b) {
            at::Tensor x = b[0].transpose(0, 1);
            x = at::linear(x + p, w, q).tanh();
            if (!time_major) x = at::linear(x.transpose(0, 1).contiguous(), w) * q;
            return LossOf(x, time_major ? 1 : 0);
          };
        },
        at::kDouble);
    Clipper clipper(model.parameters, {.checked_examples = 0});
    for (const std::int64_t examples : {4, 6, 3, 1, 4, 8, 2, 1, 16, 12, 4}) {
      EXPECT_EQ(Try(clipper, model.loss, model.batch(examples)), Outcome::kRight)
          << examples << " examples";
    }
  }
}

TEST(RememberedLayouts, AreNeverWrongForOtherLengths) {
  for (const bool time_major : {false, true}) {
    const TestModel model = MakeModel(
        [=](ModelMaker& m) {
          const at::Tensor w = m.Parameter("l.weight", {3, 2});
          const at::Tensor s = m.Parameter("s", {3});
          m.Input({1, 2});
          return [=](const Batch& b) {
            const at::Tensor x = time_major ? b[0].transpose(0, 1) : b[0];
            return LossOf(at::linear(x, w) * s, time_major ? 1 : 0);
          };
        },
        at::kDouble);
    Clipper clipper(model.parameters, {.checked_examples = 0});
    const std::vector<std::pair<int, int>> sizes = {{4, 4}, {8, 8}, {8, 8}, {2, 2}, {2, 8}, {8, 2},
                                                    {4, 2}, {2, 4}, {3, 5}, {5, 3}, {4, 4}};
    int refused = 0;
    for (const auto& [examples, length] : sizes) {
      const Batch batch = {at::randn({examples, length, 2}, at::kDouble)};
      const Outcome outcome = Try(clipper, model.loss, batch);
      EXPECT_NE(outcome, Outcome::kWrong) << examples << " examples of " << length;
      refused += outcome == Outcome::kRefused ? 1 : 0;
    }
    EXPECT_LE(refused, 3);
  }
}

TEST(RememberedLayouts, AreNotTrustedAfterTheModelTransposesItsBatch) {
  // Two ways through a model that differ in nothing that sizes show.
  using Way = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;
  const std::vector<std::pair<Way, Way>> pairs = {
      {[](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).tanh().mean(1); },
       [](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x.transpose(0, 1).contiguous(), w).tanh().mean(0);
       }},
      {[](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).tanh().sum(1); },
       [](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x.transpose(0, 1).contiguous(), w).tanh().sum(0);
       }},
      {[](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).select(1, 0); },
       [](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x.transpose(0, 1).contiguous(), w).select(0, 0);
       }},
      {[](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).tanh().amax(1); },
       [](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x.transpose(0, 1).contiguous(), w).tanh().amax(0);
       }},
      {[](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x, w).tanh().unbind(1)[1];
       },
       [](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x.transpose(0, 1).contiguous(), w).tanh().unbind(0)[1];
       }},
      {[](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x, w).tanh().logsumexp(1);
       },
       [](const at::Tensor& x, const at::Tensor& w) {
         return at::linear(x.transpose(0, 1).contiguous(), w).tanh().logsumexp(0);
       }},
      {[](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).flip(1).mean(1); },
       [](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).flip(0).mean(1); }},
  };
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto second = std::make_shared<bool>(false);
    const auto& one = pairs[k].first;
    const auto& two = pairs[k].second;
    const TestModel model = MakeModel(
        [&](ModelMaker& m) {
          const at::Tensor w = m.Parameter("l.weight", {kSame, kSame});
          m.Input({kSame, kSame});
          return [=](const Batch& b) { return LossOf(*second ? two(b[0], w) : one(b[0], w)); };
        },
        at::kDouble);
    Clipper clipper(model.parameters, {.checked_examples = 0});
    for (const bool way : {false, true, false, true}) {
      *second = way;
      EXPECT_NE(Try(clipper, model.loss, model.batch(kSame)), Outcome::kWrong)
          << "pair " << k << ", way " << way;
    }
  }
}

TEST(RememberedLayouts, OfAFirstStepWithoutGradientsAreNotKept) {
  for (const bool time_major : {false, true}) {
    const TestModel model = MakeModel(
        [=](ModelMaker& m) {
          const at::Tensor base = m.Frozen("base", {kSame, kSame});
          const at::Tensor a = m.Parameter("lora.a", {2, kSame});
          const at::Tensor b = m.Parameter("lora.b", {kSame, 2}, 0);  // starts at zero
          m.Input({kSame, kSame});
          return [=](const Batch& x) {
            const at::Tensor data = time_major ? x[0].transpose(0, 1) : x[0];
            return LossOf(at::linear(data, base) + at::linear(at::linear(data, a), b),
                          time_major ? 1 : 0);
          };
        },
        at::kDouble);
    Clipper clipper(model.parameters, {.checked_examples = 0});
    EXPECT_EQ(Try(clipper, model.loss, model.batch(kSame)), Outcome::kRight);
    model.parameters[2].value.detach().normal_();
    for (int step = 0; step < 3; ++step) {
      EXPECT_EQ(Try(clipper, model.loss, model.batch(kSame)), Outcome::kRight);
    }
  }
}

// The rows of a recurrent layer lie step by step, with as many steps as examples.
TEST(RememberedLayouts, OfARecurrentLayerWhoseGradientsStartAtZeroAreNotKept) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor scale = m.Parameter("scale", {2}, 0);  // starts at zero
        const std::vector<at::Tensor> weights = {m.Parameter("ih", {2, 3}),
                                                 m.Parameter("hh", {2, 2}), m.Parameter("b", {2}),
                                                 m.Parameter("c", {2})};
        m.Input({kSame, 3});
        return [=](const Batch& x) {
          const at::Tensor data = x[0].transpose(0, 1);
          const at::Tensor start = at::zeros({1, data.size(1), 2}, data.options());
          const auto [output, last] =
              at::rnn_tanh(data, start, weights, true, 1, 0, true, false, false);
          return LossOf(output * scale, 1);
        };
      },
      at::kDouble);
  Clipper clipper(model.parameters, {.checked_examples = 0});
  EXPECT_EQ(Try(clipper, model.loss, model.batch(kSame)), Outcome::kRight);
  model.parameters[0].value.detach().normal_();
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(Try(clipper, model.loss, model.batch(kSame)), Outcome::kRight);
  }
}

// How often a first step calls a model of which only the first token reaches the loss, as in a ViT,
// or all of them.
int CallsOfFirstStep(std::int64_t tokens, bool first_token_alone) {
  constexpr std::int64_t kWidth = 12;
  int calls = 0;
  const TestModel model = MakeModel(
      [&](ModelMaker& m) {
        const at::Tensor w = m.Parameter("l.weight", {kWidth, kWidth});
        const at::Tensor b = m.Parameter("l.bias", {kWidth});
        m.Input({tokens, kWidth});
        return [=, &calls](const Batch& batch) {
          ++calls;
          const at::Tensor y = (at::linear(batch[0], w) + b).tanh();
          return LossOf(first_token_alone ? y.select(1, 0) : y);
        };
      },
      at::kDouble);
  Clipper clipper(model.parameters);
  clipper.ClippedSum(model.loss, model.batch(16), FlatClipping(ClipNorm(1)));
  return calls;
}

// With four examples the rows of a product, and with five the entries of a sum, lie where they
// would if examples took turns, and the model would be looked at again with the batch.
TEST(RememberedLayouts, OfAClassTokenAreSettledByTheFirstFewExamples) {
  for (const std::int64_t tokens : {5, 17, 101, 197}) {
    EXPECT_EQ(CallsOfFirstStep(tokens, true), CallsOfFirstStep(tokens, false)) << tokens;
  }
}

// 7 and 13 tokens are 1 modulo the six examples.
TEST(RememberedLayouts, ThatZerosLeaveOpenAreLookedAtAgain) {
  for (const std::int64_t tokens : {7, 13}) {
    EXPECT_GT(CallsOfFirstStep(tokens, true), CallsOfFirstStep(tokens, false)) << tokens;
  }
}

TEST(Layouts, ThatZerosLeaveOpenAreOnesThatTheRuleCanUse) {
  // Few entries have a gradient, so that several layouts fit, and the parameter has values of its
  // own for each step.
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor p = m.Parameter("p", {kSame, 1, kSame});
        const at::Tensor s = m.Parameter("s", {});
        m.Input({kSame, kSame});
        return [=](const Batch& b) {
          const at::Tensor x = b[0].transpose(0, 1).contiguous();
          return LossOf(at::where(x > 1.5, x * s + p, x), 1);
        };
      },
      at::kDouble);
  for (int step = 0; step < 200; ++step) {
    Clipper clipper(model.parameters, {.checked_examples = 0});  // remembers nothing
    ASSERT_EQ(Try(clipper, model.loss, model.batch(kSame)), Outcome::kRight) << step;
  }
}

TEST(Randomness, OfDropoutIsNotTakenForMixing) {
  const TestModel model =
      MakeModel(HiddenModel([](const at::Tensor& h) { return LossOf(at::dropout(h, 0.5, true)); }),
                at::kDouble);
  Clipper clipper(model.parameters);
  for (int step = 0; step < 3; ++step) {
    const BoundedSum sum =
        clipper.ClippedSum(model.loss, model.batch(6), FlatClipping(ClipNorm(0.1)));
    EXPECT_GT(NormOf(sum.gradients), 0);
    EXPECT_LE(NormOf(sum.gradients), 6 * 0.1 * 1.001);
  }
}

// The look at a few examples of the first batch changes no random number of the batch.
TEST(Randomness, OfTheFirstBatchIsThatOfALaterOne) {
  const TestModel model =
      MakeModel(HiddenModel([](const at::Tensor& h) { return LossOf(at::dropout(h, 0.5, true)); }),
                at::kDouble);
  const Batch batch = model.batch(12);
  Clipper clipper(model.parameters);
  const auto sum = [&] {
    at::manual_seed(5);
    return clipper.ClippedSum(model.loss, batch, FlatClipping(ClipNorm(0.1))).gradients;
  };
  const std::vector<at::Tensor> first = sum();
  const std::vector<at::Tensor> second = sum();
  for (std::size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(first[k].equal(second[k])) << k;
}

TEST(Refusals, NameWhatALossMustBe) {
  const TestModel summed =
      MakeModel(HiddenModel([](const at::Tensor& h) { return h.sum(); }), at::kDouble);
  EXPECT_THAT(Refusal(summed, summed.batch(3)), HasSubstr("one entry for each"));
}

TEST(WithoutTheProbe, RowsOfAnIsolatedPassLieExampleByExample) {
  for (const bool time_major : {false, true}) {
    const TestModel model = MakeModel(
        [=](ModelMaker& m) {
          const at::Tensor w = m.Parameter("l.weight", {kSame, kSame});
          m.Input({kSame, kSame});
          return [=](const Batch& b) {
            const at::Tensor x = time_major ? b[0].transpose(0, 1).contiguous() : b[0];
            return LossOf(at::linear(x, w), time_major ? 1 : 0);
          };
        },
        at::kDouble);
    Clipper clipper(model.parameters, {.probe = false});
    for (const std::int64_t examples : {4, 3, 1}) {
      EXPECT_EQ(Try(clipper, model.loss, model.batch(examples)), Outcome::kRight);
    }
  }
}

// Mixing behind dropout shows, because both passes have the same masks.
TEST(Comparison, OfARandomModelUsesTheSameNumbers) {
  const TestModel model = MakeModel(HiddenModel([](const at::Tensor& h) {
                                      const at::Tensor kept = at::dropout(h, 0.5, true);
                                      return LossOf(kept - kept.detach().mean(0));
                                    }),
                                    at::kDouble);
  EXPECT_THAT(Refusal(model, model.batch(5)), HasSubstr("'mean'"));
}

// A tensor that a model keeps from one call to the next is found in the first step.
TEST(KeptTensors, AreRefused) {
  at::Tensor kept;
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> uses = {
      [&](const at::Tensor& h) { return h - kept; },
      [&](const at::Tensor& h) { return h.clone().add_(kept); },
      [&](const at::Tensor& h) {
        return at::cat({h, kept}, 1);
      },
  };
  for (const auto& use : uses) {
    kept = at::zeros({1, 3}, at::kDouble);
    const TestModel model = MakeModel(HiddenModel([&](const at::Tensor& h) {
                                        at::Tensor loss = LossOf(use(h));
                                        kept = h.detach();
                                        return loss;
                                      }),
                                      at::kDouble);
    EXPECT_THAT(Refusal(model, model.batch(4)), HasSubstr("kept from an earlier call"));
  }
}

}  // namespace
}  // namespace sordino
