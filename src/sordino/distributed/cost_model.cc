#include "sordino/distributed/cost_model.h"

#include <algorithm>
#include <cmath>

namespace sordino {
namespace {

constexpr double kSumBytes = 8;        // 64-bit integers
constexpr double kParameterBytes = 4;  // float32
constexpr double kOptimizerBytes = 8;  // two float32

double OthersShare(const StepJob& job) { return (job.ranks - 1) / job.ranks; }

}  // namespace

std::array<std::pair<std::string_view, double>, 6> RankStepCost::Parts() const {
  return {{{"draw", draw},
           {"gradients", gradients},
           {"sum", sum},
           {"noise", noise},
           {"gather", gather},
           {"words", words}}};
}

std::string_view RankStepCost::LargestPart() const {
  const auto parts = Parts();
  return std::max_element(parts.begin(), parts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

RankStepCost CostOfStep(const StepJob& job, const RankSpeed& speed) {
  const double messages = (job.ranks - 1) * speed.latency;
  RankStepCost cost;
  cost.draw = job.records * speed.draw_seconds / job.draw_shards;
  cost.gradients = std::ceil(job.batch / job.ranks) * job.flops_per_example / speed.flops;
  cost.noise = job.parameters / job.ranks * speed.noise_seconds;
  if (job.ranks == 1) return cost;
  cost.sum = job.parameters * kSumBytes * OthersShare(job) / speed.bandwidth + messages;
  cost.gather = job.parameters * kParameterBytes * OthersShare(job) / speed.bandwidth + messages;
  cost.words = job.announcements * std::ceil(std::log2(job.ranks)) * speed.latency;
  return cost;
}

double BytesSentPerStep(const StepJob& job) {
  return job.parameters * (kSumBytes + kParameterBytes) * OthersShare(job);
}

double BytesHeld(const StepJob& job) {
  return job.records * job.bytes_per_record + job.parameters * (kParameterBytes + kSumBytes) +
         job.parameters / job.ranks * (kSumBytes + kOptimizerBytes);
}

}  // namespace sordino
