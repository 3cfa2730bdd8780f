#include "sordino/gradients/internal/physical_batch.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

at::Tensor Bytes(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

TEST(AllocationMeter, MeasuresThePeakAboveTheStart) {
  const at::Tensor before = Bytes(7 * kMiB);
  const AllocationMeter meter(at::kCPU);
  EXPECT_EQ(meter.peak(), 0);
  {
    const at::Tensor first = Bytes(3 * kMiB);
    { const at::Tensor second = Bytes(2 * kMiB); }
    const at::Tensor third = Bytes(kMiB);
    EXPECT_EQ(meter.current(), 4 * kMiB);
  }
  EXPECT_EQ(meter.current(), 0);
  EXPECT_EQ(meter.peak(), 5 * kMiB);
  const std::vector<std::int64_t> expected{3 * kMiB, 5 * kMiB, 3 * kMiB, 4 * kMiB, 3 * kMiB, 0};
  EXPECT_EQ(meter.History(), expected);
}

TEST(AllocationMeter, IsNotLoweredByMemoryFromBefore) {
  std::optional<at::Tensor> before = Bytes(8 * kMiB);
  const AllocationMeter meter(at::kCPU);
  before.reset();
  const at::Tensor after = Bytes(kMiB);
  EXPECT_EQ(meter.peak(), kMiB);
}

TEST(AllocationMeter, SeesWhatTheBackwardPassAllocates) {
  const std::int64_t n = kMiB / 4;  // float32: 1 MiB
  const at::Tensor x = at::ones({n}).requires_grad_();
  const at::Tensor y = x * x;
  const at::Tensor weight = at::ones_like(y);
  const AllocationMeter meter(at::kCPU);
  const auto gradient = torch::autograd::grad({y}, {x}, {weight});
  // Two products and their sum; the sum may be taken in place.
  EXPECT_GE(meter.peak(), 2 * kMiB);
  EXPECT_LE(meter.peak(), 3 * kMiB + kMiB / 2);
  EXPECT_GE(meter.current(), kMiB);
}

TEST(AllocationMeter, StopsWithItsScopeAndCountsOneDeviceAndThread) {
  const AllocationMeter outer(at::kCPU);
  {
    const AllocationMeter inner(at::kCPU);
    const at::Tensor seen_by_inner = Bytes(kMiB);
    EXPECT_EQ(inner.peak(), kMiB);
    EXPECT_EQ(outer.peak(), 0);
  }
  std::thread([] { Bytes(kMiB); }).join();
  EXPECT_EQ(outer.peak(), 0);
  const at::Tensor seen_by_outer = Bytes(2 * kMiB);
  EXPECT_EQ(outer.peak(), 2 * kMiB);

  const AllocationMeter elsewhere{at::Device(at::kCUDA, 0)};
  const at::Tensor on_cpu = Bytes(kMiB);
  EXPECT_EQ(elsewhere.peak(), 0);
}

TEST(MemoryModel, IsTheHighestOfTheLinesOfAllEvents) {
  // After the first event 1000 + 2 n, after the second 10 + 30 n, after the third 5 + n.
  const MemoryModel model(2, {1004, 70, 7}, 8, {1016, 250, 13});
  EXPECT_EQ(model.Peak(2), 1004);
  EXPECT_EQ(model.Peak(8), 1016);
  EXPECT_EQ(model.Peak(35), 1070);
  EXPECT_EQ(model.Peak(36), 1090);
  EXPECT_EQ(model.Peak(1000), 30010);
}

TEST(MemoryModel, IsNeverBelowEitherMeasurement) {
  const std::vector<std::vector<std::int64_t>> histories{{},      {0},     {1},         {100},
                                                         {7, 24}, {24, 7}, {100, 50, 3}};
  for (const auto& few : histories) {
    for (const auto& many : histories) {
      const MemoryModel model(2, few, 5, many);
      for (const std::int64_t held : few) EXPECT_GE(model.Peak(2), held);
      for (const std::int64_t held : many) EXPECT_GE(model.Peak(5), held);
    }
  }
}

TEST(MemoryModel, CountsAllMemoryAsGrowingWhereTwoPassesCannotBeAligned) {
  const MemoryModel model(2, {50, 40, 30}, 8, {160, 100});
  EXPECT_EQ(model.Peak(8), 160);
  EXPECT_EQ(model.Peak(80), 1600);
  EXPECT_EQ(model.Peak(2), 50);
}

// The peak of a pass through a small network, and its history.
std::pair<std::int64_t, std::vector<std::int64_t>> MeasuredPass(std::int64_t examples) {
  const at::Tensor w1 = at::ones({64, 256}).requires_grad_();
  const at::Tensor w2 = at::ones({256, 10}).requires_grad_();
  const at::Tensor x = at::ones({examples, 64});
  const AllocationMeter meter(at::kCPU);
  {
    const at::Tensor losses = x.mm(w1).tanh().mm(w2).square().sum(1);
    torch::autograd::grad({losses}, {w1, w2}, {at::ones_like(losses)});
  }
  return {meter.peak(), meter.History()};
}

TEST(MemoryModel, PredictsThePeakOfALargerPass) {
  MeasuredPass(16);
  const auto [few_peak, few] = MeasuredPass(16);
  const auto [many_peak, many] = MeasuredPass(32);
  const auto peak = static_cast<double>(MeasuredPass(1024).first);
  const MemoryModel model(16, few, 32, many);
  EXPECT_NEAR(static_cast<double>(model.Peak(1024)) / peak, 1, 0.01);
  // The line through the two small peaks would not do.
  EXPECT_LT(static_cast<double>(few_peak) + 63 * static_cast<double>(many_peak - few_peak),
            0.9 * peak);
}

TEST(MemoryModel, IsNotTooSmallWhereLibtorchTakesAnotherKernelForFewRows) {
  MeasuredPass(2);
  MeasuredPass(16);
  const auto few = MeasuredPass(2).second;
  const auto many = MeasuredPass(16).second;
  EXPECT_GE(MemoryModel(2, few, 16, many).Peak(1024), MeasuredPass(1024).first);
}

TEST(MemoryModel, FillsTheShareAndNotMore) {
  const MemoryModel model(2, {1060, 4}, 8, {1240, 16});
  EXPECT_EQ(model.FittingExamples(2000, 0.8), 20);
  for (const std::int64_t available : {1300, 1337, 2000, 123'456'789}) {
    const std::int64_t fitting = model.FittingExamples(available, 1.0);
    EXPECT_LE(model.Peak(fitting), available);
    EXPECT_GT(model.Peak(fitting + 1), available);
  }
}

TEST(MemoryModel, FitsAtLeastOneAndAnyNumberWithoutALimit) {
  const MemoryModel model(2, {1060}, 8, {1240});
  EXPECT_EQ(model.FittingExamples(0), 1);
  EXPECT_EQ(model.FittingExamples(900), 1);
  EXPECT_EQ(model.FittingExamples(kNoLimit), kNoLimit);
  EXPECT_EQ(MemoryModel(2, {}, 8, {}).FittingExamples(10), kNoLimit);
}

TEST(PartSize, CutsIntoEqualPartsThatFit) {
  EXPECT_EQ(PartSize(100, 60), 50);
  EXPECT_EQ(PartSize(100, 100), 100);
  EXPECT_EQ(PartSize(100, kNoLimit), 100);
  EXPECT_EQ(PartSize(101, 50), 34);
  EXPECT_EQ(PartSize(0, 5), 1);
  for (std::int64_t examples = 1; examples < 40; ++examples) {
    for (std::int64_t fitting = 1; fitting < 45; ++fitting) {
      const std::int64_t size = PartSize(examples, fitting);
      EXPECT_LE(size, fitting);
      EXPECT_GE(size, 1);
      // As few parts as possible.
      EXPECT_EQ((examples - 1) / size, (examples - 1) / fitting);
    }
  }
}

// A file system of a machine that does not exist.
class MemoryOfMachine : public ::testing::Test {
 protected:
  void Write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const TestFolder root_;
};

TEST_F(MemoryOfMachine, IsUnlimitedWhereNothingIsKnown) {
  EXPECT_EQ(AvailableHostMemory(root_), kNoLimit);
}

TEST_F(MemoryOfMachine, IsWhatTheKernelSaysWithoutGroups) {
  Write("proc/meminfo", "MemTotal:       2000 kB\nMemFree: 10 kB\nMemAvailable:   1500 kB\n");
  EXPECT_EQ(AvailableHostMemory(root_), 1500 * 1024);
}

TEST_F(MemoryOfMachine, ObeysLimitsOfVersion2AtEveryLevel) {
  Write("proc/meminfo", "MemAvailable:   1500000 kB\n");
  Write("proc/self/cgroup", "0::/user/job\n");
  Write("sys/fs/cgroup/user/job/memory.max", "max\n");
  Write("sys/fs/cgroup/user/job/memory.current", "1000\n");
  EXPECT_EQ(AvailableHostMemory(root_), 1500000LL * 1024);
  Write("sys/fs/cgroup/user/memory.max", "100000\n");
  Write("sys/fs/cgroup/user/memory.current", "30000\n");
  EXPECT_EQ(AvailableHostMemory(root_), 70000);
  Write("sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file 10000\nactive_file 1\n");
  EXPECT_EQ(AvailableHostMemory(root_), 80000);
  Write("sys/fs/cgroup/user/job/memory.max", "5000\n");
  EXPECT_EQ(AvailableHostMemory(root_), 4000);
}

TEST_F(MemoryOfMachine, ObeysTheGroupAtTheTopWhereThePathIsTheHosts) {
  Write("proc/meminfo", "MemAvailable:   1500000 kB\n");
  Write("proc/self/cgroup", "0::/host/only/here\n");
  Write("sys/fs/cgroup/memory.max", "4096\n");
  Write("sys/fs/cgroup/memory.current", "8192\n");
  EXPECT_EQ(AvailableHostMemory(root_), 0);
}

TEST_F(MemoryOfMachine, ObeysLimitsOfVersion1) {
  Write("proc/meminfo", "MemAvailable:   1500000 kB\n");
  Write("proc/self/cgroup", "5:devices:/\n4:hugetlb,memory:/job\n1:name=systemd:/\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "123\n");
  EXPECT_EQ(AvailableHostMemory(root_), 1500000LL * 1024);
  Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "50000\n");
  Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "20000\n");
  Write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 5000\n");
  EXPECT_EQ(AvailableHostMemory(root_), 35000);
}

