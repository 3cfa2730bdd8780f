#include "sordino/device/internal/used_storages.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <thread>

namespace sordino::internal {
namespace {

bool Holds(const std::vector<c10::Storage>& storages, const at::Tensor& tensor) {
  return std::any_of(storages.begin(), storages.end(), [&](const c10::Storage& storage) {
    return storage.unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl();
  });
}

TEST(UsedStorages, AreThoseThatWereMadeBefore) {
  const at::Tensor a = at::ones({3});
  const at::Tensor unused = at::ones({3});
  UsedStorages watch;
  const at::Tensor b = a.slice(0, 1) * 2;
  const at::Tensor c = b + at::ones({2});
  const std::vector<c10::Storage> used = watch.Take();
  EXPECT_TRUE(Holds(used, a));
  EXPECT_FALSE(Holds(used, unused));
  EXPECT_FALSE(Holds(used, b));
  EXPECT_FALSE(Holds(used, c));
}

TEST(UsedStorages, OfListsAndOfOtherThreads) {
  const at::Tensor a = at::ones({3});
  const at::Tensor b = at::ones({3});
  const at::Tensor c = at::ones({3});
  UsedStorages watch;
  const at::Tensor joined = at::cat({a, b});
  std::thread([&] { static_cast<void>(c.sum()); }).join();
  const std::vector<c10::Storage> used = watch.Take();
  EXPECT_TRUE(Holds(used, a));
  EXPECT_TRUE(Holds(used, b));
  EXPECT_TRUE(Holds(used, c));
  EXPECT_FALSE(Holds(used, joined));
}

TEST(UsedStorages, OfBackwardPasses) {
  const at::Tensor weight = at::ones({3}).set_requires_grad(true);
  const at::Tensor constant = at::ones({3});
  UsedStorages watch;
  const at::Tensor loss = (weight * constant).sum();
  static_cast<void>(torch::autograd::grad({loss}, {weight}));
  const std::vector<c10::Storage> used = watch.Take();
  EXPECT_TRUE(Holds(used, weight));
  EXPECT_TRUE(Holds(used, constant));
}

// What is dropped while it is watched stays: its memory is not given to anybody else.
TEST(UsedStorages, KeepWhatIsDropped) {
  at::Tensor buffer = at::ones({1024});
  const void* const address = buffer.storage().unsafeGetStorageImpl();
  UsedStorages watch;
  static_cast<void>(buffer.sum());
  buffer = at::Tensor();
  const std::vector<c10::Storage> used = watch.Take();
  EXPECT_TRUE(std::any_of(used.begin(), used.end(), [&](const c10::Storage& storage) {
    return storage.unsafeGetStorageImpl() == address;
  }));
}

TEST(UsedStorages, ASecondWatchFollowsTheFirst) {
  const at::Tensor a = at::ones({3});
  {
    const UsedStorages first;
    static_cast<void>(a.sum());
  }
  UsedStorages second;
  EXPECT_TRUE(second.Take().empty());
}

}  // namespace
}  // namespace sordino::internal
