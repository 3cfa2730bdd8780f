// Instantiations that libtorch must not take from its own library.
//
// The aarch64 build of libtorch holds a copy of this member of std::vector that was compiled for
// processors with SVE, and torch::nn::LSTM and others call it on every processor: an illegal
// instruction where there is no SVE. It is a weak symbol, so the copy in the program wins.
#include <ATen/core/Tensor.h>

#include <vector>

#if defined(__GLIBCXX__)
template void std::vector<at::Tensor>::_M_realloc_insert<at::Tensor&>(
    std::vector<at::Tensor>::iterator, at::Tensor&);
#endif
