#include "sordino/distributed/internal/gpu_exchange.h"

namespace sordino::internal {

std::string GpuName(c10::Device /*device*/) { return ""; }
std::unique_ptr<GpuExchange> ConnectGpus(Communicator& /*group*/, c10::Device /*device*/,
                                         const std::function<bool()>& /*has_lost*/) {
  return nullptr;
}

}  // namespace sordino::internal
