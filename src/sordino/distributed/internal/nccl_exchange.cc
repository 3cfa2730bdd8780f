// The only file that sees nccl.h (cmake/SordinoNccl.cmake).
//
// NCCL itself, not c10d's class around it: that one has threads that end the process in words of
// their own, and its layout depends on the nccl.h that libtorch was built with, which the wheel
// does not ship. NCCL's functions are those that libtorch has loaded; they are looked up by name
// when they are needed, so that a libtorch without them runs the same program.
//
// The communicator does not block: a call that is not complete is asked after until it is, or until
// the group has lost a rank. Sums of integers have the same bits in any order.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <dlfcn.h>
#include <nccl.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/distributed/internal/gpu_exchange.h"

namespace sordino::internal {
namespace {

using NcclClock = std::chrono::steady_clock;

// After which ranks go back to Gloo.
constexpr std::chrono::seconds kNcclConnecting(60);
constexpr std::chrono::microseconds kNcclLook(20);

struct NcclFunctions {
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init = nullptr;
  decltype(&::ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
};

template <typename Function>
bool FindFunction(const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

// Null where this libtorch has no NCCL.
const NcclFunctions* Nccl() {
  static NcclFunctions functions;
  static const bool are_there = FindFunction("ncclGetUniqueId", functions.get_unique_id) &&
                                FindFunction("ncclCommInitRankConfig", functions.init) &&
                                FindFunction("ncclCommGetAsyncError", functions.get_async_error) &&
                                FindFunction("ncclCommAbort", functions.abort) &&
                                FindFunction("ncclReduceScatter", functions.reduce_scatter) &&
                                FindFunction("ncclAllGather", functions.all_gather);
  return are_there ? &functions : nullptr;
}

// What went wrong is told by the group, which finds out who was lost.
void RequireNccl(bool is_right) {
  if (!is_right) throw std::runtime_error("an operation of NCCL has failed.");
}

class NcclExchange : public GpuExchange {
 public:
  NcclExchange(c10::Device device, std::function<bool()> has_lost)
      : nccl_(*Nccl()), device_(device), has_lost_(std::move(has_lost)) {}
  // Nothing is waited for: either all ranks have all results, or a rank was lost.
  ~NcclExchange() override {
    if (communicator_ != nullptr) nccl_.abort(communicator_);
  }

  void Connect(const ncclUniqueId& id, int rank, int size) {
    const c10::cuda::CUDAGuard guard(device_);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const NcclClock::time_point end = NcclClock::now() + kNcclConnecting;
    WaitUntilAccepted(nccl_.init(&communicator_, size, id, rank, &config), end);
  }

  void FinishOwnWork() override { Stream().synchronize(); }

  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    const c10::cuda::CUDAGuard guard(device_);
    Finish(nccl_.reduce_scatter(values.const_data_ptr(), shard.mutable_data_ptr(),
                                static_cast<std::size_t>(shard.numel()), ncclInt64, ncclSum,
                                communicator_, Stream().stream()));
  }

  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    const c10::cuda::CUDAGuard guard(device_);
    Finish(nccl_.all_gather(shard.const_data_ptr(), all.mutable_data_ptr(), shard.nbytes(),
                            ncclUint8, communicator_, Stream().stream()));
  }

 private:
  c10::cuda::CUDAStream Stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()); }

  // Whether NCCL is done with what it was called for, on the processor.
  bool IsAccepted() const {
    ncclResult_t result = ncclSuccess;
    RequireNccl(nccl_.get_async_error(communicator_, &result) == ncclSuccess);
    RequireNccl(result == ncclSuccess || result == ncclInProgress);
    return result == ncclSuccess;
  }

  void WaitUntilAccepted(ncclResult_t called, NcclClock::time_point end) const {
    RequireNccl(called == ncclSuccess || called == ncclInProgress);
    while (!IsAccepted()) {
      RequireNccl(!has_lost_() && NcclClock::now() < end);
      std::this_thread::sleep_for(kNcclLook);
    }
  }

  // Returns when the result is on the GPU. How long it may take is for the group to judge.
  void Finish(ncclResult_t called) const {
    WaitUntilAccepted(called, NcclClock::time_point::max());
    while (!Stream().query()) {
      static_cast<void>(IsAccepted());
      RequireNccl(!has_lost_());
      std::this_thread::sleep_for(kNcclLook);
    }
    RequireNccl(IsAccepted());
  }

  const NcclFunctions& nccl_;
  const c10::Device device_;
  const std::function<bool()> has_lost_;
  ncclComm_t communicator_ = nullptr;
};

std::string NewNcclId(const NcclFunctions& nccl) {
  ncclUniqueId id{};
  if (nccl.get_unique_id(&id) != ncclSuccess) return "";
  return {static_cast<const char*>(id.internal), sizeof id.internal};
}

}  // namespace

std::string GpuName(c10::Device device) {
  if (!device.is_cuda() || !at::hasCUDA() || Nccl() == nullptr) return "";
  SORDINO_CHECK(device.has_index(), "a rank computes on one GPU");
  const cudaUUID_t& name = at::cuda::getDeviceProperties(device.index())->uuid;
  return {static_cast<const char*>(name.bytes), sizeof name.bytes};
}

std::unique_ptr<GpuExchange> ConnectGpus(Communicator& group, c10::Device device,
                                         const std::function<bool()>& has_lost) {
  SORDINO_CHECK(Nccl() != nullptr, "GPUs were to be connected without NCCL");
  const std::string shared = group.Broadcast(group.IsFirst() ? NewNcclId(*Nccl()) : "");
  auto exchange = std::make_unique<NcclExchange>(device, has_lost);
  bool is_connected = false;
  ncclUniqueId id{};
  if (shared.size() == sizeof id.internal) {
    std::memcpy(id.internal, shared.data(), sizeof id.internal);
    try {
      exchange->Connect(id, group.Rank(), group.Size());
      is_connected = true;
    } catch (const std::exception&) {
      // All ranks go back to Gloo.
    }
  }
  for (const std::string& other : group.AllGatherBytes(is_connected ? "connected" : "")) {
    if (other.empty()) return nullptr;
  }
  return exchange;
}

}  // namespace sordino::internal
