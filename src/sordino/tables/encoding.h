// The encoding of a file of text, which is declared, and its conversion to UTF-8.
//
// Everything behind the reading is UTF-8: declared names and values come from command lines and
// TOML files. A file that is not valid in its declared encoding is refused as a whole, because a
// name in it would be no declared one: UTF-8 by Unicode's table 3-7 (no overlong forms, no
// surrogates), UTF-16 with a byte-order mark and paired surrogates, windows-1252 without its five
// bytes that stand for nothing. Every byte is a character of latin-1 (ISO 8859-1).
#ifndef SORDINO_TABLES_ENCODING_H_
#define SORDINO_TABLES_ENCODING_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sordino/tables/byte_source.h"

namespace sordino {

enum class Encoding : std::uint8_t { kUtf8, kLatin1, kWindows1252, kUtf16 };

// "utf-8", "latin-1", "windows-1252", "utf-16", in the order of the enumeration.
std::span<const std::string_view> EncodingNames();
std::string_view EncodingName(Encoding encoding);
// Throws Error for any other name.
Encoding ParseEncoding(std::string_view name);

bool IsUtf8(std::string_view text);

// The text of `bytes` in UTF-8; `name` stands in sentences. Reading throws DataError where the
// bytes are not valid in the encoding.
ByteSource InUtf8(ByteSource bytes, Encoding encoding, const std::string& name);

}  // namespace sordino

#endif  // SORDINO_TABLES_ENCODING_H_
