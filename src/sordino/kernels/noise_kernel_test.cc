// Decisions that come once in 2^25 candidates, on a GPU: a table that leaves all of them to
// integers.
#include "sordino/kernels/noise_kernel.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

#include "sordino/kernels/launch.h"
#include "sordino/random/indexed_gaussian.h"

namespace sordino::internal {
namespace {

TEST(DeviceNoiseKernel, ExactDecisionsAreThoseOfTheProcessor) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  if (!kKernelsAreBuilt) GTEST_SKIP() << "built without nvcc";
  constexpr std::int64_t kCount = 50'001;
  const auto options = at::TensorOptions(at::Device(at::kCUDA, 0));
  const at::Tensor bytes =
      at::empty({static_cast<std::int64_t>(sizeof(DeviceNoiseState))}, options.dtype(at::kByte));
  auto* const state = static_cast<DeviceNoiseState*>(bytes.mutable_data_ptr());
  const at::Tensor values = at::zeros({kCount}, options.dtype(at::kDouble));
  NoisedTensors tensors{};
  tensors.count = 1;
  tensors.tensor[0] = {.sum = values.const_data_ptr(),
                       .noised = values.mutable_data_ptr(),
                       .begin = 0,
                       .end = kCount,
                       .is_double = true};
  InsecureSeededGenerator generator(1);
  const ChaChaKey key = DrawChaChaKey(generator);
  for (const double sigma : {0x1p14, 777777.7, 0x1p39, 0x1.56789abcdef01p39, 0x1p40}) {
    const IndexedGaussian gaussian(sigma);
    IndexedTable exact = gaussian.table();
    for (std::uint32_t& sure : exact.quick.sure_below) sure = 0;
    exact.slack = 0x1p200;
    values.zero_();
    OnDeviceOf(values, [&](auto stream) {
      StoreKey(state, key, stream);
      StoreTable(state, exact, 0x1p40, stream);
      StoreStep(state, {.steps_per_unit = 1, .value_of_step = 1, .finer_bits = kFinerBits}, 9, true,
                stream);
      LaunchNoise(state, tensors, false, true, stream);
    });
    std::vector<std::int64_t> wanted(kCount);
    gaussian.Fill(key, 9, 0, wanted);
    const at::Tensor found = values.cpu();
    for (std::int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(found.const_data_ptr<double>()[i],
                static_cast<double>(RoundedSteps(wanted[static_cast<std::size_t>(i)], kFinerBits)))
          << sigma << " at " << i;
    }
  }
}

}  // namespace
}  // namespace sordino::internal
