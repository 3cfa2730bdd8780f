// Batches that differ in one record, cut batches and empty ones, for every policy.
#include <ATen/TensorOperators.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/clipping/testing/start_policy.h"
#include "sordino/device/precision.h"
#include "sordino/gradients/jl_clipping.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/forged_values.h"
#include "sordino/gradients/testing/gradients_test_support.h"
#include "sordino/gradients/testing/seeded_directions.h"
#include "sordino/random/random_source.h"

namespace sordino {
namespace {

// What a policy is started with where its defaults do not do; one that is not here has none.
OptionValues NeighbourOptions(std::string_view name) {
  if (name.starts_with("global")) return {{"clip-threshold", 2.0}};
  if (name.starts_with("adaptive")) return {{"count-noise", 3.0}};
  if (name == "preconditioned") return {{"clip-moment-decay", 0.0}, {"clip-scale-floor", 0.01}};
  return {};
}

struct NamedPolicy {
  std::string name;
  std::unique_ptr<ClippingState> state;
  const ClippingPolicy* policy;
};

// Every policy of the list, behind a step that it learned from.
std::vector<NamedPolicy> Policies(const TestModel& model) {
  const std::vector<NamedParameter>& parameters = model.parameters;
  std::vector<at::Tensor> mean;
  mean.reserve(parameters.size());
  for (const NamedParameter& p : parameters) {
    mean.push_back(at::randn(p.value.sizes(), p.value.options()).detach());
  }
  const Batch batch = model.batch(5);
  constexpr ClipNorm kClip(0.3);
  RandomSource random(9);
  Clipper clipper(parameters);
  std::vector<NamedPolicy> policies;
  for (const std::string_view name : ClippingPolicies().names()) {
    auto state = StartPolicy({std::string(name), NeighbourOptions(name)}, kClip, parameters);
    const BoundedSum sum = clipper.ClippedSum(model.loss, batch, state->StepPolicy(kClip));
    state->AfterNoise(ForgedGradients(mean, 0.1), sum, /*step=*/0, random);
    const ClippingPolicy& policy = state->StepPolicy(kClip);
    policies.push_back({std::string(name), std::move(state), &policy});
  }
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
  for (const double value : {0.0, 1.0, -3.0, 1e10, -1e18, 1e-20, huge, denormal, kNan, kInfinity}) {
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

struct NeighbourCase {
  at::ScalarType type = at::kDouble;
  Precision precision = Precision::kFloat32;
};

TEST(NeighbouringBatches, DifferByAtMostTheSensitivityForEveryPolicy) {
  double largest = 0;
  for (const auto& [type, precision] : {NeighbourCase{at::kDouble}, NeighbourCase{at::kFloat},
                                        NeighbourCase{at::kFloat, Precision::kBfloat16}}) {
    const ScopedPrecision scope(precision);
    const TestModel model = MakeModel(NeighbourModel(), type);
    Batch batch = model.batch(5);
    batch[1] = at::ones_like(batch[1]);
    batch = Join(batch, Slice(batch, 2, 4));  // with duplicates
    for (const NamedPolicy& named : Policies(model)) {
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

// What a record adds does not depend on whether it is alone.
TEST(NeighbouringBatches, OfOneAndTwoRecordsDifferByAtMostTheSensitivity) {
  double largest = 0;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(NeighbourModel(), type);
    Batch other = model.batch(1);
    other[1] = at::ones_like(other[1]);
    for (const NamedPolicy& named : Policies(model)) {
      Clipper clipper(model.parameters, {}, {.adjacency = Adjacency::kAddRemove});
      const auto records = Adversaries(type, other);
      for (std::size_t k = 0; k < records.size(); ++k) {
        const BoundedSum alone = clipper.ClippedSum(model.loss, records[k], *named.policy);
        const BoundedSum both =
            clipper.ClippedSum(model.loss, Join(records[k], other), *named.policy);
        ExpectWithinSensitivity(alone, both, named.name + ", record " + std::to_string(k));
        largest = std::max(largest,
                           Distance(alone.gradients, both.gradients) / alone.sensitivity.value());
      }
    }
  }
  EXPECT_GT(largest, 0.98);
}

// Nor on whether another record makes an operation without a rule go through the loop.
TEST(NeighbouringBatches, OfAnOperationWithoutARuleDifferByAtMostTheSensitivity) {
  const ModelFunction function = [](ModelMaker& m) {
    const at::Tensor w = m.Parameter("l.weight", {4, 3});
    const at::Tensor p = m.Parameter("p.weight", {1}, 0.3, 1);
    m.Input({2, 3});
    m.Input({});
    return [=](const Batch& x) {
      return (at::linear(x[0], w) + at::hypot(at::linear(x[0], w), p)).flatten(1).sum(1) * x[1];
    };
  };
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(function, type);
    const auto records = Adversaries(type, model.batch(1));
    // Each of them several times: what one record changes for all of them adds up.
    for (std::size_t k = 0; k < records.size(); ++k) {
      Batch batch = Join(records[k], records[k]);
      batch = Join(Join(batch, batch), model.batch(1));
      const FlatClipping policy(ClipNorm(0.3));
      Clipper clipper(model.parameters, {}, {.adjacency = Adjacency::kAddRemove});
      const BoundedSum before = clipper.ClippedSum(model.loss, batch, policy);
      for (std::size_t j = 0; j < records.size(); ++j) {
        const BoundedSum after = clipper.ClippedSum(model.loss, Join(batch, records[j]), policy);
        ExpectWithinSensitivity(before, after,
                                "records " + std::to_string(k) + " and " + std::to_string(j));
      }
    }
  }
}

TEST(NeighbouringBatches, WithEstimatedNormsDifferByAtMostTheSensitivity) {
  // 24 directions fail with probability 1e-9, and with them each of 2,000 comparisons or fewer.
  double largest = 0;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(NeighbourModel(), type);
    Batch batch = model.batch(5);
    batch[1] = at::ones_like(batch[1]);
    const auto records = Adversaries(type, batch);
    for (const NamedPolicy& named : Policies(model)) {
      if (named.policy->transform() != nullptr) continue;
      for (std::size_t k = 0; k < records.size(); ++k) {
        const SeededDirections directions(100 + k);
        const auto sum = [&](const Batch& examples, Adjacency adjacency) {
          return JlClippedSum(model.loss, examples, model.parameters, *named.policy,
                              {.directions = 24,
                               .failure_probability = Delta(1e-9),
                               .adjacency = adjacency,
                               .compare = false},
                              directions)
              .sum;
        };
        const std::string what = named.name + ", record " + std::to_string(k);
        const Batch more = Join(batch, records[k]);
        const BoundedSum before = sum(batch, Adjacency::kAddRemove);
        const BoundedSum after = sum(more, Adjacency::kAddRemove);
        ExpectWithinSensitivity(before, after, what);
        largest = std::max(
            largest, Distance(before.gradients, after.gradients) / before.sensitivity.value());
        const Batch other = Join(batch, records[(k + 1) % records.size()]);
        ExpectWithinSensitivity(sum(more, Adjacency::kReplaceOne),
                                sum(other, Adjacency::kReplaceOne), what);
      }
    }
  }
  // The sensitivity is for the worst of 10^9 draws; an ordinary one comes within a factor of 6.
  EXPECT_GT(largest, 1.0 / 6);
}

// A batch that is larger than was declared is summed in another way, and whether it comes may
// depend on one record.
TEST(NeighbouringBatches, LargerThanDeclaredDifferByAtMostTheSensitivity) {
  constexpr std::int64_t kDeclared = 6;
  double largest = 0;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const TestModel model = MakeModel(NeighbourModel(), type);
    Batch all = model.batch(20);
    all[1] = at::ones_like(all[1]);
    for (const NamedPolicy& named : Policies(model)) {
      Clipper clipper(model.parameters, {}, {.largest_batch = kDeclared});
      Clipper wide(model.parameters);
      const auto records = Adversaries(type, all);
      for (const std::int64_t size : {kDeclared - 1, kDeclared, kDeclared + 1, std::int64_t{20}}) {
        const Batch batch = Slice(all, 0, size);
        const BoundedSum before = clipper.ClippedSum(model.loss, batch, *named.policy);
        EXPECT_LT(
            Distance(before.gradients, wide.ClippedSum(model.loss, batch, *named.policy).gradients),
            type == at::kDouble ? 1e-12 : 1e-5);
        EXPECT_EQ(before.noised_types, std::vector<at::ScalarType>(4, type));
        for (std::size_t k = 0; k < records.size(); ++k) {
          // In front of all others, which move.
          const BoundedSum after =
              clipper.ClippedSum(model.loss, Join(records[k], batch), *named.policy);
          ExpectWithinSensitivity(before, after, named.name + ", record " + std::to_string(k));
          largest = std::max(
              largest, Distance(before.gradients, after.gradients) / before.sensitivity.value());
        }
      }
    }
  }
  EXPECT_GT(largest, 0.98);
}

// What a record adds beside more of others than were declared is the same number, to the last bit
// of its grid.
TEST(NeighbouringBatches, LargerThanDeclaredDifferByTheRecordAlone) {
  const TestModel model = MakeModel(NeighbourModel(), at::kFloat);
  Batch all = model.batch(600);
  all[1] = at::ones_like(all[1]);
  Clipper clipper(model.parameters, {}, {.largest_batch = 2});
  const FlatClipping policy(ClipNorm(0.3));
  const Batch record = Slice(all, 0, 1);
  const auto added = [&](const Batch& others) {
    const BoundedSum with = clipper.ClippedSum(model.loss, Join(record, others), policy);
    const BoundedSum without = clipper.ClippedSum(model.loss, others, policy);
    std::vector<at::Tensor> difference;
    for (std::size_t k = 0; k < with.gradients.size(); ++k) {
      difference.push_back(with.gradients[k] - without.gradients[k]);
    }
    return difference;
  };
  // Six hundred times the bound in float64.
  EXPECT_LT(Distance(added(Slice(all, 1, 4)), added(Slice(all, 1, 600))), 600 * 0x1p-52);
}

TEST(NeighbouringBatches, LargerThanDeclaredWithEstimatedNormsDifferByAtMostTheSensitivity) {
  const TestModel model = MakeModel(NeighbourModel(), at::kFloat);
  Batch all = model.batch(12);
  all[1] = at::ones_like(all[1]);
  const FlatClipping policy(ClipNorm(0.3));
  const JlOptions options{.directions = 16, .failure_probability = Delta(1e-6), .largest_batch = 6};
  const SeededDirections directions(3);
  const auto sum = [&](const Batch& batch) {
    return JlClippedSum(model.loss, batch, model.parameters, policy, options, directions).sum;
  };
  for (const std::int64_t size : {5, 6, 7, 11}) {
    ExpectWithinSensitivity(sum(Slice(all, 1, size + 1)), sum(Slice(all, 0, size + 1)),
                            std::to_string(size));
  }
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
    for (const NamedPolicy& named : Policies(model)) {
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
    for (const NamedPolicy& named : Policies(model)) {
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
  for (const NamedPolicy& named : Policies(model)) {
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
