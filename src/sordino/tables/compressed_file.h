// Files that may be compressed: plain, gzip (RFC 1952) or xz.
//
// The kind is recognised by the first bytes, not by the name. Files of several members, one behind
// the other, are one file, as they are for gzip and xz themselves. Nothing is extracted to disk.
//
// A few bytes can claim to stand for terabytes, so memory grows only with what was in fact
// decompressed and never past the limit. The dictionary that an xz file asks for is bounded too.
#ifndef SORDINO_TABLES_COMPRESSED_FILE_H_
#define SORDINO_TABLES_COMPRESSED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sordino/tables/byte_source.h"

namespace sordino {

inline constexpr std::uint64_t kFileSizeLimit = std::uint64_t{8} << 30;

// What `packed` stands for, in constant memory; `name` stands in the sentences. Bytes that are
// neither gzip nor xz come out as they are. Reading throws Error with one sentence that names the
// file: it is cut off, is damaged (checksums are compared), or has something after its end.
ByteSource Decompressed(ByteSource packed, const std::string& name);

// A whole file in memory. Throws the Errors of Decompressed, and where the file cannot be read or
// is larger than `limit` bytes.
std::vector<std::byte> ReadWholeFile(const std::filesystem::path& path,
                                     std::uint64_t limit = kFileSizeLimit);

// The same for the bytes of a file.
std::vector<std::byte> Decompress(std::span<const std::byte> bytes, const std::string& name,
                                  std::uint64_t limit = kFileSizeLimit);

}  // namespace sordino

#endif  // SORDINO_TABLES_COMPRESSED_FILE_H_
