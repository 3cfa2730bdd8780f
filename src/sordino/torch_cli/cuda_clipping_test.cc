// The Clipper on a GPU, on the benchmark models, against the loop that runs example by example.
// Skipped without a GPU.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sordino/device/precision.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/models/benchmark_models.h"
#include "sordino/models/model.h"

namespace sordino {
namespace {

double NormOf(const std::vector<at::Tensor>& tensors) {
  double squared = 0;
  for (const at::Tensor& tensor : tensors) {
    squared += at::linalg_vector_norm(tensor, 2, {}, false, at::kDouble).square().item<double>();
  }
  return std::sqrt(squared);
}

double RelativeError(const std::vector<at::Tensor>& found,
                     const std::vector<at::Tensor>& expected) {
  std::vector<at::Tensor> differences;
  for (std::size_t k = 0; k < found.size(); ++k) differences.push_back(found[k] - expected[k]);
  return NormOf(differences) / NormOf(expected);
}

std::vector<NamedParameter> Parameters(const BenchmarkModel& model) {
  std::vector<NamedParameter> parameters;
  for (const auto& [name, value] : model.parameters) parameters.push_back({name, value});
  return parameters;
}

// Full float32: TF32 would hide errors of a thousandth.
class CudaClipping : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
    tf32_ = at::globalContext().allowTF32CuDNN();
    at::globalContext().setAllowTF32CuDNN(false);
  }
  void TearDown() override { at::globalContext().setAllowTF32CuDNN(tf32_); }

 private:
  bool tf32_ = true;
};

TEST_P(CudaClipping, EqualsTheLoop) {
  const auto model = MakeBenchmarkModel(GetParam(), at::Device(at::kCUDA));
  const Batch batch = model.make_batch(6, 1);
  const auto parameters = Parameters(model);
  const FlatClipping loose(ClipNorm(1e6));
  const double typical =
      LoopClippedSum(model.losses, batch, parameters, loose).norms.median().item<double>();
  const FlatClipping flat{ClipNorm(typical)};
  const auto layers = NormClipping::Layerwise(parameters, ClipNorm(typical));
  for (const ClippingPolicy* policy :
       {static_cast<const ClippingPolicy*>(&flat), static_cast<const ClippingPolicy*>(&layers)}) {
    const LoopResult loop = LoopClippedSum(model.losses, batch, parameters, *policy);
    for (const NormMethod norms :
         {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
      Clipper clipper(parameters, {.norms = norms});
      for (int step = 0; step < 2; ++step) {
        const BoundedSum sum = clipper.ClippedSum(model.losses, batch, *policy);
        EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-4) << policy->Bounds().size();
      }
    }
  }
}

TEST_P(CudaClipping, AnExampleThatIsNotANumberContributesNothing) {
  const auto model = MakeBenchmarkModel(GetParam(), at::Device(at::kCUDA));
  Batch batch = model.make_batch(4, 1);
  if (!batch[0].is_floating_point()) GTEST_SKIP() << "tokens are always numbers";
  if (GetParam() == "logreg") GTEST_SKIP() << "libtorch's binary cross entropy stops at NaN";
  const auto parameters = Parameters(model);
  const FlatClipping policy(ClipNorm(1));
  Clipper clipper(parameters);
  const BoundedSum without = clipper.ClippedSum(model.losses, Slice(batch, 1, 4), policy);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    batch[0].select(0, 0).fill_(bad);
    const BoundedSum with = clipper.ClippedSum(model.losses, batch, policy);
    EXPECT_LT(RelativeError(with.gradients, without.gradients), 1e-4);
  }
}

