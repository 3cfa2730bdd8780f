// The cost model of a step beside measurements, and at scale (docs/scale.md).
//
//   scale_figures exchange [N]   measures sums and gathers of N local ranks (2), fits bandwidth and
//                                latency to two sizes, and predicts the others
//   scale_figures join N         N ranks, threads with a connection each, meet in one store, with
//                                and without HMACs
//   scale_figures seal           HMACs and sealed messages of one thread
//   scale_figures model PARAMETERS FLOPS_PER_EXAMPLE BATCH RECORDS RANKS FLOPS BANDWIDTH LATENCY
//                       DRAW_SECONDS NOISE_SECONDS
//                                prints the parts of a step
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "sordino/distributed/cost_model.h"
#include "sordino/distributed/internal/gathering.h"
#include "sordino/distributed/internal/group_store.h"
#include "sordino/distributed/internal/listening_socket.h"
#include "sordino/distributed/internal/message_seal.h"
#include "sordino/distributed/join_secret.h"
#include "sordino/distributed/launch_environment.h"
#include "sordino/distributed/local_ranks.h"
#include "sordino/distributed/process_group.h"

namespace sordino {
namespace {

constexpr int kRepetitions = 15;

// The fastest of some: what else the machine does only adds to it.
double SecondsOfExchange(ProcessGroup& group, std::int64_t parameters) {
  const std::int64_t shard = (parameters + group.Size() - 1) / group.Size();
  const at::Tensor values = at::full({shard * group.Size()}, 1, at::kLong);
  at::Tensor part = at::zeros({shard}, at::kLong);
  at::Tensor all = at::zeros({shard * group.Size()}, at::kFloat);
  const at::Tensor updated = at::zeros({shard}, at::kFloat);
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) {
    group.Barrier();
    const auto start = std::chrono::steady_clock::now();
    group.ReduceScatterSum(values, part);
    group.AllGather(updated, all);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, passed.count());
  }
  return fastest;
}

double Predicted(double parameters, int ranks, const RankSpeed& speed) {
  const RankStepCost cost =
      CostOfStep({.parameters = parameters, .ranks = static_cast<double>(ranks)}, speed);
  return cost.sum + cost.gather;
}

int MeasureExchange() {
  at::set_num_threads(1);
  GroupOptions options;
  options.environment = *ReadLaunchEnvironment();
  options.secret = ReadJoinSecret();
  options.version = "scale_figures";
  const std::unique_ptr<ProcessGroup> group = JoinGroup(options);
  constexpr std::array<std::int64_t, 6> kSizes = {1'000,     10'000,    100'000,
                                                  1'000'000, 4'000'000, 10'000'000};
  std::vector<double> seconds;
  seconds.reserve(kSizes.size());
  for (const std::int64_t size : kSizes) seconds.push_back(SecondsOfExchange(*group, size));
  if (group->IsFirst()) {
    const int ranks = group->Size();
    const StepJob job = {.parameters = static_cast<double>(kSizes.back()),
                         .ranks = static_cast<double>(ranks)};
    RankSpeed speed = {.flops = 1, .bandwidth = 1, .latency = 0};
    speed.latency = seconds.front() / (2 * (ranks - 1));
    speed.bandwidth = BytesSentPerStep(job) / (seconds.back() - seconds.front());
    fmt::print("{} ranks: latency {:.0f} us, {:.2f} GB/s a rank\n", ranks, speed.latency * 1e6,
               speed.bandwidth / 1e9);
    fmt::print("{:>12} {:>14} {:>14}\n", "parameters", "measured (ms)", "model (ms)");
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      fmt::print("{:>12} {:>14.3f} {:>14.3f}\n", kSizes[i], seconds[i] * 1e3,
                 Predicted(static_cast<double>(kSizes[i]), ranks, speed) * 1e3);
    }
  }
  group->Leave();
  return 0;
}

using StepClock = std::chrono::steady_clock;

double SecondsSince(StepClock::time_point start) {
  return std::chrono::duration<double>(StepClock::now() - start).count();
}

struct JoinSeconds {
  double connecting = 0;
  double meeting = 0;
};

