// An NPY array.
#include "fuzz_target.h"
#include "sordino/data/npy_reader.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::Run([&] {
    const at::Tensor array = ParseNpy(fuzz::AsBytes(data, size), "input");
    // Unsigned types become wider ones, by a factor of two at most.
    fuzz::Require(array.nbytes() <= 2 * size, "the array is larger than its file");
    fuzz::Require(array.is_contiguous(), "the array is not in C order");
  });
}
