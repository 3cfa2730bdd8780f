#include "sordino/device/recorded_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/device/internal/used_storages.h"

namespace sordino {
namespace {

constexpr int kWarmUps = 2;

class CudaGraph : public RecordedGraph {
 public:
  explicit CudaGraph(const c10::Device& device) : device_(device) {}

  void Record(const std::function<void()>& operations) {
    const c10::cuda::CUDAStream stream =
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index());
    c10::cuda::device_synchronize();
    const c10::cuda::CUDAStreamGuard on_stream(stream);
    for (int i = 0; i < kWarmUps; ++i) operations();
    c10::cuda::device_synchronize();
    // Other threads (a loader) go on allocating.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      internal::UsedStorages used;
      operations();
      storages_ = used.Take();
    } catch (...) {
      Abandon();
      throw;
    }
    graph_.capture_end();
    c10::cuda::device_synchronize();
  }

  void Replay() override {
    const c10::cuda::CUDAGuard on_device(device_);
    graph_.replay();
  }

 private:
  // After a failure the stream still records.
  void Abandon() {
    try {
      graph_.capture_end();
    } catch (...) {
      // The graph is incomplete, which is known; the allocator has to be told that it has ended.
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device_.index(), graph_.pool());
    }
    static_cast<void>(cudaGetLastError());
  }

  c10::Device device_;
  at::cuda::CUDAGraph graph_;
  std::vector<c10::Storage> storages_;
};

}  // namespace

std::string RecordingProblem(const c10::Device& device) {
  if (!device.is_cuda()) return "steps are recorded on CUDA devices only.";
  return {};
}

std::unique_ptr<RecordedGraph> RecordGraph(const c10::Device& device,
                                           const std::function<void()>& operations) {
  if (std::string problem = RecordingProblem(device); !problem.empty()) throw Error(problem);
  auto graph = std::make_unique<CudaGraph>(device);
  graph->Record(operations);
  return graph;
}

}  // namespace sordino
