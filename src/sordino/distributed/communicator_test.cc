#include "sordino/distributed/communicator.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "sordino/distributed/testing/threads_communicator.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> Values(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(),
          tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
}

TEST(SingleProcess, IsOneRankThatSendsNothing) {
  const auto communicator = SingleProcess();
  at::Tensor values = at::arange(6, at::kLong);
  at::Tensor shard = at::zeros({6}, at::kLong);
  communicator->AllReduceSum(values);
  communicator->ReduceScatterSum(values, shard);
  EXPECT_THAT(Values(shard), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(communicator->Broadcast("key"), "key");
  EXPECT_THAT(communicator->AllGatherBytes("one"), ElementsAre("one"));
  EXPECT_EQ(communicator->Size(), 1);
  EXPECT_EQ(communicator->bytes_sent(), 0);
}

TEST(ThreadsCommunicator, AddsScattersAndGathers) {
  RunRanks(3, [](Communicator& communicator) {
    const int rank = communicator.Rank();
    at::Tensor values = at::arange(6, at::kLong).add(100 * rank);
    at::Tensor shard = at::zeros({2}, at::kLong);
    communicator.ReduceScatterSum(values, shard);
    EXPECT_THAT(Values(shard), ElementsAre(300 + 6 * rank, 303 + 6 * rank));
    EXPECT_EQ(communicator.bytes_sent(), 2 * 2 * 8);
    at::Tensor all = at::zeros({6}, at::kLong);
    communicator.AllGather(shard, all);
    EXPECT_THAT(Values(all), ElementsAre(300, 303, 306, 309, 312, 315));
    communicator.AllReduceSum(values);
    EXPECT_THAT(Values(values), ElementsAre(300, 303, 306, 309, 312, 315));
    EXPECT_EQ(communicator.Broadcast(std::to_string(rank)), "0");
    EXPECT_THAT(communicator.AllGatherBytes(std::to_string(rank)), ElementsAre("0", "1", "2"));
    communicator.Barrier();
  });
}

TEST(ThreadsCommunicator, ARankThatFailsEndsTheOthers) {
  std::mutex mutex;
  int ended = 0;
  EXPECT_THROW(RunRanks(4,
                        [&](Communicator& communicator) {
                          if (communicator.Rank() == 2) throw Error("the data are not there.");
                          try {
                            communicator.Barrier();
                          } catch (const CommunicationError&) {
                            const std::lock_guard lock(mutex);
                            ++ended;
                            throw;
                          }
                        }),
               Error);
  EXPECT_EQ(ended, 3);
}

}  // namespace
}  // namespace sordino
