// Loops on libtorch's own threads.
//
// at::parallel_for is a template around an OpenMP pragma: in a program that is compiled without
// OpenMP, as ours is, it is a plain loop, without a warning. Compiling with OpenMP does not help:
// the runtime of the compiler need not be the one inside libtorch, and two runtimes compete for the
// cores. libtorch's element-wise loops are compiled inside it; one over a tensor of n bytes
// shares out n pieces of any work.
#ifndef SORDINO_DEVICE_PARALLEL_SHARES_H_
#define SORDINO_DEVICE_PARALLEL_SHARES_H_

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace sordino {

// Calls work(begin, end) for consecutive shares of [0, n), one for each of libtorch's threads; with
// one thread or n = 1 on the calling thread. Within `work` products run on one thread. What `work`
// throws is thrown.
void ParallelShares(std::int64_t n, c10::function_ref<void(std::int64_t, std::int64_t)> work);

}  // namespace sordino

#endif  // SORDINO_DEVICE_PARALLEL_SHARES_H_
