// A rank of a real training that kills itself at a named instant of a step.
//
//   killed_rank N CONFIG OUT RANK STEP PHASE   starts N ranks of CONFIG and ends as they do
//
// RANK gets SIGKILL in its step number STEP, from 0, at PHASE (killed_phase.h).
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/cli/program.h"
#include "sordino/distributed/local_ranks.h"
#include "sordino/distributed/own_process.h"
#include "sordino/runs/train_settings.h"
#include "sordino/runs/training_run.h"
#include "sordino/torch_cli/testing/killed_phase.h"
#include "sordino/torch_cli/train_ranks.h"

namespace sordino {
namespace {

// The operations of a step in the order in which a run with counts makes them.
class DyingGroup : public ProcessGroup {
 public:
  // step < 0: it lives.
  DyingGroup(ProcessGroup& inner, int step, int phase)
      : inner_(inner), left_(step), phase_(phase) {}

  int Rank() const override { return inner_.Rank(); }
  int Size() const override { return inner_.Size(); }
  void AllReduceSum(at::Tensor& values) override {
    In(kAddCounts, [&] { inner_.AllReduceSum(values); });
  }
  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    In(kAddSums, [&] { inner_.ReduceScatterSum(values, shard); });
  }
  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    In(kGatherWeights, [&] { inner_.AllGather(shard, all); });
    if (!in_step_) return;
    in_step_ = false;
    --left_;
  }
  // Of the first the others know afterwards that it was the announcement of a step.
  std::string Broadcast(const std::string& bytes) override {
    if (in_step_) {
      std::string told;
      In(kAnnounceCharge, [&] { told = inner_.Broadcast(bytes); });
      return told;
    }
    if (!IsFirst() || bytes == "step") DieAt(2 * kAnnounceStep);
    std::string told = inner_.Broadcast(bytes);
    in_step_ = told == "step";
    if (in_step_) DieAt(2 * kAnnounceStep + 1);
    return told;
  }
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
    std::vector<std::string> all;
    In(kAgree, [&] { all = inner_.AllGatherBytes(bytes); });
    return all;
  }
  void Barrier() override { inner_.Barrier(); }
  void Leave() override { inner_.Leave(); }

 private:
  template <typename Operation>
  void In(StepOperation which, const Operation& operation) {
    if (in_step_) DieAt(2 * which);
    operation();
    if (in_step_) DieAt(2 * which + 1);
  }
  void DieAt(int phase) const {
    if (left_ == 0 && phase == phase_) ::raise(SIGKILL);
  }

  ProcessGroup& inner_;
  int left_;  // steps until then
  int phase_;
  bool in_step_ = false;
};

int RunRank(const std::string& file, const std::string& out, bool dies, int step, int phase) {
  const RankOptions options;
  const std::unique_ptr<ProcessGroup> group = JoinRanks(options);
  DyingGroup dying(*group, dies ? step : -1, phase);
  RunAsRank(
      dying, options, file,
      [&] {
        TrainConfig config = ReadTrainConfig(file);
        config.run.out = out;
        return PrepareRun(config);
      },
      [](PreparedRun& run) {
        RunObserver silent;
        RunTraining(run, silent);
      });
  return 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  try {
    if (!sordino::IsLocalRank()) {
      return sordino::RunLocalRanks({.program = sordino::OwnProgram(),
                                     .words = {argv + 1, argv + argc},
                                     .processes = std::atoi(argv[1]),
                                     .lost_code = sordino::kLostRank});
    }
    return sordino::RunRank(argv[2], argv[3], std::string(argv[4]) == std::getenv("RANK"),
                            std::atoi(argv[5]), std::atoi(argv[6]));
  } catch (const sordino::EndWith& end) {
    return end.code;
  } catch (const sordino::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
