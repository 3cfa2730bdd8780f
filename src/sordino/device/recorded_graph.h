// Operations on a GPU that are recorded once and replayed as one launch (CUDA graphs).
//
// Where a step is many small operations, most of its time goes into starting them. A recording
// keeps what was started, with the addresses of its memory, and starts all of it at once. So a
// replay reads its inputs where they were when it was recorded and writes its results where they
// were written then; code on the host is not run again.
//
// Memory that was freed in between would be read as if nothing had happened, and might hold values
// of other examples by then. So a recording keeps a reference to all memory that its operations
// used and did not make themselves (internal/used_storages.h): what a model drops later is not
// freed.
#ifndef SORDINO_DEVICE_RECORDED_GRAPH_H_
#define SORDINO_DEVICE_RECORDED_GRAPH_H_

#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sordino {

// Whether steps are recorded.
enum class GraphUse : std::uint8_t {
  kOff,
  kAutomatic,  // where it can be done
  kOn,         // an Error where it cannot
};
inline constexpr std::array<std::string_view, 3> kGraphUseNames = {"off", "auto", "on"};
// Throws Error for another name; `what` is the flag or key that it was given for.
GraphUse ParseGraphUse(std::string_view what, std::string_view name);

class RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
  // On the current stream of the device.
  virtual void Replay() = 0;
};

// Why operations on this device cannot be recorded, as a sentence; empty where they can.
std::string RecordingProblem(const c10::Device& device);

// Runs the operations twice on a stream of their own, so that libraries make what they make once,
// and records them in a third run. They must neither wait for the device nor read values from it.
// Throws what they throw, and c10::Error where an operation cannot be recorded; the device can
// still be used.
std::unique_ptr<RecordedGraph> RecordGraph(const c10::Device& device,
                                           const std::function<void()>& operations);

}  // namespace sordino

#endif  // SORDINO_DEVICE_RECORDED_GRAPH_H_
