// Tells a generator that its process was forked, so that no child repeats its parent's stream.
//
// The number lives in a page that the kernel fills with zeros in every child
// (madvise MADV_WIPEONFORK, Linux 4.14), which also catches clone() calls that bypass the C
// library; where the kernel does not offer that, a pthread_atfork handler does the same.
#ifndef SORDINO_RANDOM_INTERNAL_FORK_GUARD_H_
#define SORDINO_RANDOM_INTERNAL_FORK_GUARD_H_

#include <cstdint>

namespace sordino::internal {

// Never zero; changes in the child of a fork and at no other time. Costs one load of a page that
// is otherwise never written.
std::uint64_t ForkGeneration();

// Names this process among the descendants of the first one by the ordinals of the forks that
// led to it: equal in two runs that fork in the same order, different between siblings. Zero in
// a process that was not forked since the library's first use. For the seeded generator only.
std::uint64_t ForkLineage();

}  // namespace sordino::internal

#endif  // SORDINO_RANDOM_INTERNAL_FORK_GUARD_H_
