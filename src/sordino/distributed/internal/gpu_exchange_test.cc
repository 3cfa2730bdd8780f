#include "sordino/distributed/internal/gpu_exchange.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sordino/distributed/process_group.h"
#include "sordino/distributed/testing/group_of_one.h"
#include "sordino/distributed/testing/threads_communicator.h"

namespace sordino {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(HaveGpuEach, WhereNoneIsSharedAndNoneIsMissing) {
  EXPECT_TRUE(internal::HaveGpuEach({"a"}));
  EXPECT_TRUE(internal::HaveGpuEach({"a", "b", "c"}));
  EXPECT_FALSE(internal::HaveGpuEach({"a", "b", "a"}));
  EXPECT_FALSE(internal::HaveGpuEach({"a", ""}));
  EXPECT_FALSE(internal::HaveGpuEach({""}));
  // Names are bytes.
  EXPECT_TRUE(internal::HaveGpuEach({std::string("\0a", 2), std::string("\0b", 2)}));
}

TEST(GpuName, OfAProcessorIsEmpty) { EXPECT_EQ(internal::GpuName(c10::kCPU), ""); }

// One number of one exchange is wrong on one rank. Exchanges are counted; those of the device stand
// behind those of the CPU: sum, gather, sum, gather, first for few numbers and then for many.
class WrongOnce : public ThreadsCommunicator {
 public:
  WrongOnce(int rank, int size, MeetingPlace& place, int wrong_exchange, std::int64_t difference)
      : ThreadsCommunicator(rank, size, place), wrong_(wrong_exchange), difference_(difference) {}

  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    ThreadsCommunicator::ReduceScatterSum(values, shard);
    MakeWrong(shard);
  }
  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    ThreadsCommunicator::AllGather(shard, all);
    MakeWrong(all);
  }

  int exchanges() const { return exchanges_; }

 private:
  void MakeWrong(at::Tensor& values) {
    if (exchanges_++ == wrong_) values[values.numel() - 1] += difference_;
  }

  int wrong_;
  std::int64_t difference_;
  int exchanges_ = 0;
};

constexpr int kExchanges = 8;

// What each of the ranks says, of which `wrong_rank` computes wrongly.
std::vector<std::string> SaidOfSums(int ranks, int wrong_rank, int wrong_exchange,
                                    std::int64_t difference = 1) {
  MeetingPlace place(ranks);
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      WrongOnce group(rank, ranks, place, rank == wrong_rank ? wrong_exchange : -1, difference);
      try {
        internal::RequireEqualSums(group, c10::kCPU);
      } catch (const Error& error) {
        said[static_cast<std::size_t>(rank)] = error.what();
      }
      EXPECT_EQ(group.exchanges(), kExchanges);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

TEST(RequireEqualSums, IsSilentWhereTheyAre) {
  for (const int ranks : {1, 2, 3}) EXPECT_THAT(SaidOfSums(ranks, -1, -1), Each("")) << ranks;
}

TEST(RequireEqualSums, OneWrongNumberOfOneRankIsRefusedByAll) {
  for (int exchange = 0; exchange < kExchanges; ++exchange) {
    EXPECT_THAT(SaidOfSums(3, 1, exchange),
                Each(HasSubstr("rank 1 of 3 got other sums of test numbers over NCCL than over "
                               "Gloo, so nothing was begun;")))
        << exchange;
  }
}

// A sum in float64 or in 32 bits would lose one of these.
TEST(RequireEqualSums, TheHighestAndTheLowestBitCount) {
  for (const std::int64_t difference : {std::int64_t{1}, std::int64_t{1} << 58}) {
    EXPECT_THAT(SaidOfSums(2, 0, 2, difference), Each(HasSubstr("rank 0 of 2"))) << difference;
  }
}

// Numbers that an exchange of another type, or of one rank alone, could not carry.
TEST(RequireEqualSums, UsesNumbersOfBothSignsThatDifferBetweenRanks) {
  std::mutex mutex;
  std::vector<at::Tensor> brought(2);
  class Recorder : public ThreadsCommunicator {
   public:
    using ThreadsCommunicator::ThreadsCommunicator;
    void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
      ThreadsCommunicator::ReduceScatterSum(values, shard);
      last = values;
    }
    at::Tensor last;
  };
  MeetingPlace place(2);
  const auto run = [&](int rank) {
    Recorder group(rank, 2, place);
    internal::RequireEqualSums(group, c10::kCPU);
    const std::lock_guard lock(mutex);
    brought[static_cast<std::size_t>(rank)] = group.last;
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_FALSE((brought[0] == brought[1]).any().item<bool>());
  const at::Tensor sum = brought[0] + brought[1];
  EXPECT_GT(sum.max().item<std::int64_t>(), std::int64_t{1} << 59);
  EXPECT_LT(sum.min().item<std::int64_t>(), -(std::int64_t{1} << 59));
  EXPECT_LE(sum.abs().max().item<std::int64_t>(), std::int64_t{1} << 60);
  // Their last bits are not zeros.
  EXPECT_NEAR(brought[0].bitwise_and(1).to(at::kDouble).mean().item<double>(), 0.5, 0.01);
}

void ExpectSums(Communicator& group, c10::Device device) {
  for (const std::int64_t count : {1, 1000, 1'000'003}) {
    const auto whole = at::TensorOptions(at::kLong).device(device);
    const at::Tensor values = at::arange(count, whole).sub_(count / 2).mul_(std::int64_t{1} << 40);
    at::Tensor sum = at::full({count}, -1, whole);
    group.ReduceScatterSum(values, sum);
    EXPECT_TRUE(at::equal(sum, values)) << count;
    at::Tensor all = values.clone();
    group.AllReduceSum(all);
    EXPECT_TRUE(at::equal(all, values)) << count;
    for (const at::ScalarType type : {at::kLong, at::kFloat, at::kDouble, at::kByte}) {
      const at::Tensor shard = at::arange(count, whole).to(type);
      at::Tensor gathered = at::zeros({count}, shard.options());
      group.AllGather(shard, gathered);
      EXPECT_TRUE(at::equal(gathered, shard)) << count << " of " << type;
    }
  }
  EXPECT_EQ(group.bytes_sent(), 0);
}

TEST(GroupOfOneRank, StaysOnTheCpuWithoutAGpu) {
  const std::unique_ptr<ProcessGroup> group = GroupOfOne();
  group->UseDevice(c10::kCPU);
  EXPECT_EQ(group->DeviceFor(c10::kCPU), c10::Device(c10::kCPU));
  EXPECT_EQ(group->DeviceFor(c10::Device(c10::kCUDA, 0)), c10::Device(c10::kCPU));
  ExpectSums(*group, c10::kCPU);
  group->Leave();
}

TEST(GroupOfOneRank, AddsUpOnItsGpuOverNccl) {
  if (!at::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  const c10::Device gpu(c10::kCUDA, 0);
  if (internal::GpuName(gpu).empty()) GTEST_SKIP() << "built without NCCL";
  const std::unique_ptr<ProcessGroup> group = GroupOfOne();
  EXPECT_EQ(group->DeviceFor(gpu), c10::Device(c10::kCPU));
  group->UseDevice(gpu);
  ASSERT_EQ(group->DeviceFor(gpu), gpu);
  EXPECT_EQ(group->DeviceFor(c10::kCPU), c10::Device(c10::kCPU));
  EXPECT_EQ(internal::GpuName(gpu).size(), 16);
  ExpectSums(*group, gpu);
  ExpectSums(*group, c10::kCPU);
  group->Leave();
}

}  // namespace
}  // namespace sordino
