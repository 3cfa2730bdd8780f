// Whole files in memory, decompressed on the way: plain, gzip (RFC 1952) or xz.
//
// The kind is told by the first bytes, not by the name. Files of several members, one behind the
// other, are one file, as they are for gzip and xz themselves. Nothing is extracted to disk.
//
// A few bytes can claim to stand for terabytes, so memory grows only with what was in fact
// decompressed and never past the limit. The dictionary that an xz file asks for is bounded too.
#ifndef SORDINO_DATA_COMPRESSED_FILE_H_
#define SORDINO_DATA_COMPRESSED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sordino {

inline constexpr std::uint64_t kFileSizeLimit = std::uint64_t{8} << 30;

// Throws Error with one sentence that names the file: it cannot be read, is cut off, is damaged
// (checksums are compared), has something behind its end, or is larger than `limit` bytes.
std::vector<std::byte> ReadWholeFile(const std::filesystem::path& path,
                                     std::uint64_t limit = kFileSizeLimit);

// The same for the bytes of a file; `name` stands in the sentences. Bytes that are neither gzip
// nor xz are returned as they are.
std::vector<std::byte> Decompress(std::span<const std::byte> bytes, const std::string& name,
                                  std::uint64_t limit = kFileSizeLimit);

}  // namespace sordino

#endif  // SORDINO_DATA_COMPRESSED_FILE_H_
