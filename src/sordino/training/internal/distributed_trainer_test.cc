// One run on several ranks, which are threads here (distributed/testing/threads_communicator.h).
#include "sordino/training/internal/distributed_trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/distributed/testing/threads_communicator.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kFeatures = 5;
constexpr std::int64_t kHidden = 37;  // shards begin anywhere

// Loops of several threads end where they like, and may round in another way there.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

// Two layers; every rank has its own.
struct Net {
  explicit Net(std::uint64_t seed = 7) {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    const auto make = [&](const char* name, at::IntArrayRef sizes) {
      at::Tensor value = at::randn(sizes, generator).mul_(0.4).set_requires_grad(true);
      parameters.push_back({name, value});
      return value;
    };
    const at::Tensor w = make("first.weight", {kHidden, kFeatures});
    const at::Tensor b = make("first.bias", {kHidden});
    const at::Tensor v = make("second.weight", {2, kHidden});
    loss = [=](const Batch& batch) {
      const at::Tensor logits = at::linear(at::linear(batch[0], w, b).tanh(), v);
      return logits.logsumexp(1) - logits.gather(1, batch[1].unsqueeze(1)).squeeze(1);
    };
  }

  at::Tensor Flat() const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parts;
    for (const NamedParameter& p : parameters) parts.push_back(p.value.detach().reshape({-1}));
    return at::cat(parts).clone();
  }

  std::vector<NamedParameter> parameters;
  LossFunction loss;
};

struct RunCase {
  const char* name;
  PlanOptions plan;
  OptimizerOptions optimizer = {.learning_rate = 0.3};
  std::int64_t physical_batch = 0;
};

void PrintTo(const RunCase& run, std::ostream* out) { *out << run.name; }

PlanOptions PoissonPlan(std::int64_t records, double batch, std::int64_t steps) {
  PlanOptions options;
  options.records = records;
  options.batch = batch;
  options.steps = steps;
  return options;
}

std::vector<RunCase> RunCases() {
  std::vector<RunCase> cases;
  const PlanOptions poisson = PoissonPlan(600, 200, 4);
  const auto add = [&](const char* name, auto change) {
    RunCase run{.name = name, .plan = poisson};
    change(run);
    cases.push_back(run);
  };
  add("Poisson", [](RunCase&) {});
  add("Full", [](RunCase& run) { run.plan.sampling = "full"; });
  add("FixedMicroBatches", [](RunCase& run) {
    run.plan.sampling = "fixed";
    run.plan.adjacency = Adjacency::kReplaceOne;
    run.plan.micro_batch = 3;
  });
  add("AllocationLayerwise", [](RunCase& run) {
    run.plan.sampling = "allocation";
    run.plan.clipping = "layerwise";
  });
  add("SmallChunksAutomatic", [](RunCase& run) {
    run.plan.clipping = "automatic";
    run.physical_batch = 5;
  });
  add("AdaptiveAdam", [](RunCase& run) {
    run.plan.clipping = "adaptive";
    run.optimizer = {.algorithm = "adam", .learning_rate = 0.01};
  });
  add("MomentumProjectedAveraged", [](RunCase& run) {
    run.optimizer = {.algorithm = {"sgd", {{"momentum", 0.9}}},
                     .learning_rate = 0.3,
                     .projection_radius = 2,
                     .average_decay = 0.9};
  });
  add("AdamwReplaceOne", [](RunCase& run) {
    run.plan.adjacency = Adjacency::kReplaceOne;
    run.optimizer = {.algorithm = {"adamw", {{"weight-decay", 0.1}}}, .learning_rate = 0.01};
  });
  add("LaplaceAdagrad", [](RunCase& run) {
    run.plan.noise = "laplace";
    run.optimizer = {.algorithm = "adagrad", .learning_rate = 0.05};
  });
  add("DebiasedMomentum", [](RunCase& run) {
    run.optimizer = {.algorithm = {"debiased-momentum", {{"momentum", 0.5}}}, .learning_rate = 1};
  });
  return cases;
}

PrivacyPlan PlanOf(const RunCase& run, double noise = 0.8) {
  return {run.plan, NoiseMultiplier(noise), Delta(1e-5)};
}

TrainerOptions OptionsOf(const RunCase& run, Communicator* communicator) {
  TrainerOptions options;
  options.insecure_seed = 11;
  options.gradients.physical_batch = run.physical_batch;
  options.communicator = communicator;
  return options;
}

