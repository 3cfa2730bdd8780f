// A safetensors file.
#include "fuzz_target.h"
#include "sordino/models/safetensors.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::Run([&] {
    const SafetensorsFile file = ParseSafetensors(fuzz::AsBytes(data, size), "input");
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : file.tensors) bytes += tensor.nbytes();
    fuzz::Require(bytes <= size, "the tensors are larger than their file");
  });
}
