// Runs on several ranks, which are threads here (distributed/testing/threads_communicator.h).
#ifndef SORDINO_TRAINING_TESTING_DISTRIBUTED_CASES_H_
#define SORDINO_TRAINING_TESTING_DISTRIBUTED_CASES_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/distributed/testing/threads_communicator.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/testing/takes_turns.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {

inline constexpr std::int64_t kFeatures = 5;
inline constexpr std::int64_t kHidden = 37;  // shards begin anywhere

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

struct NetOptions {
  c10::Device device = at::kCPU;
  bool convolves = false;  // features are an image of one row
};

// Two layers; every rank has its own.
struct Net {
  explicit Net(std::uint64_t seed = 7, NetOptions options = {}) {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    const auto make = [&](const char* name, at::IntArrayRef sizes) {
      at::Tensor value =
          at::randn(sizes, generator).mul_(0.4).to(options.device).set_requires_grad(true);
      parameters.push_back({name, value});
      return value;
    };
    constexpr std::int64_t kWidth = 3;  // of a kernel
    const at::Tensor w = options.convolves ? make("first.weight", {kHidden, 1, 1, kWidth})
                                           : make("first.weight", {kHidden, kFeatures});
    const at::Tensor b = make("first.bias", {kHidden});
    const at::Tensor v = make(
        "second.weight", {2, options.convolves ? kHidden * (kFeatures - kWidth + 1) : kHidden});
    loss = [=](const Batch& batch) {
      const at::Tensor first = options.convolves
                                   ? at::conv2d(batch[0].unsqueeze(1).unsqueeze(1), w, b).flatten(1)
                                   : at::linear(batch[0], w, b);
      const at::Tensor logits = at::linear(first.tanh(), v);
      return logits.logsumexp(1) - logits.gather(1, batch[1].unsqueeze(1)).squeeze(1);
    };
  }

  at::Tensor Flat() const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parts;
    for (const NamedParameter& p : parameters) parts.push_back(p.value.detach().reshape({-1}));
    return at::cat(parts).to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }

  std::vector<NamedParameter> parameters;
  LossFunction loss;
};

struct RunCase {
  const char* name;
  PlanOptions plan;
  OptimizerOptions optimizer = {.learning_rate = 0.3};
  std::int64_t physical_batch = 0;
  NetOptions net = {};
  std::int64_t canaries = 0;        // gradients
  std::int64_t canary_records = 0;  // or records

  bool ComputesAlone() const { return plan.norms.name == "jl"; }
};

inline void PrintTo(const RunCase& run, std::ostream* out) { *out << run.name; }

inline PlanOptions PoissonPlan(std::int64_t records, double batch, std::int64_t steps) {
  PlanOptions options;
  options.records = records;
  options.batch = batch;
  options.steps = steps;
  return options;
}

inline std::vector<RunCase> RunCases() {
  std::vector<RunCase> cases;
  const PlanOptions poisson = PoissonPlan(600, 200, 4);
  const auto add = [&](const char* name, auto change) {
    RunCase run{.name = name, .plan = poisson};
    change(run);
    cases.push_back(run);
  };
  add("Poisson", [](RunCase&) {});
  add("Convolution", [](RunCase& run) { run.net.convolves = true; });
  add("Full", [](RunCase& run) { run.plan.sampling = "full"; });
  add("CorrelatedNoise", [](RunCase& run) {
    run.plan.noise = {"gaussian", {{"noise-correlation", "banded:3"}}};
  });
  add("CorrelatedNoiseInOrder", [](RunCase& run) {
    run.plan.sampling = "ordered";
    run.plan.adjacency = Adjacency::kZeroOut;
    run.plan.noise = {"gaussian", {{"noise-correlation", "tree"}}};
  });
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
  // A failure probability that few directions meet.
  add("EstimatedNorms", [](RunCase& run) {
    run.plan.norms = {"jl", {{"jl-directions", std::int64_t{16}}, {"jl-failure", 1e-6}}};
  });
  add("EstimatedNormsAdaptiveLayerwise", [](RunCase& run) {
    run.plan.norms = {"jl", {{"jl-directions", std::int64_t{16}}, {"jl-failure", 1e-6}}};
    run.plan.clipping = "adaptive-layerwise";
    run.physical_batch = 7;
  });
  add("Preconditioned", [](RunCase& run) {
    run.plan.clipping = {"preconditioned", {{"clip-moment-decay", 0.5}}};
  });
  add("AdaClip", [](RunCase& run) {
    run.plan.clipping = "adaclip";
    run.optimizer = {.learning_rate = 3};
  });
  add("AdaClipMicroBatchesAdam", [](RunCase& run) {
    run.plan.clipping = {"adaclip", {{"clip-variance-factor", 200.0}}};
    run.plan.sampling = "fixed";
    run.plan.adjacency = Adjacency::kReplaceOne;
    run.plan.micro_batch = 3;
    run.optimizer = {.algorithm = "adam", .learning_rate = 0.01};
  });
  add("HeldOut", [](RunCase& run) {
    run.plan.held_out = {.share = 0.2, .every = 1, .count_noise = NoiseMultiplier(5)};
  });
  add("Canaries", [](RunCase& run) {
    run.plan.records = 640;
    run.canaries = 40;
    run.plan.clipping = "adaptive";
  });
  add("CanariesAdaClipReplaceOne", [](RunCase& run) {
    run.canaries = 40;
    run.plan.adjacency = Adjacency::kReplaceOne;
    run.plan.clipping = "adaclip";
    run.optimizer = {.learning_rate = 3};
  });
  add("CanaryRecords", [](RunCase& run) {
    run.plan.records = 640;
    run.canary_records = 40;
  });
  add("CanaryRecordsReplaceOne", [](RunCase& run) {
    run.plan.records = 640;
    run.canary_records = 40;
    run.plan.adjacency = Adjacency::kReplaceOne;
    run.plan.clipping = "layerwise";
  });
  return cases;
}

