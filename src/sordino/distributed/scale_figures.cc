// The cost model of a step beside measurements, and at scale (docs/scale.md).
//
//   scale_figures exchange [N]   measures sums and gathers of N local ranks (2), fits bandwidth and
//                                latency to two sizes, and predicts the others
//   scale_figures model PARAMETERS FLOPS_PER_EXAMPLE BATCH RECORDS RANKS FLOPS BANDWIDTH LATENCY
//                       DRAW_SECONDS NOISE_SECONDS
//                                prints the parts of a step
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "sordino/distributed/cost_model.h"
#include "sordino/distributed/launch_environment.h"
#include "sordino/distributed/local_ranks.h"
#include "sordino/distributed/process_group.h"

namespace sordino {
namespace {

constexpr int kRepetitions = 15;

// The fastest of some: what else the machine does only adds to it.
double SecondsOfExchange(ProcessGroup& group, std::int64_t parameters) {
  const std::int64_t shard = (parameters + group.Size() - 1) / group.Size();
  const at::Tensor values = at::full({shard * group.Size()}, 1, at::kLong);
  at::Tensor part = at::zeros({shard}, at::kLong);
  at::Tensor all = at::zeros({shard * group.Size()}, at::kFloat);
  const at::Tensor updated = at::zeros({shard}, at::kFloat);
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) {
    group.Barrier();
    const auto start = std::chrono::steady_clock::now();
    group.ReduceScatterSum(values, part);
    group.AllGather(updated, all);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, passed.count());
  }
  return fastest;
}

double Predicted(double parameters, int ranks, const RankSpeed& speed) {
  const RankStepCost cost =
      CostOfStep({.parameters = parameters, .ranks = static_cast<double>(ranks)}, speed);
  return cost.sum + cost.gather;
}

int MeasureExchange() {
  at::set_num_threads(1);
  GroupOptions options;
  options.environment = *ReadLaunchEnvironment();
  options.version = "scale_figures";
  const std::unique_ptr<ProcessGroup> group = JoinGroup(options);
  constexpr std::array<std::int64_t, 6> kSizes = {1'000,     10'000,    100'000,
                                                  1'000'000, 4'000'000, 10'000'000};
  std::vector<double> seconds;
  seconds.reserve(kSizes.size());
  for (const std::int64_t size : kSizes) seconds.push_back(SecondsOfExchange(*group, size));
  if (group->IsFirst()) {
    const int ranks = group->Size();
    const StepJob job = {.parameters = static_cast<double>(kSizes.back()),
                         .ranks = static_cast<double>(ranks)};
    RankSpeed speed = {.flops = 1, .bandwidth = 1, .latency = 0};
    speed.latency = seconds.front() / (2 * (ranks - 1));
    speed.bandwidth = BytesSentPerStep(job) / (seconds.back() - seconds.front());
    fmt::print("{} ranks: latency {:.0f} us, {:.2f} GB/s a rank\n", ranks, speed.latency * 1e6,
               speed.bandwidth / 1e9);
    fmt::print("{:>12} {:>14} {:>14}\n", "parameters", "measured (ms)", "model (ms)");
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      fmt::print("{:>12} {:>14.3f} {:>14.3f}\n", kSizes[i], seconds[i] * 1e3,
                 Predicted(static_cast<double>(kSizes[i]), ranks, speed) * 1e3);
    }
  }
  group->Leave();
  return 0;
}

int PrintModel(const std::vector<double>& values) {
  const StepJob job = {.parameters = values[0],
                       .flops_per_example = values[1],
                       .batch = values[2],
                       .records = values[3],
                       .ranks = values[4]};
  const RankSpeed speed = {.flops = values[5],
                           .bandwidth = values[6],
                           .latency = values[7],
                           .draw_seconds = values[8],
                           .noise_seconds = values[9]};
  const RankStepCost cost = CostOfStep(job, speed);
  for (const auto& [name, seconds] : cost.Parts()) fmt::print("{:<10} {:.4g} s\n", name, seconds);
  fmt::print("{:<10} {:.4g} s, most of it: {}\n", "step", cost.Total(), cost.LargestPart());
  fmt::print("{:<10} {:.4g} bytes sent by a rank\n", "volume", BytesSentPerStep(job));
  return 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "exchange" && sordino::IsLocalRank()) return sordino::MeasureExchange();
  if (what == "exchange") {
    return sordino::RunLocalRanks({.program = "/proc/self/exe",
                                   .words = {"exchange"},
                                   .processes = argc > 2 ? std::atoi(argv[2]) : 2});
  }
  if (what == "model" && argc == 12) {
    std::vector<double> values;
    for (int i = 2; i < argc; ++i) values.push_back(std::atof(argv[i]));
    return sordino::PrintModel(values);
  }
  std::cerr
      << "scale_figures exchange [N], or scale_figures model and ten numbers; see its source.\n";
  return 2;
}
