// Loops that are compiled for several sets of vector instructions; the machine chooses when the
// program is loaded.
//
//   SORDINO_VECTOR_CLONES void AddTo(double* sums, const double* values, std::int64_t count) { ...
//   }
//
// For functions that are not templates. Results have the same bits in every clone: nothing is fused
// or reordered (docs/decisions/floating-point-flags.md).
#ifndef SORDINO_BASE_VECTOR_CLONES_H_
#define SORDINO_BASE_VECTOR_CLONES_H_

#include <cstddef>  // defines __GLIBC__ where there is one

// The choice needs GCC 12, which knows these levels, and a loader that knows indirect functions;
// the sanitizers do not know them.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) && !defined(__clang__) && \
    __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SORDINO_VECTOR_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define SORDINO_VECTOR_CLONES
#endif

#endif  // SORDINO_BASE_VECTOR_CLONES_H_