// What `lead` makes of rank 0's trainer, while the others serve; the weights of every rank.
std::vector<at::Tensor> RunOn(int ranks, const RunCase& run, const Dataset& data,
                              const std::function<void(Trainer&)>& lead) {
  const OneThread one_thread;
  std::vector<at::Tensor> weights(static_cast<std::size_t>(ranks));
  RunRanks(ranks, [&](Communicator& communicator) {
    // Others begin with other values, and get those of rank 0.
    const Net net(communicator.IsFirst() ? 7 : 8);
    {
      Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                      OptionsOf(run, &communicator));
      if (communicator.IsFirst()) {
        lead(trainer);
      } else {
        trainer.Serve();
      }
    }
    weights[static_cast<std::size_t>(communicator.Rank())] = net.Flat();
  });
  return weights;
}

class DistributedRun : public testing::TestWithParam<RunCase> {};

TEST_P(DistributedRun, GivesTheSameBitsOnAnyNumberOfRanks) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto all_steps = [](Trainer& trainer) { trainer.Run(); };
  const at::Tensor wanted = RunOn(1, GetParam(), data, all_steps).front();
  EXPECT_FALSE(at::equal(wanted, Net().Flat()));
  for (const int ranks : {2, 3, 4, 8, 16}) {
    for (const at::Tensor& weights : RunOn(ranks, GetParam(), data, all_steps)) {
      EXPECT_TRUE(at::equal(weights, wanted)) << ranks << " ranks";
    }
  }
}

// The same seed draws the same batches and noise in a run of one process, whose sums are rounded
// elsewhere. Noise that came once a rank, or a record that was left out, would be far from it.
TEST_P(DistributedRun, IsARunOfOneProcessButForRounding) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const Net net;
  Trainer alone(PlanOf(GetParam()), net.parameters, net.loss, data, GetParam().optimizer,
                OptionsOf(GetParam(), nullptr));
  alone.Run();
  const at::Tensor weights =
      RunOn(3, GetParam(), data, [](Trainer& trainer) { trainer.Run(); }).front();
  const double moved = (net.Flat() - Net().Flat()).norm().item<double>();
  EXPECT_GT(moved, 0.01);
  EXPECT_LT((weights - net.Flat()).norm().item<double>(), 1e-4 * moved);
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
  // One process reads it too.
  const Net net;
  Trainer alone(PlanOf(GetParam()), net.parameters, net.loss, data, GetParam().optimizer,
                OptionsOf(GetParam(), nullptr));
  alone.RestoreState(saved, 2);
  alone.Run();
  EXPECT_LT((wanted - net.Flat()).norm().item<double>(),
            1e-4 * (wanted - Net().Flat()).norm().item<double>());
}

INSTANTIATE_TEST_SUITE_P(Cases, DistributedRun, testing::ValuesIn(RunCases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

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
    at::Tensor last = weights.value.detach().clone();
    std::vector<at::Tensor> noise;
    trainer.Run([&](std::int64_t) {
      noise.push_back((weights.value.detach() - last).to(at::kDouble));
      last = weights.value.detach().clone();
      return true;
    });
    const at::Tensor all = at::stack(noise);
    const double deviation = all.square().mean().sqrt().item<double>();
    const double wanted = 3 * 0.5 * 1.01 / 6;  // 1.01: the declared rounding
    const double tolerance = 7 / std::sqrt(2.0 * 20'000 * kSteps);
    EXPECT_GT(deviation / wanted, 1 - tolerance);
    EXPECT_LT(deviation / wanted, 1 + tolerance + 1e-4);
    // Shards and steps have nothing in common: products of pairs have the deviation 1 / sqrt(n).
    const at::Tensor parts = all.view({kSteps * 4, 5'000}).div(deviation);
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
      EXPECT_LE(a_step, 2 * 8 * (coordinates + ranks * kShardMultiple));
    });
  }
}

// A communicator whose rank goes at one of its operations.
class Failing : public Communicator {
 public:
  Failing(Communicator& inner, int operations) : inner_(inner), left_(operations) {}
  int Rank() const override { return inner_.Rank(); }
  int Size() const override { return inner_.Size(); }
  void AllReduceSum(at::Tensor& values) override {
    Count();
    inner_.AllReduceSum(values);
  }
  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    Count();
    inner_.ReduceScatterSum(values, shard);
  }
  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    Count();
    inner_.AllGather(shard, all);
  }
  std::string Broadcast(const std::string& bytes) override {
    Count();
    return inner_.Broadcast(bytes);
  }
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
    Count();
    return inner_.AllGatherBytes(bytes);
  }
  void Barrier() override {
    Count();
    inner_.Barrier();
  }
  bool has_failed() const { return has_failed_; }

 private:
  void Count() {
    if (left_-- == 0 || has_failed_) {
      has_failed_ = true;
      throw CommunicationError("the network is down.");
    }
  }
  Communicator& inner_;
  int left_;
  bool has_failed_ = false;
};

