// What a step of private training costs on n ranks, in time and in memory (docs/scale.md).
//
// A step has six parts. With P parameters, a batch of B of N records, and n ranks:
//
//   draw       N c_draw                         every rank draws the whole batch from one stream
//   gradients  ceil(B / n) f / F                f flops an example, forward, backward and clipping
//   sum        8 P (n-1)/n / W + (n-1) a        integers, reduce-scatter: n-1 exchanges of P/n
//   noise      P/n c_noise                      each rank noises its shard, and makes its update
//   gather     4 P (n-1)/n / W + (n-1) a        float32 parameters, a ring
//   words      k ceil(log2 n) a                 k announcements of rank 0 (the step, its charge)
//
// with F flops a second, W bytes a second to other ranks, and the latency a of a message. Nothing
// is overlapped. The charge of the ledger is made beside the steps, in blocks of about a second,
// and is not counted.
#ifndef SORDINO_DISTRIBUTED_COST_MODEL_H_
#define SORDINO_DISTRIBUTED_COST_MODEL_H_

#include <array>
#include <string_view>
#include <utility>

namespace sordino {

struct StepJob {
  double parameters = 0;
  double flops_per_example = 0;
  double batch = 0;
  double records = 0;
  double bytes_per_record = 0;
  double ranks = 1;
  double announcements = 4;  // of rank 0, a step
  // Of this many ranks every one draws its own part of the batch instead of the whole (a change
  // that docs/scale.md discusses); 1: every rank draws the whole.
  double draw_shards = 1;
};

struct RankSpeed {
  double flops = 0;          // a second, as reached by clipped gradients
  double bandwidth = 0;      // bytes a second to other ranks
  double latency = 0;        // seconds a message
  double draw_seconds = 0;   // a record
  double noise_seconds = 0;  // a parameter, with the optimizer's update
};

struct RankStepCost {
  double draw = 0;
  double gradients = 0;
  double sum = 0;
  double noise = 0;
  double gather = 0;
  double words = 0;

  double Total() const { return draw + gradients + sum + noise + gather + words; }
  // Named, in the order above.
  std::array<std::pair<std::string_view, double>, 6> Parts() const;
  std::string_view LargestPart() const;
};

RankStepCost CostOfStep(const StepJob& job, const RankSpeed& speed);

// Bytes that a rank sends in a step, without headers.
double BytesSentPerStep(const StepJob& job);

// Bytes that a rank holds beside activations: records (all of them, mapped), parameters in float32,
// sums as 64-bit integers with the parts that it receives, and its shard of an optimizer with two
// float32 numbers a parameter.
double BytesHeld(const StepJob& job);

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_COST_MODEL_H_