inline RunCase CaseOf(std::string_view name) {
  for (const RunCase& run : RunCases()) {
    if (run.name == name) return run;
  }
  SORDINO_CHECK(false, "there is no such case");
  return {};
}

inline PrivacyPlan PlanOf(const RunCase& run, double noise = 0.8) {
  return {run.plan, NoiseMultiplier(noise), Delta(1e-5)};
}

// What each step of a run adds to the weights.
inline std::vector<at::Tensor> Updates(Trainer& trainer, const Weights& weights) {
  std::vector<at::Tensor> updates;
  at::Tensor last = weights.value.detach().clone();
  trainer.Run([&](std::int64_t) {
    updates.push_back((weights.value.detach() - last).to(at::kDouble));
    last = weights.value.detach().clone();
    return true;
  });
  return updates;
}

// Without what needs the net.
inline TrainerOptions OptionsOf(const RunCase& run, Communicator* communicator) {
  TrainerOptions options;
  options.insecure_seed = 11;
  options.loader.device = run.net.device;
  options.gradients.physical_batch = run.physical_batch;
  options.communicator = communicator;
  options.canaries = run.canaries;
  if (run.canary_records > 0) {
    CanaryRecords& canaries = options.canary_records.emplace();
    canaries.records = RandomFeatures(run.canary_records, kFeatures, 12);
    canaries.records.inputs.mul_(3);
    canaries.other_labels = 1 - canaries.records.labels;
  }
  return options;
}

inline TrainerOptions OptionsOf(const RunCase& run, Communicator* communicator, const Net& net) {
  TrainerOptions options = OptionsOf(run, communicator);
  if (run.plan.held_out) {
    // The gain is never reached: every measurement but the first lowers the noise.
    options.held_out = HeldOutOptions{.is_right =
                                          [loss = net.loss](const Batch& batch) {
                                            return loss(batch).lt(std::log(2.0)).to(at::kFloat);
                                          },
                                      .rule = {.gain = 1e6}};
  }
  return options;
}

// What `lead` makes of rank 0's trainer, while the others serve; the weights of this rank.
inline at::Tensor RunAsRankOf(Communicator& communicator, const RunCase& run, const Dataset& data,
                              const std::function<void(Trainer&)>& lead) {
  // Others begin with other values, and get those of rank 0.
  const Net net(communicator.IsFirst() ? 7 : 8, run.net);
  {
    Trainer trainer(PlanOf(run), net.parameters, net.loss, data, run.optimizer,
                    OptionsOf(run, &communicator, net));
    if (communicator.IsFirst()) {
      lead(trainer);
    } else {
      trainer.Serve();
    }
  }
  return net.Flat();
}

// The weights of every rank.
inline std::vector<at::Tensor> RunOn(int ranks, const RunCase& run, const Dataset& data,
                                     const std::function<void(Trainer&)>& lead,
                                     bool takes_devices = false) {
  const OneThread one_thread;
  std::vector<at::Tensor> weights(static_cast<std::size_t>(ranks));
  RunRanks(
      ranks,
      [&](Communicator& all) {
        TakesTurns communicator(all, run.ComputesAlone());
        weights[static_cast<std::size_t>(communicator.Rank())] =
            RunAsRankOf(communicator, run, data, lead);
      },
      takes_devices);
  return weights;
}

}  // namespace sordino

#endif  // SORDINO_TRAINING_TESTING_DISTRIBUTED_CASES_H_