// Whichever rank goes, at whichever operation of three steps: no rank has weights of a step that
// was not charged, and no step is charged twice.
TEST(DistributedCharge, ComesBeforeEveryRelease) {
  const OneThread one_thread;
  constexpr int kRanks = 3;
  RunCase run = RunCases().front();
  run.plan.steps = 3;
  run.plan.clipping = "adaptive";
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  std::vector<at::Tensor> after;  // the weights after each number of steps
  for (std::int64_t steps = 0; steps <= 3; ++steps) {
    after.push_back(RunOn(1, run, data, [&](Trainer& trainer) {
                      for (std::int64_t i = 0; i < steps; ++i) trainer.Step();
                    }).front());
  }
  int failures = 0;
  for (int failing = 0; failing < kRanks; ++failing) {
    for (int operation = 0;; ++operation) {
      std::vector<std::int64_t> charged;
      std::vector<at::Tensor> weights(kRanks);
      bool has_failed = false;
      std::mutex mutex;
      try {
        RunRanks(kRanks, [&](Communicator& inner) {
          const Net net;
          Failing communicator(inner, inner.Rank() == failing ? operation : 1'000'000);
          const auto keep = [&] {
            const std::lock_guard lock(mutex);
            weights[static_cast<std::size_t>(inner.Rank())] = net.Flat();
            has_failed = has_failed || communicator.has_failed();
          };
          try {
            TrainerOptions options = OptionsOf(run, &communicator);
            options.charge = [&](std::int64_t step, const Event&) { charged.push_back(step); };
            Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
            if (communicator.IsFirst()) {
              trainer.Run();
            } else {
              trainer.Serve();
            }
          } catch (...) {
            keep();
            throw;
          }
          keep();
        });
      } catch (const CommunicationError&) {
      }
      for (std::size_t i = 0; i < charged.size(); ++i) {
        EXPECT_EQ(charged[i], static_cast<std::int64_t>(i));
      }
      for (const at::Tensor& own : weights) {
        std::size_t steps = 0;
        while (steps < after.size() && !at::equal(own, after[steps])) ++steps;
        EXPECT_LE(steps, charged.size()) << "rank " << failing << ", operation " << operation;
      }
      if (!has_failed) break;  // there are no more operations
      ++failures;
    }
  }
  EXPECT_GT(failures, 3 * (2 + 3 * 5));  // the start, and five operations a step
}

TEST(DistributedCharge, ThatIsRefusedReleasesNothing) {
  const OneThread one_thread;
  const RunCase run = RunCases().front();
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const at::Tensor wanted = RunOn(1, run, data, [](Trainer& trainer) { trainer.Step(); }).front();
  std::atomic<int> same = 0;
  RunRanks(4, [&](Communicator& communicator) {
    const Net net;
    TrainerOptions options = OptionsOf(run, &communicator);
    options.charge = [](std::int64_t step, const Event&) {
      if (step == 1) throw Error("the budget is spent.");
    };
    Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
    if (communicator.IsFirst()) {
      trainer.Step();
      EXPECT_THAT([&] { trainer.Step(); }, ThrowsMessage<Error>("the budget is spent."));
      EXPECT_EQ(trainer.steps_done(), 1);
      EXPECT_THROW(trainer.Step(), Error);
    } else {
      trainer.Serve();
    }
    if (at::equal(net.Flat(), wanted)) ++same;
  });
  EXPECT_EQ(same, 4);
}

