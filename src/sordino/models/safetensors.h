// The safetensors format: named tensors and nothing that runs.
//
// A file is the length of its header (8 bytes, little endian), a JSON header that gives dtype,
// shape and byte range of each tensor, and the bytes. Every number of the header is checked against
// the size of the file before anything is allocated: ranges in bounds, in order, without gap or
// overlap; bytes = product of the shape times the size of the dtype; header of at most 100 MB.
#ifndef SORDINO_MODELS_SAFETENSORS_H_
#define SORDINO_MODELS_SAFETENSORS_H_

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sordino {

struct SafetensorsFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // in the order of the bytes
  std::map<std::string, std::string> metadata;
};

// Throws Error with the name of the file and what is wrong with it.
SafetensorsFile ReadSafetensors(const std::filesystem::path& file);
// The same from memory, for the fuzzer; `name` stands in the sentences.
SafetensorsFile ParseSafetensors(std::span<const std::byte> bytes, const std::string& name);

// Whether a file can hold numbers of this type; it has none for complex numbers.
bool HasSafetensorsType(at::ScalarType type);

// Writes a temporary file beside it and renames it, so that no half-written file is left.
void WriteSafetensors(const std::filesystem::path& file,
                      const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace sordino

#endif  // SORDINO_MODELS_SAFETENSORS_H_
