#include "sordino/random/internal/fork_guard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "sordino/base/check.h"

namespace sordino::internal {
namespace {

// Last generation handed out in this process; inherited by a child, which therefore hands out a
// larger one than any that the inherited generators have seen.
std::atomic<std::uint64_t> last_generation{0};
std::atomic<std::uint64_t> forks_begun{0};
std::atomic<std::uint64_t> lineage{0};
std::atomic<std::uint64_t>* wiped = nullptr;

// The finaliser of SplitMix64, a bijection: siblings, whose ordinals differ, stay distinct.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void BeforeFork() { forks_begun.fetch_add(1); }

void InChild() {
  wiped->store(0);
  lineage.store(Mix(Mix(lineage.load()) + forks_begun.exchange(0)));
}

std::atomic<std::uint64_t>* MapWipedPage() {
  const auto page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SORDINO_CHECK(page != MAP_FAILED, "no memory for the guard against repeated noise after a fork");
#ifdef MADV_WIPEONFORK
  // An old kernel refuses; the handler below then does the same for every fork() of the C library.
  static_cast<void>(madvise(page, page_size, MADV_WIPEONFORK));
#endif
  wiped = new (page) std::atomic<std::uint64_t>(0);
  SORDINO_CHECK(pthread_atfork(BeforeFork, nullptr, InChild) == 0,
                "no guard against repeated noise after a fork could be installed");
  return wiped;
}

}  // namespace

std::uint64_t ForkGeneration() {
  static std::atomic<std::uint64_t>* const current = MapWipedPage();
  std::uint64_t seen = current->load(std::memory_order_acquire);
  if (seen == 0) [[unlikely]] {
    const std::uint64_t fresh = last_generation.fetch_add(1) + 1;
    // Of several threads that get here at once one wins and the others read its number.
    if (current->compare_exchange_strong(seen, fresh)) seen = fresh;
  }
  return seen;
}

std::uint64_t ForkLineage() {
  static_cast<void>(ForkGeneration());
  return lineage.load();
}

}  // namespace sordino::internal
