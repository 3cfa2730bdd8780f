#include "sordino/base/check.h"
#include "sordino/distributed/communicator.h"

namespace sordino {
namespace {

class OneRank : public Communicator {
 public:
  int Rank() const override { return 0; }
  int Size() const override { return 1; }
  c10::Device DeviceFor(c10::Device device) const override { return device; }
  void AllReduceSum(at::Tensor& /*values*/) override {}
  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override {
    SORDINO_CHECK(values.numel() == shard.numel(), "a shard of one rank is not the whole");
    shard.copy_(values);
  }
  void AllGather(const at::Tensor& shard, at::Tensor& all) override {
    SORDINO_CHECK(all.numel() == shard.numel(), "a shard of one rank is not the whole");
    all.copy_(shard);
  }
  std::string Broadcast(const std::string& bytes) override { return bytes; }
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override { return {bytes}; }
  void Barrier() override {}
};

}  // namespace

std::unique_ptr<Communicator> SingleProcess() { return std::make_unique<OneRank>(); }

}  // namespace sordino