// Of batches that are declared to be large: float64, the same numbers, and recorded like others.
TEST_P(CudaClipping, SumsOfLargeBatchesAreFloat64) {
  const auto model = MakeBenchmarkModel(GetParam(), at::Device(at::kCUDA));
  const auto parameters = Parameters(model);
  constexpr std::int64_t kSize = 16;
  const Batch batch = model.make_batch(kSize, 1);
  const FlatClipping policy(ClipNorm(1));
  const LoopResult loop = LoopClippedSum(model.losses, batch, parameters, policy);
  for (const NormMethod norms :
       {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
    Clipper clipper(parameters,
                    {.norms = norms, .graph = GraphUse::kAutomatic, .recorded_batch = kSize},
                    {.largest_batch = 60'000});
    for (int step = 0; step < 4; ++step) {
      const BoundedSum sum = clipper.ClippedSum(model.losses, batch, policy);
      EXPECT_LT(RelativeError(sum.gradients, loop.sum), 1e-4);
      for (std::size_t k = 0; k < sum.gradients.size(); ++k) {
        EXPECT_EQ(sum.gradients[k].scalar_type(), at::kDouble);
        EXPECT_EQ(sum.noised_types[k], at::kFloat);
      }
    }
  }
}

// Batches of many sizes, padded to one, by replays and one operation at a time: the same bits, but
// for tokens, whose gradients libtorch adds up in no fixed order.
TEST_P(CudaClipping, RecordedStepsHaveTheSameBits) {
  if (const std::string problem = RecordingProblem(at::Device(at::kCUDA)); !problem.empty()) {
    GTEST_SKIP() << problem;
  }
  at::globalContext().setDeterministicCuDNN(true);
  const auto model = MakeBenchmarkModel(GetParam(), at::Device(at::kCUDA));
  const auto parameters = Parameters(model);
  constexpr std::int64_t kSize = 16;
  const Batch first = model.make_batch(kSize, 1);
  const FlatClipping loose(ClipNorm(1e6));
  const double typical =
      LoopClippedSum(model.losses, first, parameters, loose).norms.median().item<double>();
  const FlatClipping flat{ClipNorm(typical)};
  const auto layers = NormClipping::Layerwise(parameters, ClipNorm(typical));
  for (const ClippingPolicy* policy :
       {static_cast<const ClippingPolicy*>(&flat), static_cast<const ClippingPolicy*>(&layers)}) {
    Clipper recorded(parameters, {.graph = GraphUse::kOn, .recorded_batch = kSize});
    Clipper plain(parameters);
    for (std::int64_t step = 0; step < 16; ++step) {
      const std::int64_t examples = step % 3 != 1 ? kSize : 1 + (7 * step) % kSize;
      const Batch batch = model.make_batch(examples, static_cast<std::uint64_t>(step));
      const BoundedSum found = recorded.ClippedSum(model.losses, batch, *policy);
      const BoundedSum expected = plain.ClippedSum(model.losses, batch, *policy);
      const double error = RelativeError(found.gradients, expected.gradients);
      // Products of other sizes round otherwise.
      EXPECT_LT(error, 1e-3) << "step " << step;
      const bool tokens = !batch[0].is_floating_point();
      if (examples == kSize && !tokens) {
        EXPECT_EQ(error, 0) << "step " << step;
      }
    }
    EXPECT_EQ(recorded.GraphStatus(), "recorded");
  }
  at::globalContext().setDeterministicCuDNN(false);
}

// The rows of what enters the kernels are bfloat16 numbers; recurrent layers stay as they are.
TEST_P(CudaClipping, EqualsTheLoopInBfloat16) {
  const ScopedPrecision scope(Precision::kBfloat16);
  const auto model = MakeBenchmarkModel(GetParam(), at::Device(at::kCUDA));
  const Batch batch = model.make_batch(6, 1);
  const auto parameters = Parameters(model);
  const FlatClipping loose(ClipNorm(1e6));
  const double typical =
      LoopClippedSum(model.losses, batch, parameters, loose).norms.median().item<double>();
  const FlatClipping flat{ClipNorm(typical)};
  const LoopResult loop = LoopClippedSum(model.losses, batch, parameters, flat);
  for (const NormMethod norms :
       {NormMethod::kAutomatic, NormMethod::kMaterialise, NormMethod::kGhost}) {
    Clipper clipper(parameters, {.norms = norms});
    for (int step = 0; step < 2; ++step) {
      const BoundedSum sum = clipper.ClippedSum(model.losses, batch, flat);
      EXPECT_LT(RelativeError(sum.gradients, loop.sum), 5e-2);
    }
  }
}

TEST_P(CudaClipping, RecordedStepsInBfloat16HaveTheSameBits) {
  if (const std::string problem = RecordingProblem(at::Device(at::kCUDA)); !problem.empty()) {
    GTEST_SKIP() << problem;
  }
  const ScopedPrecision scope(Precision::kBfloat16);
  at::globalContext().setDeterministicCuDNN(true);
  const auto model = MakeBenchmarkModel(GetParam(), at::Device(at::kCUDA));
  const auto parameters = Parameters(model);
  constexpr std::int64_t kSize = 16;
  const FlatClipping policy(ClipNorm(1));
  Clipper recorded(parameters, {.graph = GraphUse::kOn, .recorded_batch = kSize});
  Clipper plain(parameters);
  for (std::uint64_t step = 0; step < 8; ++step) {
    const Batch batch = model.make_batch(kSize, step);
    const BoundedSum found = recorded.ClippedSum(model.losses, batch, policy);
    const BoundedSum expected = plain.ClippedSum(model.losses, batch, policy);
    const double error = RelativeError(found.gradients, expected.gradients);
    // Attention, and lookups of tokens, add up in no fixed order.
    EXPECT_LE(error, batch[0].is_floating_point() ? 0 : 3e-2) << "step " << step;
    // New weights must be read, not those that were converted when the step was recorded.
    const at::NoGradGuard no_grad;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      parameters[k].value.sub_(found.gradients[k], 0.05);
    }
  }
  EXPECT_EQ(recorded.GraphStatus(), "recorded");
  at::globalContext().setDeterministicCuDNN(false);
}

class CudaRecording : public testing::Test {
 protected:
  static constexpr std::int64_t kSize = 32;

  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
    const std::string problem = RecordingProblem(at::Device(at::kCUDA));
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
};

TEST_F(CudaRecording, TenThousandReplaysOfChangingData) {
  const auto model = MakeBenchmarkModel("ffnn", at::Device(at::kCUDA));
  const auto parameters = Parameters(model);
  const FlatClipping policy(ClipNorm(0.1));
  Clipper recorded(parameters, {.graph = GraphUse::kOn, .recorded_batch = kSize});
  Clipper plain(parameters, {.physical_batch = kSize});
  for (std::uint64_t step = 0; step < 10000; ++step) {
    const Batch batch = model.make_batch(kSize, step);
    const BoundedSum found = recorded.ClippedSum(model.losses, batch, policy);
    // The first batch is cut to measure its memory.
    if (step % 100 == 99) {
      const BoundedSum expected = plain.ClippedSum(model.losses, batch, policy);
      ASSERT_EQ(RelativeError(found.gradients, expected.gradients), 0) << "step " << step;
    }
    // The weights move as in training.
    const at::NoGradGuard no_grad;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      parameters[k].value.sub_(found.gradients[k], 0.01);
    }
  }
  EXPECT_EQ(recorded.GraphStatus(), "recorded");
}

// A replay leaves its sum where the next one writes, but not while somebody has it.
TEST_F(CudaRecording, SumsThatAreKeptStayAsTheyAre) {
  const auto model = MakeBenchmarkModel("ffnn", at::Device(at::kCUDA));
  const auto parameters = Parameters(model);
  const FlatClipping policy(ClipNorm(0.1));
  Clipper recorded(parameters, {.graph = GraphUse::kOn, .recorded_batch = kSize});
  std::vector<BoundedSum> sums;
  std::vector<std::vector<at::Tensor>> copies;
  for (std::uint64_t step = 0; step < 20; ++step) {
    const BoundedSum sum = recorded.ClippedSum(model.losses, model.make_batch(kSize, step), policy);
    copies.emplace_back();
    for (const at::Tensor& gradient : sum.gradients) copies.back().push_back(gradient.clone());
    // The first ones are let go, and replays lend their memory.
    if (step >= 8) sums.push_back(sum);
  }
  EXPECT_EQ(recorded.GraphStatus(), "recorded");
  for (std::size_t step = 0; step < sums.size(); ++step) {
    EXPECT_EQ(RelativeError(sums[step].gradients, copies[step + 8]), 0) << step;
  }
}

class CudaDerivedWeights : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  }
};

