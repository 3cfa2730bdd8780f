#include "sordino/torch_cli/peak_memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "sordino/base/check.h"

namespace sordino {
namespace {

// libtorch's own allocator registers with 0; an equal priority replaces, so that this one can be
// taken away again.
constexpr std::uint8_t kPriority = 1;

// Sizes of the blocks that were handed out while counting. A block keeps the address of libtorch's
// own allocator, so that either of the two can free what the other one made: oneDNN asks for
// memory by the allocator of the moment, and gives it back to that of a later one.
class BlockTable {
 public:
  void Add(void* block, std::int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Not 0 where a block was freed behind our back and its address came again.
    std::int64_t& known = bytes_[block];
    held_ += bytes - known;
    known = bytes;
    peak_ = std::max(peak_, held_);
  }
  void Remove(void* block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = bytes_.find(block);
    if (found == bytes_.end()) return;
    held_ -= found->second;
    bytes_.erase(found);
  }
  void Restart() {
    const std::lock_guard<std::mutex> lock(mutex_);
    peak_ = held_;
  }
  std::int64_t held() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_;
  }
  std::int64_t peak() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peak_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> bytes_;
  std::int64_t held_ = 0;
  std::int64_t peak_ = 0;
};

// Never destroyed: tensors in static variables are freed after everything else.
BlockTable& Blocks() {
  static auto* const blocks = new BlockTable;
  return *blocks;
}

void FreeBlock(void* block) {
  if (block == nullptr) return;
  Blocks().Remove(block);
  c10::GetDefaultCPUAllocator()->raw_deallocate(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    void* const block = c10::GetDefaultCPUAllocator()->raw_allocate(n);
    if (block != nullptr) Blocks().Add(block, static_cast<std::int64_t>(n));
    return {block, block, &FreeBlock, at::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &FreeBlock; }
  void copy_data(void* destination, const void* source, std::size_t count) const override {
    default_copy_data(destination, source, count);
  }
};

std::atomic<bool> g_counting{false};

// Which of the caching allocator's counts: all of its pools together.
std::size_t Aggregate() {
  return static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
}

}  // namespace

PeakMemory::PeakMemory(at::Device device) : device_(device) {
  SORDINO_CHECK(!g_counting.exchange(true), "two counts of memory at a time");
  if (device_.is_cpu()) {
    static auto* const allocator = new CountingAllocator;
    c10::SetCPUAllocator(allocator, kPriority);
  }
  SetBaseline();
}

PeakMemory::~PeakMemory() {
  if (device_.is_cpu()) c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), kPriority);
  g_counting = false;
}

std::int64_t PeakMemory::Held() const {
  if (device_.is_cpu()) return Blocks().held();
  at::accelerator::synchronizeDevice(device_.index());
  return at::accelerator::getDeviceStats(device_.index()).allocated_bytes[Aggregate()].current;
}

void PeakMemory::SetBaseline() {
  baseline_ = Held();
  Restart();
}

void PeakMemory::Restart() {
  if (device_.is_cpu()) {
    Blocks().Restart();
  } else {
    at::accelerator::synchronizeDevice(device_.index());
    at::accelerator::resetPeakStats(device_.index());
  }
}

std::int64_t PeakMemory::Peak() const {
  if (device_.is_cpu()) return Blocks().peak() - baseline_;
  at::accelerator::synchronizeDevice(device_.index());
  return at::accelerator::getDeviceStats(device_.index()).allocated_bytes[Aggregate()].peak -
         baseline_;
}

}  // namespace sordino
