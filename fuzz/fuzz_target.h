// What every fuzzer does with its input.
//
// A parser may return or throw Error with a sentence. Any other exception ends the program, which
// libFuzzer reports as a crash, as it does for the findings of the sanitizers, for inputs that take
// longer than the time limit and for allocations above the memory limit.
#ifndef SORDINO_FUZZ_FUZZ_TARGET_H_
#define SORDINO_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "sordino/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sordino::fuzz {

// Stops the program unless what a parser promises holds.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

template <typename Parse>
int Run(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    Require(sentence.size() > 1 && sentence.find('\n') == std::string_view::npos,
            "an error is not one line of text");
  }
  return 0;
}

inline std::span<const std::byte> AsBytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view AsText(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace sordino::fuzz

#endif  // SORDINO_FUZZ_FUZZ_TARGET_H_
