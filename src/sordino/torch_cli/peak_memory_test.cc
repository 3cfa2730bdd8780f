#include "sordino/torch_cli/peak_memory.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <thread>

namespace sordino {
namespace {

constexpr std::int64_t kMegabyte = 1000000;

at::Tensor Take(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

TEST(PeakMemory, IsTheWorstMomentAndNotTheSum) {
  PeakMemory memory(at::kCPU);
  Take(3 * kMegabyte);
  Take(5 * kMegabyte);
  EXPECT_EQ(memory.Peak(), 5 * kMegabyte);
  const at::Tensor held = Take(4 * kMegabyte);
  Take(2 * kMegabyte);
  EXPECT_EQ(memory.Peak(), 6 * kMegabyte);
}

TEST(PeakMemory, LeavesOutWhatIsHeldAtTheBaseline) {
  PeakMemory memory(at::kCPU);
  const at::Tensor held = Take(3 * kMegabyte);
  memory.SetBaseline();
  EXPECT_EQ(memory.Peak(), 0);
  Take(kMegabyte);
  EXPECT_EQ(memory.Peak(), kMegabyte);
}

// What a step leaves behind for the next one is part of what it needs.
TEST(PeakMemory, RestartForgetsThePeakButNotTheBaseline) {
  PeakMemory memory(at::kCPU);
  const at::Tensor kept = Take(2 * kMegabyte);
  Take(7 * kMegabyte);
  memory.Restart();
  EXPECT_EQ(memory.Peak(), 2 * kMegabyte);
  Take(kMegabyte);
  EXPECT_EQ(memory.Peak(), 3 * kMegabyte);
}

TEST(PeakMemory, CountsOnEveryThread) {
  PeakMemory memory(at::kCPU);
  std::thread([] { Take(kMegabyte); }).join();
  EXPECT_EQ(memory.Peak(), kMegabyte);
}

TEST(PeakMemory, BlocksMayOutliveIt) {
  at::Tensor tensor;
  {
    PeakMemory memory(at::kCPU);
    tensor = Take(kMegabyte);
  }
  tensor.fill_(1);
  tensor.resize_({2 * kMegabyte});
  EXPECT_EQ(tensor[0].item<int>(), 1);
  tensor = at::Tensor();
  PeakMemory memory(at::kCPU);
  EXPECT_EQ(memory.Peak(), 0);
}

}  // namespace
}  // namespace sordino
