#include "sordino/device/threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <ctime>

namespace sordino {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time{};
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Fails on Arm processors with several cores where at::set_num_threads is all that is called.
TEST(Threads, OneIsOneForConvolutionsToo) {
  const int before = at::get_num_threads();
  UseThreads(1);
  const at::Tensor images = at::ones({16, 64, 32, 32});
  const at::Tensor weights = at::ones({64, 64, 3, 3});
  const double own_before = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
  const double all_before = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < 5; ++i) {
    at::convolution(images, weights, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1);
  }
  const double all = SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - all_before;
  const double own = SecondsOf(CLOCK_THREAD_CPUTIME_ID) - own_before;
  UseThreads(before);
  EXPECT_LT(all, 1.1 * own);
}

TEST(Threads, AreThoseOfLibtorch) {
  const int before = at::get_num_threads();
  UseThreads(3);
  EXPECT_EQ(at::get_num_threads(), 3);
  UseThreads(before);
}

}  // namespace
}  // namespace sordino
