// What several ranks compute together.
#include "sordino/training/internal/sum_source.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/distributed/testing/group_of_one.h"
#include "sordino/training/testing/distributed_cases.h"

namespace sordino {
namespace {

class DistributedRun : public testing::TestWithParam<RunCase> {
 protected:
  void SetUp() override {
    if (GetParam().net.device.is_cpu()) return;
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setAllowTF32CuDNN(false);  // of one process it would round differently
  }
  void TearDown() override {
    at::globalContext().setDeterministicCuDNN(false);
    at::globalContext().setAllowTF32CuDNN(tf32_);
  }

  static Net NewNet() { return Net(7, GetParam().net); }
  // How far a run of one process may be away, over how far it moved. The sensitivity of estimated
  // norms differs in its fifth digit, and with it a few draws of the noise.
  static double Tolerance() { return GetParam().ComputesAlone() ? 5e-3 : 1e-4; }

 private:
  const bool tf32_ = at::globalContext().allowTF32CuDNN();
};

TEST_P(DistributedRun, GivesTheSameBitsOnAnyNumberOfRanks) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto all_steps = [](Trainer& trainer) { trainer.Run(); };
  const at::Tensor wanted = RunOn(1, GetParam(), data, all_steps).front();
  EXPECT_FALSE(at::equal(wanted, NewNet().Flat()));
  for (const int ranks : {2, 3, 4, 8, 16}) {
    for (const at::Tensor& weights : RunOn(ranks, GetParam(), data, all_steps)) {
      EXPECT_TRUE(at::equal(weights, wanted)) << ranks << " ranks";
    }
  }
}

constexpr const char* kOwnNoise = "one process alone draws its noise on the GPU, by other streams";

// The same seed draws the same batches and noise in a run of one process, whose sums are rounded
// elsewhere. Noise that came once a rank, or a record that was left out, would be far from it.
TEST_P(DistributedRun, IsARunOfOneProcessButForRounding) {
  if (!GetParam().net.device.is_cpu()) GTEST_SKIP() << kOwnNoise;
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const Net net = NewNet();
  Trainer alone(PlanOf(GetParam()), net.parameters, net.loss, data, GetParam().optimizer,
                OptionsOf(GetParam(), nullptr, net));
  alone.Run();
  const at::Tensor weights =
      RunOn(3, GetParam(), data, [](Trainer& trainer) { trainer.Run(); }).front();
  const double moved = (net.Flat() - NewNet().Flat()).norm().item<double>();
  EXPECT_GT(moved, 0.01);
  EXPECT_LT((weights - net.Flat()).norm().item<double>(), Tolerance() * moved);
}

TEST_P(DistributedRun, GoesOnWithAnotherNumberOfRanks) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  at::Tensor averaged;
  const auto average = [&](Trainer& trainer) {
    if (trainer.optimizer().steps_done() == 0) return;
    averaged = trainer.SaveState().front().second.clone();
  };
  const at::Tensor wanted = RunOn(2, GetParam(), data, [&](Trainer& trainer) {
                              trainer.Run();
                              average(trainer);
                            }).front();
  const at::Tensor first_wanted = averaged;
  NamedTensors saved;
  RunOn(2, GetParam(), data, [&](Trainer& trainer) {
    trainer.Step();
    trainer.Step();
    saved = trainer.SaveState();
  });
  for (const int ranks : {1, 3, 4}) {
    const std::vector<at::Tensor> weights = RunOn(ranks, GetParam(), data, [&](Trainer& trainer) {
      trainer.RestoreState(saved, 2);
      trainer.Run();
      average(trainer);
    });
    // An allocation is drawn anew for an epoch, from the stream of the epoch: the same one here.
    EXPECT_TRUE(at::equal(weights.back(), wanted)) << ranks << " ranks";
    EXPECT_TRUE(at::equal(averaged, first_wanted)) << ranks << " ranks";
  }
  if (!GetParam().net.device.is_cpu()) return;  // kOwnNoise
  // One process reads it too.
  const Net net = NewNet();
  Trainer alone(PlanOf(GetParam()), net.parameters, net.loss, data, GetParam().optimizer,
                OptionsOf(GetParam(), nullptr, net));
  alone.RestoreState(saved, 2);
  alone.Run();
  EXPECT_LT((wanted - net.Flat()).norm().item<double>(),
            Tolerance() * (wanted - NewNet().Flat()).norm().item<double>());
}

std::string NameOf(const testing::TestParamInfo<RunCase>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, DistributedRun, testing::ValuesIn(RunCases()), NameOf);