TEST_F(MemoryOfMachine, SurvivesFilesThatMakeNoSense) {
  Write("proc/meminfo", "MemAvailable: lots\n");
  Write("proc/self/cgroup", "nonsense\n0:\n4:memory\n::\n0::relative/path\n");
  Write("sys/fs/cgroup/memory.max", "\n");
  EXPECT_EQ(AvailableHostMemory(root_), kNoLimit);
  Write("proc/meminfo", "MemAvailable: 99999999999999999999999 kB\n");
  EXPECT_EQ(AvailableHostMemory(root_), kNoLimit);
}

TEST(AvailableMemory, OfThisMachineIsPositiveAndAllocatable) {
  const std::int64_t available = AvailableMemory(at::kCPU);
  EXPECT_GT(available, kMiB);
  EXPECT_LT(available, std::int64_t{1} << 50);
}

TEST(AvailableMemory, OfAGpuFallsByWhatIsAllocated) {
  if (!at::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  const at::Device device(at::kCUDA, 0);
  const at::Tensor first = at::empty({kMiB}, at::dtype(at::kByte).device(device));
  const std::int64_t before = AvailableMemory(device);
  const AllocationMeter meter(device);
  const at::Tensor taken = at::empty({256 * kMiB}, at::dtype(at::kByte).device(device));
  EXPECT_EQ(meter.peak(), 256 * kMiB);
  EXPECT_NEAR(static_cast<double>(before - AvailableMemory(device)), 256.0 * kMiB, 64.0 * kMiB);
}

TEST(IsOutOfMemory, KnowsLibtorchsOwnFailure) {
  try {
    Bytes(std::int64_t{1} << 60);
    FAIL() << "an exbibyte was allocated";
  } catch (const std::exception& error) {
    EXPECT_TRUE(IsOutOfMemory(error)) << error.what();
  }
}

TEST(IsOutOfMemory, TellsItFromOtherErrors) {
  EXPECT_TRUE(IsOutOfMemory(std::bad_alloc()));
  EXPECT_TRUE(IsOutOfMemory(c10::OutOfMemoryError({"f", "g", 1}, "CUDA: tried to allocate")));
  EXPECT_TRUE(IsOutOfMemory(std::runtime_error("CUDA error: out of memory")));
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("mat1 and mat2 shapes cannot be multiplied")));
  EXPECT_FALSE(IsOutOfMemory(c10::Error({"f", "g", 1}, "index out of range")));
}

}  // namespace
}  // namespace sordino
