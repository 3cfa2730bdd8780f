// Where the bytes of a file come from, one block after the other.
#ifndef SORDINO_TABLES_BYTE_SOURCE_H_
#define SORDINO_TABLES_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace sordino {

// Fills `buffer` as far as it can and returns how much, 0 at the end.
using ByteSource = std::function<std::size_t(std::span<char> buffer)>;

// A file as a byte source; "-" is standard input. Throws Error when it cannot be opened, and when
// reading fails later. Closed when the last copy is destroyed.
ByteSource OpenFile(const std::string& path);
// The size in bytes of a regular file, 0 for anything else.
std::uint64_t FileSize(const std::string& path);
// A text in memory, which must outlive the source.
ByteSource FromText(std::string_view text);

}  // namespace sordino

#endif  // SORDINO_TABLES_BYTE_SOURCE_H_
