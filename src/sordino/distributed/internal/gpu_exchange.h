// Sums and gathers from GPU to GPU, for ranks that have one each. What they are is in
// nccl_exchange.cc, or in no_nccl_exchange.cc where Sordino is built without NCCL.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_GPU_EXCHANGE_H_
#define SORDINO_DISTRIBUTED_INTERNAL_GPU_EXCHANGE_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sordino/distributed/communicator.h"

namespace sordino::internal {

class GpuExchange {
 public:
  virtual ~GpuExchange() = default;
  GpuExchange() = default;
  GpuExchange(const GpuExchange&) = delete;
  GpuExchange& operator=(const GpuExchange&) = delete;

  // Returns when this rank's GPU has done what it was asked for so far.
  virtual void FinishOwnWork() = 0;
  // As those of Communicator, with tensors on the GPU. They return when the result is there, and
  // throw where the group has lost a rank.
  virtual void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) = 0;
  virtual void AllGather(const at::Tensor& shard, at::Tensor& all) = 0;
};

// The name of a GPU, which no other one has on any machine. Empty for what is no GPU, and where
// there is no NCCL.
std::string GpuName(c10::Device device);

// Whether each of the ranks, whose GPUs have these names, has one that no other rank uses. (NCCL
// does not add up within one GPU.)
bool HaveGpuEach(const std::vector<std::string>& names);

// Collective. Null on every rank where one of them could not connect.
std::unique_ptr<GpuExchange> ConnectGpus(Communicator& group, c10::Device device,
                                         const std::function<bool()>& has_lost);

// Collective: throws the same Error on every rank unless `group` gives the same integers for
// tensors on `device` as for tensors on the CPU.
void RequireEqualSums(Communicator& group, c10::Device device);

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_GPU_EXCHANGE_H_
