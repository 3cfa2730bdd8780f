#include "sordino/device/parallel_shares.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sordino {
namespace {

class TwoThreads {
 public:
  TwoThreads() { at::set_num_threads(2); }
  ~TwoThreads() { at::set_num_threads(before_); }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

TEST(ParallelShares, CoverEveryIndexOnce) {
  for (const std::int64_t n : {0, 1, 2, 3, 7, 256, 1001}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
    ParallelShares(n, [&](std::int64_t begin, std::int64_t end) {
      ASSERT_LT(begin, end);
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    for (const auto& count : visits) EXPECT_EQ(count, 1);
  }
}

// A loop that silently runs on one thread costs half of the speed and no test of values sees it.
TEST(ParallelShares, RunOnAsManyThreadsAsLibtorchHas) {
  const TwoThreads two;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  ParallelShares(8, [&](std::int64_t /*begin*/, std::int64_t /*end*/) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2U);
}

TEST(ParallelShares, HandOnWhatIsThrown) {
  const TwoThreads two;
  EXPECT_THROW(ParallelShares(8,
                              [](std::int64_t begin, std::int64_t /*end*/) {
                                if (begin > 0) throw std::runtime_error("share");
                              }),
               std::runtime_error);
}

}  // namespace
}  // namespace sordino
