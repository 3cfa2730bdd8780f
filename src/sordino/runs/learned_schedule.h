// A schedule of the noise that is learned on public data, for runs on private data.
//
// For each seed the run of the settings is made once as it is, and once for every block of steps
// with `factor` times the noise in that block. Runs of one seed share their first weights, their
// batches and the noise of the other blocks, so that their final losses differ by what the block
// does. theory/learned_influence.h makes a schedule of the differences: the best one for the decay
// that is fitted to them, or equal noise where there is none beyond chance. The runs are seeded:
// nothing about them is private. The seed of the model decides all of their seeds: settings with
// another one have other first weights, batches and noise in every run.
#ifndef SORDINO_RUNS_LEARNED_SCHEDULE_H_
#define SORDINO_RUNS_LEARNED_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "sordino/runs/train_config.h"
#include "sordino/theory/learned_influence.h"

namespace sordino {

struct LearnOptions {
  std::int64_t seeds = 8;
  std::int64_t blocks = 8;
  double factor = 3;
  // The share that is done; may throw.
  std::function<void(double share)> progress = {};
};

struct LearnedSchedule {
  std::vector<BlockInfluence> blocks;
  DecayTest test;
  InfluenceSchedule schedule;
  std::int64_t runs = 0;
};

// Throws Error for settings that cannot be learned from: a noise schedule of its own, no privacy,
// random allocation (whose steps have equal noise), fewer steps than blocks, numbers out of range.
LearnedSchedule LearnSchedule(const TrainConfig& config, const LearnOptions& options);

}  // namespace sordino

#endif  // SORDINO_RUNS_LEARNED_SCHEDULE_H_
