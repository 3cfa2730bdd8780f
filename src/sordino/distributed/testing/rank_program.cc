// A rank of the tests with real processes: rank_program SCENARIO [WHICH] reads its rank from the
// environment, and says on standard error, in one sentence, how it ended. WHICH is the rank that
// something happens to. rank_program processes N SCENARIO [WHICH] starts N of them.
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/distributed/agreement.h"
#include "sordino/distributed/join_secret.h"
#include "sordino/distributed/local_ranks.h"
#include "sordino/distributed/process_group.h"

namespace sordino {
namespace {

constexpr int kLost = 4;

// Element i of what rank r brings is (r + 1) * (i % 1000 - 500) * 2^40, so that sums need 64 bits.
at::Tensor Brought(std::int64_t elements, int rank) {
  return at::arange(elements, at::kLong).remainder_(1000).sub_(500).mul_((rank + 1LL) << 40);
}

void CheckSums(Communicator& group) {
  const int size = group.Size();
  const std::int64_t ranks = std::int64_t{size} * (size + 1) / 2;
  for (const std::int64_t shard : {1, 7, 1000, 100'003}) {
    const std::int64_t elements = shard * size;
    const at::Tensor total = Brought(elements, 0).mul_(ranks);
    at::Tensor part = at::zeros({shard}, at::kLong);
    const std::int64_t before = group.bytes_sent();
    group.ReduceScatterSum(Brought(elements, group.Rank()), part);
    SORDINO_CHECK(at::equal(part, total.narrow(0, group.Rank() * shard, shard)), "a part is wrong");
    at::Tensor all = at::zeros({elements}, at::kLong);
    group.AllGather(part, all);
    SORDINO_CHECK(at::equal(all, total), "what was gathered is wrong");
    SORDINO_CHECK(group.bytes_sent() - before == 2 * shard * (size - 1) * 8,
                  "bytes are miscounted");
    // A size that is no multiple of the ranks.
    at::Tensor odd = Brought(elements + 1, group.Rank());
    group.AllReduceSum(odd);
    SORDINO_CHECK(at::equal(odd, Brought(elements + 1, 0).mul_(ranks)), "a sum is wrong");
  }
  at::Tensor floats = at::zeros({size, 3}, at::kFloat);
  group.AllGather(at::full({3}, group.Rank() + 0.5, at::kFloat), floats);
  for (int rank = 0; rank < size; ++rank) {
    SORDINO_CHECK(floats[rank][2].item<float>() == static_cast<float>(rank) + 0.5F, "a float");
  }
}

void CheckBytes(Communicator& group) {
  const std::string key("k\0ey", 4);
  SORDINO_CHECK(group.Broadcast(group.IsFirst() ? key : "not read") == key, "a broadcast is wrong");
  SORDINO_CHECK(group.Broadcast("").empty(), "nothing is broadcast as nothing");
  const auto all = group.AllGatherBytes(std::string(static_cast<std::size_t>(group.Rank()), 'x'));
  for (int rank = 0; rank < group.Size(); ++rank) {
    SORDINO_CHECK(all[static_cast<std::size_t>(rank)].size() == static_cast<std::size_t>(rank),
                  "bytes are wrong");
  }
}

GroupOptions Options(const std::string& scenario, bool is_it) {
  GroupOptions options;
  options.environment = *ReadLaunchEnvironment();
  options.secret = ReadJoinSecret();
  options.version = scenario == "version" && is_it ? "0.0.1" : "0.1.0";
  // Short, so that tests are; long enough for sixteen ranks on a busy machine.
  options.silence = std::chrono::seconds(8);
  options.stall = std::chrono::seconds(6);
  if (scenario == "missing") options.join_timeout = std::chrono::seconds(3);
  if (scenario == "hosts" && is_it) options.host = "another";
  options.on_loss = [](const std::string& sentence) {
    std::cerr << "lost: " << sentence << std::endl;
    ::_exit(kLost);
  };
  return options;
}

// Operations without end, until something happens to one of the ranks.
void Work(ProcessGroup& group, const std::string& scenario, bool is_it) {
  for (int i = 0;; ++i) {
    if (i == 20 && is_it) {
      if (scenario == "die") ::raise(SIGKILL);
      if (scenario == "hang") ::raise(SIGSTOP);
      if (scenario == "throw") throw Error("the disk of this rank is full.");
      // The rank lives, says so, and has begun another operation than the others.
      if (scenario == "stall") {
        group.Broadcast("an operation that the others do not make");
      }
      // Longer than silence and stall: a rank that computes is not lost.
      if (scenario == "compute") std::this_thread::sleep_for(std::chrono::seconds(12));
    }
    if (i == 22 && (scenario == "compute" || scenario == "work")) return;
    at::Tensor values = at::full({1000}, 1, at::kLong);
    group.AllReduceSum(values);
  }
}

// Until one of the ranks was asked to stop.
int WaitForSignal(ProcessGroup& group) {
  const StopGuard guard;
  AgreeToStop(group);  // every rank has its guard
  if (group.IsFirst()) std::cout << "ready" << std::endl;
  int steps = 0;
  for (; !AgreeToStop(group); ++steps) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const std::string& other : group.AllGatherBytes(std::to_string(steps))) {
    SORDINO_CHECK(other == std::to_string(steps), "a rank has stopped at another step");
  }
  group.Leave();
  if (group.IsFirst()) std::cout << "all ranks were asked to stop" << std::endl;
  return 128 + StopGuard::Signal();
}

int RunRank(const std::string& scenario, bool is_it) {
  if (scenario == "exit" && is_it) throw Error("this rank does not even join.");
  const std::unique_ptr<ProcessGroup> group = JoinGroup(Options(scenario, is_it));
  if (scenario == "signal") return WaitForSignal(*group);
  if (scenario == "sums" || scenario == "hosts") {
    // They share the first GPU, or have none.
    const c10::Device gpu(c10::kCUDA, 0);
    group->UseDevice(at::hasCUDA() ? gpu : c10::Device(c10::kCPU));
    SORDINO_CHECK(group->DeviceFor(gpu).is_cpu(), "ranks that share a GPU exchange on the CPU");
    CheckSums(*group);
    CheckBytes(*group);
  } else if (scenario == "agree") {
    RequireAgreement(*group, {{"settings", "a"}, {"data", is_it ? "7391" : "7392"}},
                     std::string(32, 's'));
  } else {
    Work(*group, scenario, is_it);
  }
  group->Leave();
  if (group->IsFirst()) std::cout << "rank 0 speaks" << std::endl;
  return 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "processes") {
    return sordino::RunLocalRanks({.program = argv[0],
                                   .words = {argv + 3, argv + argc},
                                   .processes = std::atoi(argv[2]),
                                   .lost_code = sordino::kLost});
  }
  const std::string scenario = argc > 1 ? argv[1] : "sums";
  const char* rank = std::getenv("RANK");
  const bool is_it = argc > 2 && rank != nullptr && std::string(argv[2]) == rank;
  try {
    return sordino::RunRank(scenario, is_it);
  } catch (const sordino::CommunicationError& error) {
    std::cerr << "lost: " << error.what() << std::endl;
    return sordino::kLost;
  } catch (const sordino::Error& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 2;
  }
}
