// How many processor threads libtorch computes with.
#ifndef SORDINO_DEVICE_THREADS_H_
#define SORDINO_DEVICE_THREADS_H_

namespace sordino {

// For all of libtorch in this process, from 1. Unlike at::set_num_threads it also counts for the
// convolutions of Arm processors.
void UseThreads(int threads);

}  // namespace sordino

#endif  // SORDINO_DEVICE_THREADS_H_