// An epoch of an allocation is charged when it begins, and once.
TEST(DistributedCharge, IsThatOfOneProcess) {
  RunCase run = RunCases().front();
  run.plan.sampling = "allocation";
  run.plan.steps = 7;
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto charges = [&](Communicator* communicator) {
    std::vector<std::string> events;
    const Net net;
    TrainerOptions options = OptionsOf(run, communicator);
    options.charge = [&](std::int64_t step, const Event& event) {
      events.push_back(std::to_string(step) + " " + event.ToString());
    };
    Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, options);
    if (communicator == nullptr || communicator->IsFirst()) {
      trainer.Run();
    } else {
      trainer.Serve();
    }
    return events;
  };
  const std::vector<std::string> wanted = charges(nullptr);
  ASSERT_EQ(wanted.size(), 7U);
  RunRanks(2, [&](Communicator& communicator) {
    const std::vector<std::string> events = charges(&communicator);
    if (communicator.IsFirst()) {
      EXPECT_EQ(events, wanted);
    } else {
      EXPECT_TRUE(events.empty());
    }
  });
}

TEST(DistributedStep, StopsAllRanksWithTheSentenceOfTheOneThatCannot) {
  const RunCase run = RunCases().front();
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  std::atomic<int> told = 0;
  std::atomic<int> charges = 0;
  RunRanks(3, [&](Communicator& communicator) {
    const Net net;
    TrainerOptions options = OptionsOf(run, &communicator);
    options.charge = [&](std::int64_t, const Event&) { ++charges; };
    const LossFunction loss = [&](const Batch& batch) {
      if (communicator.Rank() == 1) throw Error("this machine has no such operation.");
      return net.loss(batch);
    };
    Trainer trainer(PlanOf(run), net.parameters, loss, data, run.optimizer, options);
    try {
      if (communicator.IsFirst()) {
        trainer.Step();
      } else {
        trainer.Serve();
      }
    } catch (const Error& error) {
      if (std::string(error.what()) == "this machine has no such operation.") ++told;
    }
    EXPECT_TRUE(at::equal(net.Flat(), Net().Flat()));
  });
  EXPECT_EQ(told, 3);
  EXPECT_EQ(charges, 0);
}

// One sentence, on every rank, before anything is charged.
TEST(DistributedTrainer, RefusesByNameWhatItCannotDo) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const auto refusal = [&](const auto& change) {
    RunCase run = RunCases().front();
    TrainerOptions options = OptionsOf(run, nullptr);
    change(run, options);
    std::string sentence;
    RunRanks(2, [&](Communicator& communicator) {
      const Net net;
      TrainerOptions own = options;
      own.communicator = &communicator;
      own.charge = [](std::int64_t, const Event&) { ADD_FAILURE() << "a charge"; };
      try {
        Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer, own);
        ADD_FAILURE() << "nothing was refused";
        communicator.Broadcast("end");
      } catch (const Error& error) {
        if (communicator.IsFirst()) sentence = error.what();
      }
    });
    return sentence;
  };
  EXPECT_THAT(refusal([](RunCase&, TrainerOptions& options) { options.canaries = 4; }),
              HasSubstr("canaries"));
  EXPECT_THAT(refusal([](RunCase& run, TrainerOptions&) {
                run.plan.held_out = {.share = 0.2, .every = 2, .count_noise = NoiseMultiplier(5)};
              }),
              HasSubstr("held-out"));
  EXPECT_THAT(refusal([](RunCase& run, TrainerOptions&) { run.plan.norms = "jl"; }),
              HasSubstr("'jl'"));
  EXPECT_THAT(refusal([](RunCase& run, TrainerOptions&) { run.plan.clipping = "adaclip"; }),
              HasSubstr("'adaclip'"));
}

TEST(DistributedTrainer, RefusesParametersOfSeveralTypesAndRunsWithoutPrivacy) {
  const Dataset data = RandomFeatures(600, kFeatures, 3);
  const RunCase run = RunCases().front();
  const auto alone = SingleProcess();
  Net net;
  net.parameters.push_back({"wide", at::zeros({3}, at::kDouble).set_requires_grad(true)});
  EXPECT_THAT(
      [&] {
        Trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                OptionsOf(run, alone.get()));
      },
      ThrowsMessage<Error>(HasSubstr("'wide'")));
  EXPECT_THAT(
      [&] {
        Trainer::NonPrivate(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                            OptionsOf(run, alone.get()));
      },
      ThrowsMessage<Error>(HasSubstr("without privacy")));
}

}  // namespace
}  // namespace sordino
