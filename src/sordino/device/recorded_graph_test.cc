#include "sordino/device/recorded_graph.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(RecordedGraph, NeedsACudaDevice) {
  EXPECT_NE(RecordingProblem(at::kCPU), "");
  EXPECT_THROW(RecordGraph(at::kCPU, [] {}), Error);
}

class RecordedGraphCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
    if (const std::string problem = RecordingProblem(device_); !problem.empty()) {
      GTEST_SKIP() << problem;
    }
  }
  const at::Device device_ = at::Device(at::kCUDA, 0);
};

TEST_F(RecordedGraphCuda, ReplaysOnOtherValues) {
  const at::Tensor input = at::zeros({1000}, at::TensorOptions(device_).dtype(at::kDouble));
  at::Tensor output;
  const auto graph = RecordGraph(device_, [&] { output = (input * 3 + 1).square().sum(); });
  for (int i = 0; i < 100; ++i) {
    input.fill_(i);
    graph->Replay();
    EXPECT_EQ(output.item<double>(), 1000 * (3.0 * i + 1) * (3.0 * i + 1));
  }
}

// A value that is read in between cannot be recorded; nothing is left behind.
TEST_F(RecordedGraphCuda, AFailureLeavesTheDeviceUsable) {
  const at::Tensor input = at::ones({10}, at::TensorOptions(device_));
  EXPECT_ANY_THROW(RecordGraph(device_, [&] { static_cast<void>(input.sum().item<float>()); }));
  int runs = 0;
  EXPECT_THROW(RecordGraph(device_,
                           [&] {
                             static_cast<void>(input + 1);
                             if (++runs == 3) throw std::runtime_error("on purpose");
                           }),
               std::runtime_error);
  at::Tensor output;
  const auto graph = RecordGraph(device_, [&] { output = input * 2; });
  input.fill_(4);
  graph->Replay();
  EXPECT_EQ(output.sum().item<float>(), 80);
  EXPECT_EQ((input + 1).sum().item<float>(), 50);
}

// The memory of a tensor that the recording used is not given to anybody else.
TEST_F(RecordedGraphCuda, KeepsTheMemoryItReads) {
  at::Tensor constant = at::full({1 << 20}, 2, at::TensorOptions(device_).dtype(at::kFloat));
  const at::Tensor input = at::ones({1 << 20}, at::TensorOptions(device_));
  at::Tensor output;
  const auto graph = RecordGraph(device_, [&] { output = (input * constant).sum(); });
  constant = at::Tensor();
  for (int i = 0; i < 10; ++i) {
    const at::Tensor other = at::full({1 << 20}, 7, at::TensorOptions(device_).dtype(at::kFloat));
    graph->Replay();
    EXPECT_EQ(output.item<float>(), 2.0F * (1 << 20));
  }
}

}  // namespace
}  // namespace sordino
