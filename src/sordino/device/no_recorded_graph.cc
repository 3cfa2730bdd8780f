// Without a CUDA compiler (cmake/SordinoCuda.cmake).
#include "sordino/base/error.h"
#include "sordino/device/recorded_graph.h"

namespace sordino {

std::string RecordingProblem(const c10::Device& device) {
  if (!device.is_cuda()) return "steps are recorded on CUDA devices only.";
  return "this program was built without a CUDA compiler; build it where nvcc is found.";
}

std::unique_ptr<RecordedGraph> RecordGraph(const c10::Device& device,
                                           const std::function<void()>& /*operations*/) {
  throw Error(RecordingProblem(device));
}

}  // namespace sordino
