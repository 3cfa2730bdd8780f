// Independent pieces of work on two threads: files to decompress, images to decode.
#ifndef SORDINO_DATA_INTERNAL_PARALLEL_ITEMS_H_
#define SORDINO_DATA_INTERNAL_PARALLEL_ITEMS_H_

#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

namespace sordino::internal {

// Calls work(i) for every i below `count`, on the calling thread and one other; `watch(done)` is
// called on the calling thread now and then. When pieces fail, the exception of the first of them
// is thrown, whichever thread was faster, so that a user sees the same sentence every time.
template <typename Work, typename Watch>
void ForEachItem(std::size_t count, const Work& work, const Watch& watch) {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed = std::numeric_limits<std::size_t>::max();
  std::atomic<bool> stop{false};
  const auto take_turns = [&](bool watching) {
    // Items are handed out in order, so none before a failed one is left out.
    while (!stop.load()) {
      const std::size_t item = next.fetch_add(1);
      if (item >= count) return;
      try {
        work(item);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (item < failed) {
          failed = item;
          failure = std::current_exception();
        }
        stop.store(true);
      }
      done.fetch_add(1);
      if (watching) watch(done.load());
    }
  };
  if (count > 1) {
    std::thread other(take_turns, false);
    take_turns(true);
    other.join();
  } else {
    take_turns(true);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_PARALLEL_ITEMS_H_
