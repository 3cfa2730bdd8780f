#include "sordino/training/internal/libtorch_seed.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cstddef>
#include <mutex>
#include <optional>

namespace sordino {

void SeedLibtorch(Generator& generator) {
  at::manual_seed(generator.Next64());
  at::mt19937_data_pod state = at::mt19937(0).data();
  for (auto& word : state.state_) word = static_cast<std::uint32_t>(generator.Next64());
  state.state_[0] |= 0x80000000U;  // not all zero
  state.left_ = 1;                 // the words are mixed before the first is handed out
  at::mt19937 engine;
  engine.set_data(state);
  at::Generator host = at::globalContext().defaultGenerator(at::kCPU);
  auto* implementation = at::check_generator<at::CPUGeneratorImpl>(host);
  const std::lock_guard<std::mutex> lock(host.mutex());
  implementation->set_engine(engine);
  implementation->set_next_float_normal_sample(std::nullopt);
  implementation->set_next_double_normal_sample(std::nullopt);
}

void LibtorchDraws::Seed(Generator& generator) {
  SeedLibtorch(generator);
  fresh_ = Position();
}

bool LibtorchDraws::AreFresh() const { return fresh_ && *fresh_ == Position(); }

// Normal numbers that are kept for later are there only where some were drawn.
std::vector<std::uint64_t> LibtorchDraws::Position() {
  at::Generator host = at::globalContext().defaultGenerator(at::kCPU);
  at::mt19937_data_pod engine;
  {
    const std::lock_guard<std::mutex> lock(host.mutex());
    engine = at::check_generator<at::CPUGeneratorImpl>(host)->engine().data();
  }
  std::vector<std::uint64_t> position(engine.state_.begin(), engine.state_.end());
  position.push_back(static_cast<std::uint64_t>(engine.left_));
  for (std::size_t gpu = 0; gpu < at::getNumGPUs(); ++gpu) {
    const c10::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu));
    at::Generator there = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(there.mutex());
    position.push_back(there.current_seed());
    position.push_back(there.get_offset());
  }
  return position;
}

}  // namespace sordino
