#include "sordino/gradients/internal/physical_batch.h"

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sordino/base/check.h"

namespace sordino {

struct AllocationMeter::State : public c10::MemoryReportingInfoBase {
  explicit State(c10::Device measured) : device(measured) {}

  void reportMemoryUsage(void* /*ptr*/, std::int64_t alloc_size, std::size_t /*total_allocated*/,
                         std::size_t /*total_reserved*/, c10::Device where) override {
    if (where.type() != device.type()) return;
    if (device.has_index() && where.has_index() && where.index() != device.index()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    current += alloc_size;
    peak = std::max(peak, current);
    history.push_back(current);
  }
  bool memoryProfilingEnabled() const override { return true; }

  c10::Device device;
  std::mutex mutex;
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::vector<std::int64_t> history;
};

struct AllocationMeter::Guard {
  explicit Guard(std::shared_ptr<State> state)
      : guard(c10::DebugInfoKind::PROFILER_STATE, std::move(state)) {}
  c10::DebugInfoGuard guard;
};

AllocationMeter::AllocationMeter(c10::Device device)
    : state_(std::make_shared<State>(device)), guard_(std::make_unique<Guard>(state_)) {}

AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::peak() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->peak;
}

std::int64_t AllocationMeter::current() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->current;
}

std::vector<std::int64_t> AllocationMeter::History() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->history;
}

MemoryModel::MemoryModel(std::int64_t few, const std::vector<std::int64_t>& few_history,
                         std::int64_t many, const std::vector<std::int64_t>& many_history) {
  SORDINO_CHECK(0 < few && few < many, "memory is measured for two different numbers of examples");
  if (few_history.size() != many_history.size()) {
    const auto highest = [](const std::vector<std::int64_t>& history) {
      return history.empty() ? 0 : *std::max_element(history.begin(), history.end());
    };
    lines_.push_back({0, (highest(many_history) + many - 1) / many});
    lines_.push_back({highest(few_history), 0});
    return;
  }
  for (std::size_t t = 0; t < few_history.size(); ++t) {
    Add(few, few_history[t], many, many_history[t]);
  }
  // Keep the lines that are the highest one somewhere: the steepest first, each other only when it
  // starts above all steeper ones.
  std::sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
    return a.per_example != b.per_example ? a.per_example > b.per_example : a.fixed > b.fixed;
  });
  std::int64_t above = -1;
  std::erase_if(lines_, [&](const Line& line) {
    if (line.fixed <= above) return true;
    above = line.fixed;
    return false;
  });
}

void MemoryModel::Add(std::int64_t few, std::int64_t few_held, std::int64_t many,
                      std::int64_t many_held) {
  const std::int64_t difference = std::max<std::int64_t>(0, many_held - few_held);
  Line line;
  line.per_example = (difference + (many - few) - 1) / (many - few);
  // Not below either measurement, also where the memory does not grow with the examples.
  line.fixed = std::max<std::int64_t>(
      {0, few_held - few * line.per_example, many_held - many * line.per_example});
  lines_.push_back(line);
}

std::int64_t MemoryModel::Peak(std::int64_t examples) const {
  std::int64_t peak = 0;
  for (const Line& line : lines_) peak = std::max(peak, line.fixed + examples * line.per_example);
  return peak;
}

std::int64_t MemoryModel::FittingExamples(std::int64_t available, double share) const {
  SORDINO_CHECK(share > 0 && share <= 1, "the share of the memory lies in (0, 1]");
  if (available == kNoLimit) return kNoLimit;
  // In double: exact to 2^53 bytes, which no machine has.
  const auto usable = static_cast<std::int64_t>(share * static_cast<double>(available));
  std::int64_t fitting = kNoLimit;
  for (const Line& line : lines_) {
    if (line.fixed > usable) return 1;
    if (line.per_example == 0) continue;
    fitting = std::min(fitting, (usable - line.fixed) / line.per_example);
  }
  return std::max<std::int64_t>(1, fitting);
}

