// Ranks that are threads and compute one after the other.
#ifndef SORDINO_TRAINING_TESTING_TAKES_TURNS_H_
#define SORDINO_TRAINING_TESTING_TAKES_TURNS_H_

#include <ATen/core/Tensor.h>

#include <mutex>
#include <string>
#include <vector>

#include "sordino/distributed/communicator.h"

namespace sordino {

// A rank that is a thread and computes while no other does: libtorch's forward mode, by which norms
// are estimated, and its default generators are those of the process.
class TakesTurns : public Communicator {
 public:
  explicit TakesTurns(Communicator& inner, bool takes_turns = true)
      : inner_(inner), lock_(Turn(), std::defer_lock) {
    if (takes_turns) lock_.lock();
  }
  int Rank() const override { return inner_.Rank(); }
  int Size() const override { return inner_.Size(); }
  at::Device DeviceFor(at::Device device) const override { return inner_.DeviceFor(device); }
  void AllReduceSum(at::Tensor& values) override {
    const Pause pause(lock_);
    inner_.AllReduceSum(values);
  }
  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    const Pause pause(lock_);
    inner_.ReduceScatterSum(values, shard);
  }
  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    const Pause pause(lock_);
    inner_.AllGather(shard, all);
  }
  std::string Broadcast(const std::string& bytes) override {
    const Pause pause(lock_);
    return inner_.Broadcast(bytes);
  }
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
    const Pause pause(lock_);
    return inner_.AllGatherBytes(bytes);
  }
  void Barrier() override {
    const Pause pause(lock_);
    inner_.Barrier();
  }

 private:
  static std::mutex& Turn() {
    static std::mutex turn;
    return turn;
  }
  class Pause {
   public:
    explicit Pause(std::unique_lock<std::mutex>& lock) : lock_(lock), held_(lock.owns_lock()) {
      if (held_) lock_.unlock();
    }
    ~Pause() {
      if (held_) lock_.lock();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::unique_lock<std::mutex>& lock_;
    bool held_;
  };

  Communicator& inner_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_TESTING_TAKES_TURNS_H_
