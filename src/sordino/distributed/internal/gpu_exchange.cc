#include "sordino/distributed/internal/gpu_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

// Of all ranks together: NCCL moves a few numbers in another way than many.
constexpr std::int64_t kManyNumbers = 1 << 20;

// Numbers of both signs that use all bits, another one in every place of every rank, whose sums
// stay below 2^60.
at::Tensor TestNumbers(std::int64_t count, const Communicator& group) {
  at::Tensor numbers = at::empty({count}, at::kLong);
  auto* const out = numbers.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    // The finalizer of SplitMix64.
    auto bits = static_cast<std::uint64_t>(count * group.Rank() + i + 1) * 0x9E3779B97F4A7C15U;
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    bits ^= bits >> 31U;
    out[i] = static_cast<std::int64_t>(bits) / (std::int64_t{8} * group.Size());
  }
  return numbers;
}

struct Exchanged {
  at::Tensor sum;
  at::Tensor gathered;
};

Exchanged ExchangeOn(c10::Device device, const at::Tensor& numbers, Communicator& group) {
  const auto whole = at::TensorOptions(at::kLong).device(device);
  // -1: what is not written shows.
  at::Tensor sum = at::full({numbers.numel() / group.Size()}, -1, whole);
  at::Tensor gathered = at::full({numbers.numel()}, -1, whole);
  const at::Tensor there = numbers.to(device);
  group.ReduceScatterSum(there, sum);
  group.AllGather(there.narrow(0, 0, sum.numel()), gathered);
  return {.sum = sum.to(at::kCPU), .gathered = gathered.to(at::kCPU)};
}

}  // namespace

bool HaveGpuEach(const std::vector<std::string>& names) {
  const std::set<std::string> different(names.begin(), names.end());
  return different.size() == names.size() && !different.contains("");
}

void RequireEqualSums(Communicator& group, c10::Device device) {
  bool are_equal = true;
  for (const std::int64_t shard :
       {std::int64_t{1}, std::max<std::int64_t>(kManyNumbers / group.Size(), 64)}) {
    const at::Tensor numbers = TestNumbers(shard * group.Size(), group);
    const Exchanged wanted = ExchangeOn(at::kCPU, numbers, group);
    const Exchanged found = ExchangeOn(device, numbers, group);
    are_equal =
        are_equal && at::equal(found.sum, wanted.sum) && at::equal(found.gathered, wanted.gathered);
  }
  const std::vector<std::string> all = group.AllGatherBytes(are_equal ? "" : "different");
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    throw Error(
        fmt::format("rank {} of {} got other sums of test numbers over NCCL than over Gloo, so "
                    "nothing was begun; look for a fault in the links between the GPUs, or set "
                    "NCCL_P2P_DISABLE=1 for all ranks.",
                    rank, all.size()));
  }
}

}  // namespace sordino::internal