// Of the slowest of the ranks.
JoinSeconds SecondsToJoin(int ranks, bool is_authenticated) {
  const std::string secret = NewJoinSecret();
  internal::ListeningSocket socket("127.0.0.1", 0);
  const std::uint16_t port = socket.port();
  const internal::StorePointer server = internal::HostGroupStore(socket, secret);
  std::barrier all(ranks + 1);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  const StepClock::time_point start = StepClock::now();
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options;
      options.environment = {
          .rank = rank, .size = ranks, .address = "127.0.0.1", .port = port, .is_hosted = true};
      options.version = "scale_figures";
      options.join_timeout = std::chrono::seconds(600);
      c10d::TCPStoreOptions plain;
      plain.port = port;
      plain.waitWorkers = false;
      internal::StorePointer store;
      if (is_authenticated) {
        store = internal::OpenGroupStore(options.environment, secret, options.join_timeout);
      } else {
        store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", plain);
      }
      all.arrive_and_wait();
      internal::GatherRanks(store, options);
      all.arrive_and_wait();
    });
  }
  all.arrive_and_wait();
  JoinSeconds seconds = {.connecting = SecondsSince(start), .meeting = 0};
  const StepClock::time_point connected = StepClock::now();
  all.arrive_and_wait();
  seconds.meeting = SecondsSince(connected);
  for (std::thread& thread : threads) thread.join();
  return seconds;
}

int MeasureJoin(int ranks) {
  // Two ends of each connection are here.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  for (const bool is_authenticated : {false, true}) {
    JoinSeconds fastest = SecondsToJoin(ranks, is_authenticated);
    for (int i = 0; i < 2; ++i) {
      const JoinSeconds again = SecondsToJoin(ranks, is_authenticated);
      fastest.connecting = std::min(fastest.connecting, again.connecting);
      fastest.meeting = std::min(fastest.meeting, again.meeting);
    }
    fmt::print("{} ranks {} HMACs: {:.3f} s to connect, {:.3f} s to meet\n", ranks,
               is_authenticated ? "with" : "without", fastest.connecting, fastest.meeting);
  }
  return 0;
}

int MeasureSeal() {
  constexpr int kMacs = 100'000;
  const std::string secret = NewJoinSecret();
  StepClock::time_point start = StepClock::now();
  std::size_t bytes = 0;
  for (int i = 0; i < kMacs; ++i) {
    bytes += internal::Mac(secret, {"value", "sordino/0/nonce/beat/17", "1234 5678"}).size();
  }
  fmt::print("HMAC of a beat: {:.2f} us\n", SecondsSince(start) / kMacs * 1e6);
  const internal::MessageSeal seal(secret, "nonce", 2);
  for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 20, std::size_t{1} << 26}) {
    const std::string plain(size, 'x');
    std::string opened(size, ' ');
    std::string sealed(size + internal::MessageSeal::kTagBytes, ' ');
    double seals = std::numeric_limits<double>::infinity();
    double opens = seals;
    for (int i = 0; i < kRepetitions; ++i) {
      start = StepClock::now();
      seal.Seal({}, plain.data(), size, sealed.data());
      seals = std::min(seals, SecondsSince(start));
      start = StepClock::now();
      if (!seal.Open({}, sealed.data(), opened.data(), size)) return 1;
      opens = std::min(opens, SecondsSince(start));
    }
    fmt::print("{:>9} bytes: sealed in {:.1f} us ({:.2f} GB/s), opened in {:.1f} us\n", size,
               seals * 1e6, static_cast<double>(size) / seals / 1e9, opens * 1e6);
  }
  return bytes == 0 ? 1 : 0;
}

int PrintModel(const std::vector<double>& values) {
  const StepJob job = {.parameters = values[0],
                       .flops_per_example = values[1],
                       .batch = values[2],
                       .records = values[3],
                       .ranks = values[4]};
  const RankSpeed speed = {.flops = values[5],
                           .bandwidth = values[6],
                           .latency = values[7],
                           .draw_seconds = values[8],
                           .noise_seconds = values[9]};
  const RankStepCost cost = CostOfStep(job, speed);
  for (const auto& [name, seconds] : cost.Parts()) fmt::print("{:<10} {:.4g} s\n", name, seconds);
  fmt::print("{:<10} {:.4g} s, most of it: {}\n", "step", cost.Total(), cost.LargestPart());
  fmt::print("{:<10} {:.4g} bytes sent by a rank\n", "volume", BytesSentPerStep(job));
  return 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "exchange" && sordino::IsLocalRank()) return sordino::MeasureExchange();
  if (what == "exchange") {
    return sordino::RunLocalRanks({.program = "/proc/self/exe",
                                   .words = {"exchange"},
                                   .processes = argc > 2 ? std::atoi(argv[2]) : 2});
  }
  if (what == "join" && argc > 2) return sordino::MeasureJoin(std::atoi(argv[2]));
  if (what == "seal") return sordino::MeasureSeal();
  if (what == "model" && argc == 12) {
    std::vector<double> values;
    for (int i = 2; i < argc; ++i) values.push_back(std::atof(argv[i]));
    return sordino::PrintModel(values);
  }
  std::cerr
      << "scale_figures exchange [N], join N, seal, or model and ten numbers; see its source.\n";
  return 2;
}
