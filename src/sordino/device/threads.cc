#include "sordino/device/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include "sordino/base/check.h"

namespace sordino {
namespace {

template <typename Function>
Function* Named(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// On Arm processors oneDNN hands convolutions to Arm's Compute Library, whose number of threads is
// that of the cores at the moment when libtorch is loaded, and which nobody asks again. libtorch
// has that library and none of its headers, so its functions are called by their names; where they
// are not there, nothing has to be done.
void UseThreadsInComputeLibrary(int threads) {
  // arm_compute::Scheduler::get(), OMPScheduler::set_num_threads(unsigned), and the table of
  // OMPScheduler's virtual functions, whose first one is behind two pointers.
  auto* const get = Named<void*()>("_ZN11arm_compute9Scheduler3getEv");
  auto* const set =
      Named<void(void*, unsigned)>("_ZN11arm_compute12OMPScheduler15set_num_threadsEj");
  auto* const table =
      static_cast<const void* const*>(::dlsym(RTLD_DEFAULT, "_ZTVN11arm_compute12OMPSchedulerE"));
  if (get == nullptr || set == nullptr || table == nullptr) return;
  void* const scheduler = get();
  if (*static_cast<const void* const*>(scheduler) != table + 2) return;  // of another class
  set(scheduler, static_cast<unsigned>(threads));
}

}  // namespace

void UseThreads(int threads) {
  SORDINO_CHECK(threads >= 1, "libtorch computes with at least one thread");
  at::set_num_threads(threads);
  UseThreadsInComputeLibrary(threads);
}

}  // namespace sordino