// All ranks on one GPU.
std::vector<RunCase> CudaCases() {
  std::vector<RunCase> cases;
  for (RunCase& run : RunCases()) {
    const std::string name = run.name;
    if (name != "Poisson" && name != "Convolution" && name != "AdaptiveAdam" &&
        name != "EstimatedNorms" && name != "AdaClip" && name != "HeldOut" && name != "Canaries" &&
        name != "CanaryRecords") {
      continue;
    }
    run.net.device = c10::Device(at::kCUDA, 0);
    cases.push_back(run);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cuda, DistributedRun, testing::ValuesIn(CudaCases()), NameOf);

class RunBetweenGpus : public DistributedRun {};

NamedTensors SavedAfterAll(Trainer& trainer) {
  trainer.Run();
  return trainer.SaveState();
}

// Sums and weights that are handed over on the GPU, on any number of ranks.
TEST_P(RunBetweenGpus, HasTheBitsOfOneThroughProcessors) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  NamedTensors wanted_state;
  const at::Tensor wanted = RunOn(2, GetParam(), data, [&](Trainer& trainer) {
                              wanted_state = SavedAfterAll(trainer);
                            }).front();
  for (const int ranks : {1, 2, 5}) {
    NamedTensors state;
    const std::vector<at::Tensor> all = RunOn(
        ranks, GetParam(), data, [&](Trainer& trainer) { state = SavedAfterAll(trainer); },
        /*takes_devices=*/true);
    for (const at::Tensor& weights : all) EXPECT_TRUE(at::equal(weights, wanted)) << ranks;
    ASSERT_EQ(state.size(), wanted_state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      EXPECT_TRUE(at::equal(state[i].second.cpu(), wanted_state[i].second.cpu()))
          << state[i].first << " on " << ranks;
    }
  }
}

// NCCL takes no two ranks on one GPU.
TEST_P(RunBetweenGpus, OfOneRankOverNcclHasTheBitsOfOneProcess) {
  if (!HasProcessGroups()) GTEST_SKIP() << "this libtorch has no process groups";
  const std::unique_ptr<ProcessGroup> group = GroupOfOne();
  group->UseDevice(GetParam().net.device);
  if (group->DeviceFor(GetParam().net.device).is_cpu()) {
    group->Leave();
    GTEST_SKIP() << "built without NCCL";
  }
  const OneThread one_thread;
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto all_steps = [](Trainer& trainer) { trainer.Run(); };
  const at::Tensor weights = RunAsRankOf(*group, GetParam(), data, all_steps);
  group->Leave();
  const at::Tensor wanted = RunAsRankOf(*SingleProcess(), GetParam(), data, all_steps);
  EXPECT_TRUE(at::equal(weights, wanted));
  EXPECT_TRUE(at::equal(weights, RunOn(3, GetParam(), data, all_steps).front()));
}

INSTANTIATE_TEST_SUITE_P(Cuda, RunBetweenGpus, testing::ValuesIn(CudaCases()), NameOf);

