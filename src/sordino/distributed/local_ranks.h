// Several ranks on this machine, started by one parent: `sordino train --processes N`.
//
// The parent has the store in which they meet, on a free port of loopback, starts the program N
// times and waits. Rank 0 speaks for all: it has the parent's standard output and error. What the
// others write to standard error is kept and shown only where one of them failed first and rank 0
// did not. A rank that ends badly ends the others, and its exit code is the parent's. SIGINT,
// SIGTERM and SIGHUP are passed on to all ranks, those included that end one of them. A parent that
// is killed takes its ranks with it.
#ifndef SORDINO_DISTRIBUTED_LOCAL_RANKS_H_
#define SORDINO_DISTRIBUTED_LOCAL_RANKS_H_

#include <string>
#include <vector>

namespace sordino {

// On one machine.
inline constexpr int kMaxProcesses = 256;

// Set in the environment of ranks that a parent has started.
inline constexpr const char* kParentVariable = "SORDINO_PARENT";

// Whether this process is such a rank.
bool IsLocalRank();

struct LocalRanksOptions {
  std::string program;             // absolute
  std::vector<std::string> words;  // after its name
  int processes = 2;
  int lost_code = 4;  // where a rank was killed by another signal than those
};

// Returns the exit code when all ranks have ended.
int RunLocalRanks(const LocalRanksOptions& options);

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_LOCAL_RANKS_H_
