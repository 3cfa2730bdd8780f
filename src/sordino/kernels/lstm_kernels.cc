#include "sordino/kernels/lstm_kernels.h"

#include "sordino/kernels/launch.h"

namespace sordino {
namespace {

class CudaLstmKernels : public LstmKernels {
 public:
  void Open(const LstmBuffers& buffers) const override {
    OnDeviceOf(buffers.gates, [&](auto stream) {
      ForEntries(buffers, [&](const auto& entries) { LaunchLstmOpen(entries, stream); });
    });
  }
  void StepBack(const LstmBuffers& buffers, std::int64_t place) const override {
    OnDeviceOf(buffers.gates, [&](auto stream) {
      ForEntries(buffers, [&](const auto& entries) { LaunchLstmStepBack(entries, place, stream); });
    });
  }

 private:
  template <typename Launch>
  static void ForEntries(const LstmBuffers& buffers, const Launch& launch) {
    if (buffers.gates.scalar_type() == at::kDouble) {
      launch(buffers.Entries<double>());
    } else {
      launch(buffers.Entries<float>());
    }
  }
};

}  // namespace

const LstmKernels* LstmKernelsFor(const c10::Device& device) {
  static const CudaLstmKernels kernels;
  return kKernelsAreBuilt && device.is_cuda() ? &kernels : nullptr;
}

}  // namespace sordino