std::int64_t PartSize(std::int64_t examples, std::int64_t fitting) {
  SORDINO_CHECK(examples >= 0 && fitting >= 1, "a part holds at least one example");
  if (examples <= fitting) return std::max<std::int64_t>(1, examples);
  const std::int64_t parts = (examples - 1) / fitting + 1;
  return (examples - 1) / parts + 1;
}

namespace {

std::optional<std::string> ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> ParseBytes(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return kNoLimit;
  if (error != std::errc() || end == text.data()) return std::nullopt;  // "max"
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, kNoLimit));
}

std::optional<std::int64_t> ReadBytes(const std::filesystem::path& path) {
  const auto text = ReadText(path);
  return text ? ParseBytes(*text) : std::nullopt;
}

// The number after `key` at the start of a line: "MemAvailable:   12 kB", "inactive_file 4096".
std::optional<std::int64_t> ReadEntry(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return ParseBytes(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive;  // page cache that the kernel gives up first; counted in the usage
};
constexpr CgroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file "};
constexpr CgroupFiles kVersion2{"memory.max", "memory.current", "inactive_file "};

// The least that is left in the group `path` and in every group above it. A limit holds for all
// groups below, and in a container the path may be that of the host, of which only the top exists.
std::int64_t LeftInGroups(const std::filesystem::path& mount, std::string_view path,
                          const CgroupFiles& files) {
  std::int64_t least = kNoLimit;
  while (true) {
    const std::filesystem::path folder = mount / std::filesystem::path(path).relative_path();
    const auto limit = ReadBytes(folder / files.limit);
    const auto usage = ReadBytes(folder / files.usage);
    if (limit && usage) {
      const std::int64_t cache = ReadEntry(folder / "memory.stat", files.inactive).value_or(0);
      const std::int64_t used = std::max<std::int64_t>(0, *usage - cache);
      least = std::min(least, std::max<std::int64_t>(0, *limit - used));
    }
    const std::size_t slash = path.rfind('/');
    if (path.empty() || path == "/" || slash == std::string_view::npos) return least;
    path = slash == 0 ? std::string_view("/") : path.substr(0, slash);
  }
}

bool Names(std::string_view controllers, std::string_view controller) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == controller) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

std::int64_t LeftInControlGroups(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  std::int64_t least = kNoLimit;
  std::string line;
  // hierarchy:controllers:path; version 2 has no controllers.
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, LeftInGroups(mount, path, kVersion2));
    } else if (Names(controllers, "memory")) {
      least = std::min(least, LeftInGroups(mount / "memory", path, kVersion1));
    }
  }
  return least;
}

// A template, so that a libtorch whose allocators cannot tell compiles too.
template <typename Allocator>
std::int64_t AvailableDeviceMemory(Allocator* allocator, c10::DeviceIndex index) {
  if constexpr (requires { allocator->getMemoryInfo(index).first; }) {
    try {
      const auto free = static_cast<std::int64_t>(allocator->getMemoryInfo(index).first);
      const auto stats = allocator->getDeviceStats(index);
      const std::int64_t reserve =
          stats.reserved_bytes[0].current - stats.allocated_bytes[0].current;
      return free + std::max<std::int64_t>(0, reserve);
    } catch (const c10::NotImplementedError&) {
      return kNoLimit;
    }
  } else {
    return kNoLimit;
  }
}

}  // namespace

std::int64_t AvailableHostMemory(const std::filesystem::path& root) {
  std::int64_t available = kNoLimit;
  const auto kilobytes = ReadEntry(root / "proc/meminfo", "MemAvailable:");
  if (kilobytes && *kilobytes < kNoLimit / 1024) available = *kilobytes * 1024;
  return std::min(available, LeftInControlGroups(root));
}

std::int64_t AvailableMemory(c10::Device device) {
  if (device.is_cpu()) return AvailableHostMemory("/");
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return AvailableDeviceMemory(c10::getDeviceAllocator(device.type()), index);
}

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // libtorch throws its general error for the CPU, and for cuBLAS and cuDNN.
  const std::string_view message = error.what();
  for (const std::string_view sign :
       {"DefaultCPUAllocator: not enough memory", "DefaultCPUAllocator: can't allocate memory",
        "out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"}) {
    if (message.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace sordino
