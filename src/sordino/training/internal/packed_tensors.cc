#include "sordino/training/internal/packed_tensors.h"

#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "sordino/base/check.h"

namespace sordino {
namespace {

void PutNumber(std::string& bytes, std::int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Ranks run the same program on machines of one kind: numbers are as they are in memory.
class PackReader {
 public:
  explicit PackReader(const std::string& bytes) : bytes_(bytes) {}

  bool AtEnd() const { return place_ == bytes_.size(); }
  std::int64_t Number() {
    std::int64_t number = 0;
    std::memcpy(&number, Take(sizeof(number)), sizeof(number));
    return number;
  }
  const char* Take(std::size_t count) {
    SORDINO_CHECK(count <= bytes_.size() - place_, "packed tensors end too early");
    const char* const begin = bytes_.data() + place_;
    place_ += count;
    return begin;
  }

 private:
  const std::string& bytes_;
  std::size_t place_ = 0;
};

}  // namespace

std::string PackTensors(const NamedTensors& tensors) {
  std::string bytes;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor host = tensor.detach().cpu().contiguous();
    PutNumber(bytes, static_cast<std::int64_t>(name.size()));
    bytes += name;
    PutNumber(bytes, static_cast<std::int64_t>(host.scalar_type()));
    PutNumber(bytes, host.dim());
    for (const std::int64_t size : host.sizes()) PutNumber(bytes, size);
    bytes.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  return bytes;
}

NamedTensors UnpackTensors(const std::string& bytes) {
  NamedTensors tensors;
  PackReader reader(bytes);
  while (!reader.AtEnd()) {
    const auto length = static_cast<std::size_t>(reader.Number());
    std::string name(reader.Take(length), length);
    const auto type = static_cast<at::ScalarType>(reader.Number());
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(reader.Number()));
    for (std::int64_t& size : sizes) size = reader.Number();
    at::Tensor tensor = at::empty(sizes, type);
    std::memcpy(tensor.mutable_data_ptr(), reader.Take(tensor.nbytes()), tensor.nbytes());
    tensors.emplace_back(std::move(name), std::move(tensor));
  }
  return tensors;
}

}  // namespace sordino