// Weights that are a function of parameters, and several images an example.
TEST_P(CudaDerivedWeights, EqualTheLoop) {
  const ScopedPrecision scope(GetParam());
  const at::Device device(at::kCUDA);
  constexpr std::int64_t kCopies = 3;
  const auto model = MakeModel("wrn-16-4", {.input = {3, 16, 16}, .classes = 10}, {}, device);
  std::vector<NamedParameter> parameters;
  for (const auto& [name, value] : model->Parameters()) parameters.push_back({name, value});
  const LossFunction loss = [&](const Batch& batch) {
    return at::cross_entropy_loss(model->Forward(batch[0].flatten(0, 1)),
                                  batch[1].repeat_interleave(kCopies), {}, at::Reduction::None)
        .view({-1, kCopies})
        .mean(1);
  };
  const at::TensorOptions options(device);
  const Batch batch = {at::randn({6, kCopies, 3, 16, 16}, options),
                       at::arange(6, options.dtype(at::kLong))};
  const FlatClipping loose(ClipNorm(1e6));
  const double typical =
      LoopClippedSum(loss, batch, parameters, loose).norms.median().item<double>();
  const FlatClipping policy{ClipNorm(typical)};
  const LoopResult loop = LoopClippedSum(loss, batch, parameters, policy);
  // This network amplifies rounding: factors of 8 bits move the sum by a fifth of its norm, so
  // those of 11 bits by a fortieth. Two passes whose sums have another order may be twice as far
  // apart. An example that is missing makes two fifths.
  constexpr std::array<double, 3> kTolerances = {1e-3, 5e-2, 1e-1};
  const double tolerance = kTolerances[static_cast<std::size_t>(GetParam())];
  for (const NormMethod norms : {NormMethod::kAutomatic, NormMethod::kMaterialise}) {
    Clipper clipper(parameters, {.norms = norms});
    const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
    EXPECT_LT(RelativeError(sum.gradients, loop.sum), tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, CudaDerivedWeights,
                         testing::Values(Precision::kFloat32, Precision::kTf32,
                                         Precision::kBfloat16),
                         [](const auto& entry) {
                           return std::string(
                               kPrecisionNames[static_cast<std::size_t>(entry.param)]);
                         });

INSTANTIATE_TEST_SUITE_P(Models, CudaClipping,
                         testing::Values("logreg", "ffnn", "mnist", "cifar10", "embed", "lstm",
                                         "transformer", "resnet18", "vit", "gpt2"),
                         [](const auto& entry) { return entry.param; });

}  // namespace
}  // namespace sordino
