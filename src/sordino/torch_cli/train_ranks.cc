#include "sordino/torch_cli/train_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>

#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/stop.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/program.h"
#include "sordino/distributed/join_secret.h"
#include "sordino/distributed/local_ranks.h"
#include "sordino/distributed/own_process.h"
#include "sordino/runs/distributed_run.h"

namespace sordino {
namespace {

// Ranks of one run are the same program, bit for bit.
std::string ProgramVersion() {
  return fmt::format("{}-{}", SORDINO_VERSION, Sha256HexOfFile("/proc/self/exe").substr(0, 12));
}

int ParseProcesses(const std::string& text) {
  const std::uint64_t processes = ParseWhole("--processes", text);
  if (processes < 1 || processes > kMaxProcesses) {
    throw Error(
        fmt::format("--processes is {}; give a number from 1 to {}.", processes, kMaxProcesses));
  }
  return static_cast<int>(processes);
}

std::chrono::seconds ParseJoinTimeout(const RankOptions& options) {
  if (!options.join_timeout) return kJoinTimeout;
  const std::uint64_t seconds = ParseWhole("--join-timeout", *options.join_timeout);
  if (seconds < 1 || seconds > static_cast<std::uint64_t>(kMaxJoinTimeout.count())) {
    throw Error(fmt::format("--join-timeout is {}; give seconds from 1 to {}.", seconds,
                            kMaxJoinTimeout.count()));
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

void AddRankFlags(CLI::App& command, RankOptions& options) {
  command
      .add_option(
          "--processes", options.processes,
          "Train with so many processes on this machine; their number does not change the result")
      ->type_name("N")
      ->group("Run");
  command
      .add_option(
          "--join-timeout", options.join_timeout,
          fmt::format("How long ranks wait for each other at the start ({})", kJoinTimeout.count()))
      ->type_name("SECONDS")
      ->group("Run");
  command
      .add_flag("--trust-network", options.trust_network,
                "GPUs of several machines exchange sums over NCCL, which does not encrypt them")
      ->group("Run");
}

std::optional<int> RunAsParent(const RankOptions& options) {
  ParseJoinTimeout(options);
  if (!options.processes || IsLocalRank()) return std::nullopt;
  const int processes = ParseProcesses(*options.processes);
  const std::optional<LaunchEnvironment> environment = ReadLaunchEnvironment();
  if (environment && environment->size > 1) {
    throw Error(fmt::format(
        "--processes starts ranks, and this process is rank {} of {} by its environment; leave out "
        "--processes, or unset RANK and WORLD_SIZE (or their names of MPI or Slurm).",
        environment->rank, environment->size));
  }
  if (processes == 1) return std::nullopt;
  return RunLocalRanks({.program = OwnProgram(),
                        .words = OwnWords(),
                        .processes = processes,
                        .lost_code = kLostRank});
}

std::unique_ptr<ProcessGroup> JoinRanks(const RankOptions& options) {
  const std::optional<LaunchEnvironment> environment = ReadLaunchEnvironment();
  if (!environment || environment->size == 1) return nullptr;
  if (environment->rank != 0) CloseStandardOutput();
  GroupOptions group;
  group.environment = *environment;
  group.secret = ReadJoinSecret();
  group.trusts_network = options.trust_network;
  group.version = ProgramVersion();
  group.join_timeout = ParseJoinTimeout(options);
  group.on_loss = [json = options.json](const std::string& sentence) {
    Report(kLostRank, sentence, json);
    std::cout.flush();
    ::_exit(kLostRank);
  };
  try {
    return JoinGroup(group);
  } catch (const CommunicationError& error) {
    Report(kLostRank, error.what(), options.json);
    throw EndWith{kLostRank};
  }
}

void RunAsRank(ProcessGroup& group, const RankOptions& options, const std::string& settings,
               const std::function<PreparedRun()>& prepare,
               const std::function<void(PreparedRun& run)>& train) {
  const StopGuard guard;
  try {
    RequireSameSettings(group, settings);
    if (!group.IsFirst()) {
      PreparedRun run = ReceiveRun(group, LocalRank());
      ServeTraining(run);
      const int code = std::stoi(group.Broadcast(""));
      group.Leave();
      if (code != 0) throw EndWith{code};
      return;
    }
    std::optional<PreparedRun> run;
    try {
      run.emplace(prepare());
    } catch (const Error& error) {
      ShareRefusal(error.what(), group);
      throw;
    }
    ShareRun(*run, group);
    int code = 0;
    try {
      train(*run);
    } catch (const EndWith& end) {
      code = end.code;  // everything is written
    }
    group.Broadcast(fmt::format("{}", code));
    group.Leave();
    if (code != 0) throw EndWith{code};
  } catch (const CommunicationError& error) {
    Report(kLostRank, error.what(), options.json);
    throw EndWith{kLostRank};
  }
}

int LocalRank() {
  const std::optional<LaunchEnvironment> environment = ReadLaunchEnvironment();
  return environment ? environment->local_rank : 0;
}

bool IsRestarted() {
  const std::optional<LaunchEnvironment> environment = ReadLaunchEnvironment();
  return environment && environment->restart > 0;
}

}  // namespace sordino
