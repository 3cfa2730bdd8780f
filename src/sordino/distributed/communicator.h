// Ranks that train one model together, and what they say to each other.
//
// A rank is a process (or, in tests, a thread: testing/threads_communicator.h). Every operation is
// collective: all ranks call the same operations in the same order with tensors of the same sizes.
// Sums are sums of 64-bit integers, so that no result depends on the order in which ranks are added
// or on how many there are; nothing here adds floating-point numbers.
//
// A rank that fails, hangs or disappears makes the operation throw CommunicationError on the other
// ranks within the time limit of the implementation. A communicator that has thrown cannot be used
// again.
#ifndef SORDINO_DISTRIBUTED_COMMUNICATOR_H_
#define SORDINO_DISTRIBUTED_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {

// Another rank could not be reached, or has ended; one sentence.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int Rank() const = 0;  // 0 to Size() - 1
  virtual int Size() const = 0;  // at least 1
  bool IsFirst() const { return Rank() == 0; }

  // Collective, at most once: ranks that have a GPU each may exchange tensors on them from now on.
  // `device` is where this rank computes. Throws the same Error on every rank where the GPUs do not
  // add up as processors do.
  virtual void UseDevice(c10::Device device) { static_cast<void>(device); }
  // Where tensors that lie on `device` are exchanged: there, or on the CPU. It is the same kind of
  // device on every rank.
  virtual c10::Device DeviceFor(c10::Device device) const {
    static_cast<void>(device);
    return c10::kCPU;
  }

  // Tensors are contiguous and on the CPU, or on a device that DeviceFor() returns.
  //
  // The sum over all ranks, in place; int64.
  virtual void AllReduceSum(at::Tensor& values) = 0;
  // Rank r gets the r-th of Size() equal parts of the sum over all ranks: `values` has
  // Size() * shard.numel() elements; int64.
  virtual void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) = 0;
  // The shards of all ranks, in the order of the ranks: `all` has Size() * shard.numel() elements
  // of the same type, which is any.
  virtual void AllGather(const at::Tensor& shard, at::Tensor& all) = 0;

  // What rank 0 passes, on every rank; what others pass is not read.
  virtual std::string Broadcast(const std::string& bytes) = 0;
  // What each rank passes, in the order of the ranks, on every rank.
  virtual std::vector<std::string> AllGatherBytes(const std::string& bytes) = 0;
  // Returns when all ranks have called it.
  virtual void Barrier() = 0;

  // Bytes of tensors that this rank has sent to others so far; without headers, strings and
  // barriers.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  void CountSent(std::int64_t bytes) { bytes_sent_ += bytes; }

 private:
  std::int64_t bytes_sent_ = 0;
};

// One rank, which is alone: nothing is sent.
std::unique_ptr<Communicator> SingleProcess();

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_COMMUNICATOR_H_
