// In the place of device_noise.cc in builds without CUDA.
#include "sordino/base/error.h"
#include "sordino/noise/device_noise.h"

namespace sordino {

bool DeviceNoise::IsBuilt() { return false; }

DeviceNoise::DeviceNoise(at::Device, RandomSource&) {
  throw Error(
      "this build draws no noise on a CUDA device; build it where nvcc and a libtorch with CUDA "
      "are "
      "found, or keep the sum on the processor.");
}

// No object exists that these could be called for.
DeviceNoise::~DeviceNoise() = default;
void DeviceNoise::Remember(const NoiseMemory&, std::int64_t, std::int64_t) {}
void DeviceNoise::StoreGrid(const NoiseGrid&, double, std::uint64_t) {}
void DeviceNoise::Launch(const std::vector<at::Tensor>&, const std::vector<at::Tensor>&) {}
void DeviceNoise::LaunchDescent(const std::vector<at::Tensor>&, const Descent&) {}

}  // namespace sordino
