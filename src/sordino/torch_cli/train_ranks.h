// `sordino train` with several processes: the parent that starts them, and a rank of them.
#ifndef SORDINO_TORCH_CLI_TRAIN_RANKS_H_
#define SORDINO_TORCH_CLI_TRAIN_RANKS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sordino/distributed/process_group.h"
#include "sordino/runs/training_run.h"

namespace CLI {
class App;
}

namespace sordino {

struct RankOptions {
  std::optional<std::string> processes;
  std::optional<std::string> join_timeout;
  bool trust_network = false;
  bool json = false;
};

// --processes, --join-timeout and --trust-network.
void AddRankFlags(CLI::App& command, RankOptions& options);

// Starts the ranks of --processes and waits for them; returns their exit code. Nothing where this
// process trains itself.
std::optional<int> RunAsParent(const RankOptions& options);

// The ranks that this process was started with, by --processes, torchrun, mpirun or srun; null
// where it is alone. Only rank 0 has standard output from now on.
std::unique_ptr<ProcessGroup> JoinRanks(const RankOptions& options);

// What a rank does: all of them compare `settings`; rank 0 prepares the run and makes it with
// `train`, which is told what to call at its end; the others take part, and end with its code. Ends
// with kLostRank when a rank is lost.
void RunAsRank(ProcessGroup& group, const RankOptions& options, const std::string& settings,
               const std::function<PreparedRun()>& prepare,
               const std::function<void(PreparedRun& run)>& train);

// Which of the ranks on this machine this process is; 0 where it is alone.
int LocalRank();

// Whether torchrun has started the ranks again after one of them failed.
bool IsRestarted();

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TRAIN_RANKS_H_
