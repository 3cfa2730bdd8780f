// Which rank this process is, as the program that started it says by environment variables.
//
// | started by | rank | ranks | rank and ranks on this machine |
// |---|---|---|---|
// | torchrun, or by hand | RANK | WORLD_SIZE | LOCAL_RANK, LOCAL_WORLD_SIZE |
// | Open MPI | OMPI_COMM_WORLD_RANK | OMPI_COMM_WORLD_SIZE | OMPI_COMM_WORLD_LOCAL_... |
// | MPICH and others with PMI | PMI_RANK | PMI_SIZE | MPI_LOCALRANKID, MPI_LOCALNRANKS |
// | Slurm's srun | SLURM_PROCID | SLURM_STEP_NUM_TASKS | SLURM_LOCALID, - |
//
// The first row that is there counts: torchrun may run below srun, one for each machine. The names
// of MPI beside those of torchrun must say the same. SLURM_NTASKS stands in for
// SLURM_STEP_NUM_TASKS where MASTER_ADDR is set: it is also there in batch scripts, whose commands
// are not ranks.
//
// Ranks meet at MASTER_ADDR and MASTER_PORT, where rank 0 listens. Where torchrun listens there
// itself (TORCHELASTIC_USE_AGENT_STORE), rank 0 connects like the others.
#ifndef SORDINO_DISTRIBUTED_LAUNCH_ENVIRONMENT_H_
#define SORDINO_DISTRIBUTED_LAUNCH_ENVIRONMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sordino {

inline constexpr int kMaxRanks = 65536;

struct LaunchEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;   // among the ranks on this machine; the rank where it is not said
  int local_size = 1;   // ranks on this machine; 1 where it is not said
  std::string address;  // where ranks meet; empty for one rank
  std::uint16_t port = 0;
  bool is_hosted = false;  // another process listens there
  int restart = 0;         // how often torchrun has started the ranks again
};

// The value of a variable, or nullptr.
using ReadVariable = std::function<const char*(const char* name)>;

// Nothing where the environment says nothing of ranks. Throws Error, one sentence, for what
// contradicts itself or is not complete.
std::optional<LaunchEnvironment> ReadLaunchEnvironment(const ReadVariable& read);
// That of this process.
std::optional<LaunchEnvironment> ReadLaunchEnvironment();

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_LAUNCH_ENVIRONMENT_H_
