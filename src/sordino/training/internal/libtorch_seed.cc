#include "sordino/training/internal/libtorch_seed.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

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

}  // namespace sordino
