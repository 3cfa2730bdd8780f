// Ranks that are threads of one process, for tests.
#ifndef SORDINO_DISTRIBUTED_TESTING_THREADS_COMMUNICATOR_H_
#define SORDINO_DISTRIBUTED_TESTING_THREADS_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/distributed/communicator.h"

namespace sordino {

// The place where threads meet: each brings bytes and leaves with those of all.
class MeetingPlace {
 public:
  explicit MeetingPlace(int size) : size_(size), brought_(static_cast<std::size_t>(size)) {}

  // Throws CommunicationError when a rank has left.
  std::vector<std::string> Exchange(int rank, std::string bytes) {
    std::unique_lock lock(mutex_);
    brought_[static_cast<std::size_t>(rank)] = std::move(bytes);
    const int round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      taken_ = brought_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round || has_left_; });
    }
    // A round that is complete is one for all, also when somebody has left since.
    if (round_ == round) throw CommunicationError("a rank has ended.");
    return taken_;
  }

  // The thread of a rank has ended.
  void Leave() {
    const std::lock_guard lock(mutex_);
    has_left_ = true;
    changed_.notify_all();
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> brought_;
  std::vector<std::string> taken_;
  int arrived_ = 0;
  int round_ = 0;
  bool has_left_ = false;
};

// Counts what a ring would send: (Size() - 1) shards to scatter sums, and to gather.
class ThreadsCommunicator : public Communicator {
 public:
  // takes_devices: exchanges tensors on any device, by copies.
  ThreadsCommunicator(int rank, int size, MeetingPlace& place, bool takes_devices = false)
      : rank_(rank), size_(size), place_(place), takes_devices_(takes_devices) {}

  int Rank() const override { return rank_; }
  int Size() const override { return size_; }
  c10::Device DeviceFor(c10::Device device) const override {
    return takes_devices_ ? device : c10::Device(c10::kCPU);
  }

  void AllReduceSum(at::Tensor& values) override {
    values.copy_(Sum(values));
    CountSent(std::int64_t{2} * (size_ - 1) * Bytes(values) / size_);
  }

  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    SORDINO_CHECK(values.numel() == size_ * shard.numel(), "the parts of a sum are not equal");
    shard.copy_(Sum(values).narrow(0, rank_ * shard.numel(), shard.numel()));
    CountSent((size_ - 1) * Bytes(shard));
  }

  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    SORDINO_CHECK(all.numel() == size_ * shard.numel(), "the parts of a whole are not equal");
    const std::vector<std::string> shards = place_.Exchange(rank_, BytesOf(shard));
    Check(all);
    at::Tensor gathered = at::empty(all.sizes(), all.scalar_type());
    auto* out = static_cast<char*>(gathered.mutable_data_ptr());
    for (const std::string& one : shards) {
      SORDINO_CHECK(one.size() == static_cast<std::size_t>(Bytes(shard)),
                    "the shards of two ranks have different sizes");
      out = std::copy(one.begin(), one.end(), out);
    }
    all.copy_(gathered);
    CountSent((size_ - 1) * Bytes(shard));
  }

  std::string Broadcast(const std::string& bytes) override {
    return place_.Exchange(rank_, bytes).front();
  }
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
    return place_.Exchange(rank_, bytes);
  }
  void Barrier() override { place_.Exchange(rank_, ""); }

 private:
  static std::int64_t Bytes(const at::Tensor& tensor) {
    return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
  }
  void Check(const at::Tensor& tensor) const {
    SORDINO_CHECK(tensor.is_contiguous() && (tensor.is_cpu() || takes_devices_),
                  "a tensor of a collective operation has gaps or is on a device");
  }
  std::string BytesOf(const at::Tensor& tensor) const {
    Check(tensor);
    const at::Tensor host = tensor.cpu();
    return {static_cast<const char*>(host.const_data_ptr()), static_cast<std::size_t>(Bytes(host))};
  }

  at::Tensor Sum(const at::Tensor& values) {
    SORDINO_CHECK(values.scalar_type() == at::kLong, "a sum over ranks is not one of integers");
    at::Tensor sum = at::zeros({values.numel()}, at::kLong);
    at::Tensor one = at::empty({values.numel()}, at::kLong);
    for (const std::string& bytes : place_.Exchange(rank_, BytesOf(values))) {
      SORDINO_CHECK(bytes.size() == static_cast<std::size_t>(Bytes(values)),
                    "two ranks add tensors of different sizes");
      std::memcpy(one.mutable_data_ptr(), bytes.data(), bytes.size());
      sum.add_(one);
    }
    return sum;
  }

  int rank_;
  int size_;
  MeetingPlace& place_;
  bool takes_devices_;
};

// Runs `work` on `size` ranks and throws what the first of them threw of its own accord: an
// exception that is no CommunicationError goes before those that followed from it.
inline void RunRanks(int size, const std::function<void(Communicator&)>& work,
                     bool takes_devices = false) {
  MeetingPlace place(size);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadsCommunicator communicator(rank, size, place, takes_devices);
      try {
        work(communicator);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
      place.Leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr followed;
  for (const std::exception_ptr& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const CommunicationError&) {
      followed = failure;
    } catch (...) {
      throw;
    }
  }
  if (followed) std::rethrow_exception(followed);
}

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_TESTING_THREADS_COMMUNICATOR_H_
