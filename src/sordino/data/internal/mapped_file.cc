#include "sordino/data/internal/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <limits>

namespace sordino::internal {
namespace {

// Empty where there is nothing to map.
std::span<const std::byte> MapWhole(int file) {
  struct stat facts = {};
  if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0) return {};
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size > std::numeric_limits<std::size_t>::max()) return {};
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (begin == MAP_FAILED) return {};
  return {static_cast<const std::byte*>(begin), static_cast<std::size_t>(size)};
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  const std::span<const std::byte> bytes = MapWhole(file);
  ::close(file);  // the mapping stays
  if (bytes.empty()) return nullptr;
  return std::shared_ptr<const MappedFile>(new MappedFile(bytes));
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT
}

}  // namespace sordino::internal
