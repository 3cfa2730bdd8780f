#include "sordino/distributed/launch_environment.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "sordino/base/error.h"

namespace sordino {
namespace {

struct LauncherNames {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;  // nullptr: none
};

constexpr LauncherNames kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                     "LOCAL_WORLD_SIZE"};
constexpr std::array<LauncherNames, 2> kMpi = {{
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
}};
constexpr LauncherNames kSlurmStep = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                                      "SLURM_LOCALID", nullptr};
constexpr LauncherNames kSlurmJob = {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
                                     nullptr};

// A variable that is empty is as good as none: scripts write NAME= to take one back.
bool HasVariable(const ReadVariable& read, const char* name) {
  if (name == nullptr) return false;
  const char* value = read(name);
  return value != nullptr && *value != '\0';
}

int WholeVariable(const ReadVariable& read, const char* name, int least, int most) {
  const std::string_view text = read(name);
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw Error(
        fmt::format("{} is '{}' in the environment; it must be a whole number from {} to {}.", name,
                    text.substr(0, 40), least, most));
  }
  return value;
}

void RequireVariable(const ReadVariable& read, const char* name, const char* given,
                     std::string_view what) {
  if (HasVariable(read, name)) return;
  throw Error(
      fmt::format("{} is set in the environment and {} is not; set it to {}, or unset {} to "
                  "train in one process.",
                  given, name, what, given));
}

struct RankAndSize {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};

// Nothing where neither name is set.
std::optional<RankAndSize> RanksBy(const ReadVariable& read, const LauncherNames& names) {
  const bool has_size = HasVariable(read, names.size);
  if (!has_size && !HasVariable(read, names.rank)) return std::nullopt;
  if (!has_size) RequireVariable(read, names.size, names.rank, "the number of ranks");
  RequireVariable(read, names.rank, names.size, "the number of this rank, from 0");
  RankAndSize ranks;
  ranks.size = WholeVariable(read, names.size, 1, kMaxRanks);
  ranks.rank = WholeVariable(read, names.rank, 0, kMaxRanks - 1);
  if (ranks.rank >= ranks.size) {
    throw Error(
        fmt::format("{} is {} and {} is {} in the environment; ranks are numbered from 0 to {}.",
                    names.rank, ranks.rank, names.size, ranks.size, ranks.size - 1));
  }
  if (HasVariable(read, names.local_size)) {
    ranks.local_size = WholeVariable(read, names.local_size, 1, ranks.size);
  }
  ranks.local_rank = ranks.rank;
  if (HasVariable(read, names.local_rank)) {
    const int most = HasVariable(read, names.local_size) ? ranks.local_size : ranks.size;
    ranks.local_rank = WholeVariable(read, names.local_rank, 0, most - 1);
  }
  return ranks;
}

void RequireEqual(const RankAndSize& ours, const RankAndSize& theirs, const LauncherNames& names) {
  if (ours.rank == theirs.rank && ours.size == theirs.size) return;
  throw Error(fmt::format(
      "RANK and WORLD_SIZE are {} and {} in the environment, but {} and {} are {} and {}; unset "
      "those that are wrong.",
      ours.rank, ours.size, names.rank, names.size, theirs.rank, theirs.size));
}

std::optional<RankAndSize> FindRanks(const ReadVariable& read) {
  std::optional<RankAndSize> ranks = RanksBy(read, kTorchrun);
  for (const LauncherNames& names : kMpi) {
    const std::optional<RankAndSize> theirs = RanksBy(read, names);
    if (ranks && theirs) RequireEqual(*ranks, *theirs, names);
    if (!ranks) ranks = theirs;
  }
  if (ranks) return ranks;
  if (HasVariable(read, kSlurmStep.size)) return RanksBy(read, kSlurmStep);
  if (HasVariable(read, kSlurmJob.size) && HasVariable(read, kSlurmJob.rank) &&
      HasVariable(read, "MASTER_ADDR")) {
    return RanksBy(read, kSlurmJob);
  }
  return std::nullopt;
}

}  // namespace

std::optional<LaunchEnvironment> ReadLaunchEnvironment(const ReadVariable& read) {
  const std::optional<RankAndSize> ranks = FindRanks(read);
  if (!ranks) return std::nullopt;
  LaunchEnvironment environment;
  environment.rank = ranks->rank;
  environment.size = ranks->size;
  environment.local_rank = ranks->local_rank;
  environment.local_size = ranks->local_size;
  if (HasVariable(read, "TORCHELASTIC_RESTART_COUNT")) {
    environment.restart = WholeVariable(read, "TORCHELASTIC_RESTART_COUNT", 0, 1'000'000);
  }
  if (environment.size == 1) return environment;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (HasVariable(read, name)) continue;
    throw Error(fmt::format(
        "this is rank {} of {}, and {} is not set in the environment; set MASTER_ADDR to the "
        "machine of rank 0 and MASTER_PORT to a free port there, for all ranks.",
        environment.rank, environment.size, name));
  }
  environment.address = read("MASTER_ADDR");
  environment.port = static_cast<std::uint16_t>(WholeVariable(read, "MASTER_PORT", 1, 65535));
  environment.is_hosted = HasVariable(read, "TORCHELASTIC_USE_AGENT_STORE") &&
                          std::string_view(read("TORCHELASTIC_USE_AGENT_STORE")) == "True";
  return environment;
}

std::optional<LaunchEnvironment> ReadLaunchEnvironment() {
  return ReadLaunchEnvironment([](const char* name) { return std::getenv(name); });
}

}  // namespace sordino
