// Plain, gzip or xz, told by the first bytes.
#include "fuzz_target.h"
#include "sordino/tables/compressed_file.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 20;
  return fuzz::Run([&] {
    const auto bytes = Decompress(fuzz::AsBytes(data, size), "input", kLimit);
    fuzz::Require(bytes.size() <= kLimit, "more was decompressed than the limit allows");
  });
}
