// Time for tests that bound it: the processor time of this process, which other programs on the
// machine do not add to. Limits leave a factor of ten or more for slower machines; how fast the
// code really is, the benchmarks measure.
#ifndef SORDINO_BASE_TESTING_PROCESSOR_TIME_H_
#define SORDINO_BASE_TESTING_PROCESSOR_TIME_H_

#include <ctime>

namespace sordino {

// Of all threads together, in seconds.
inline double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace sordino

#endif  // SORDINO_BASE_TESTING_PROCESSOR_TIME_H_