// Updates of a loss without gradients are noise alone. A deviation that is 1 % too small is nine
// deviations of its estimate away, and noise that is drawn once a rank twice too large. Not seeded:
// the estimate of a deviation from n = 400,000 values is off by 1 / sqrt(2 n), and seven of these
// are crossed with probability 3e-12.
TEST(DistributedNoise, IsThatOfOneProcessWhateverTheNumberOfRanks) {
  constexpr int kSteps = 20;
  const Dataset data = RandomFeatures(12, 1, 2);
  PlanOptions options = FullBatch(data.size(), kSteps);
  options.batch = 6;
  options.clip = ClipNorm(0.5);
  const PrivacyPlan plan(options, NoiseMultiplier(3), Delta(1e-5));
  RunRanks(4, [&](Communicator& communicator) {
    Weights weights(20'000);
    Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 1},
                    {.communicator = &communicator});
    EXPECT_TRUE(trainer.is_private());
    if (!communicator.IsFirst()) return trainer.Serve();
    const std::vector<at::Tensor> noise = Updates(trainer, weights);
    const at::Tensor all = at::stack(noise);
    const double deviation = all.square().mean().sqrt().item<double>();
    const double wanted = 3 * 0.5 * 1.01 / 6;  // 1.01: the declared rounding
    const double tolerance = 7 / std::sqrt(2.0 * 20'000 * kSteps);
    EXPECT_GT(deviation / wanted, 1 - tolerance);
    EXPECT_LT(deviation / wanted, 1 + tolerance + 1e-4);
    // Shards and steps have nothing in common: products of pairs have the deviation 1 / sqrt(n).
    const at::Tensor parts = all.view({std::int64_t{kSteps} * 4, 5'000}).div(deviation);
    const at::Tensor products = at::matmul(parts, parts.t()).div(5'000).fill_diagonal_(0);
    EXPECT_LT(products.abs().max().item<double>(), 8 / std::sqrt(5'000.0));
  });
}

// Records are coordinates: the sum of a batch says who is in it.
struct Membership {
  explicit Membership(std::int64_t n) : records(n), data(RandomFeatures(n, n, 1)) {
    data.inputs.copy_(at::eye(n));
  }

  // Who was in the batches of a run that is not seeded, [steps, records].
  at::Tensor Draw(PlanOptions options, int ranks) const {
    // So little noise that a coordinate is 0 or 1 to a thousandth.
    const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
    std::vector<at::Tensor> drawn;
    RunRanks(ranks, [&](Communicator& communicator) {
      Weights weights(records);
      Trainer trainer(plan, weights.Named(), weights.Linear(), data,
                      {.learning_rate = options.batch}, {.communicator = &communicator});
      if (!communicator.IsFirst()) return trainer.Serve();
      at::Tensor last = weights.value.detach().clone();
      trainer.Run([&](std::int64_t) {
        drawn.push_back(last - weights.value.detach());
        last = weights.value.detach().clone();
        return true;
      });
    });
    const at::Tensor members = at::stack(drawn).to(at::kDouble);
    EXPECT_LT((members - members.round()).abs().max().item<double>(), 0.01);
    return members.round();
  }

  std::int64_t records;
  Dataset data;
};

TEST(DistributedBatch, IsOneForAllRanks) {
  const Membership membership(100);
  PlanOptions options = FullBatch(100, 20);
  options.sampling = "fixed";
  options.batch = 50;
  options.adjacency = Adjacency::kReplaceOne;
  const at::Tensor members = membership.Draw(options, 2);
  // Two batches of which each rank takes half would have a record in common, but for a chance of
  // e^-7 a step.
  EXPECT_EQ(members.max().item<double>(), 1);
  EXPECT_TRUE(at::equal(members.sum(1), at::full({20}, 50.0, at::kDouble)));
  EXPECT_FALSE(at::equal(members[0], members[1]));
}

// Each record enters independently with the rate: counts of records, of pairs in one batch and of
// sizes are those of the law. Seven deviations, 3e-12 each.
TEST(DistributedBatch, IsPoisson) {
  constexpr std::int64_t kRecords = 80;
  constexpr std::int64_t kSteps = 400;
  constexpr double kRate = 0.3;
  const Membership membership(kRecords);
  PlanOptions options = PoissonPlan(kRecords, kRate * kRecords, kSteps);
  const at::Tensor members = membership.Draw(options, 4);
  EXPECT_LE(members.max().item<double>(), 1);
  const double deviation = std::sqrt(kRate * (1 - kRate));
  const at::Tensor centred = (members - kRate) / deviation;
  const double steps = kSteps;
  EXPECT_LT(centred.mean(0).abs().max().item<double>(), 7 / std::sqrt(steps));
  const at::Tensor pairs = at::matmul(centred.t(), centred).div(steps).fill_diagonal_(0);
  EXPECT_LT(pairs.abs().max().item<double>(), 8 / std::sqrt(steps));
  // The variance of the mean of n sizes' squares: kurtosis is near 3.
  const double size_variance = centred.sum(1).square().mean().item<double>() / kRecords;
  EXPECT_NEAR(size_variance, 1, 7 * std::sqrt(2 / steps));
}

// Every record is clipped, so that its coordinate of the sum is the bound by which its rank clips.
// Noise on the counts moves the bounds by about a percent a step: ranks that draw their own differ.
TEST(DistributedCounts, AreNoisedOnceForAllRanks) {
  constexpr std::int64_t kRecords = 100;
  Dataset data = RandomFeatures(kRecords, kRecords, 1);
  data.inputs.copy_(at::eye(kRecords) * 50);
  PlanOptions options = FullBatch(kRecords, 8);
  options.clipping = "adaptive";
  const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
  RunRanks(3, [&](Communicator& communicator) {
    Weights weights(kRecords);
    Trainer trainer(plan, weights.Named(), weights.Linear(), data, {.learning_rate = kRecords},
                    {.communicator = &communicator});
    if (!communicator.IsFirst()) return trainer.Serve();
    at::Tensor last = weights.value.detach().clone();
    std::vector<double> bounds;
    trainer.Run([&](std::int64_t) {
      const at::Tensor clipped = last - weights.value.detach();
      bounds.push_back(clipped.mean().item<double>());
      // Noise on a coordinate is a ten thousandth of the bound.
      EXPECT_LT((clipped.max() - clipped.min()).item<double>(), 2e-3 * bounds.back());
      last = weights.value.detach().clone();
      return true;
    });
    EXPECT_GT(bounds.back() / bounds.front(), 1.01);  // it moves
  });
}

TEST(DistributedStep, SendsTwelveBytesForAParameterAtMost) {
  const RunCase run = RunCases().front();
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  for (const int ranks : {1, 2, 4, 16}) {
    RunRanks(ranks, [&](Communicator& communicator) {
      const Net net;
      Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                      OptionsOf(run, &communicator));
      if (!communicator.IsFirst()) return trainer.Serve();
      trainer.Step();
      const std::int64_t before = communicator.bytes_sent();
      trainer.Step();
      const std::int64_t a_step = communicator.bytes_sent() - before;
      const std::int64_t coordinates = net.Flat().numel();
      EXPECT_EQ(a_step, (ranks - 1) * ShardSize(coordinates, ranks) * (8 + 4));
      // The shards are rounded up to whole registers.
      EXPECT_LE(a_step, 16 * (coordinates + std::int64_t{ranks} * kShardMultiple));
    });
  }
}

}  // namespace
}  // namespace sordino
