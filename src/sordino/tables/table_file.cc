#include "sordino/tables/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/tables/arrow_file.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/encoding.h"

namespace sordino {
namespace {

constexpr std::size_t kBeginning = 8;

// The first bytes, and a source that has them in front again.
std::pair<std::string, ByteSource> WithBeginning(const ByteSource& bytes) {
  std::string beginning(kBeginning, '\0');
  std::size_t size = 0;
  while (size < kBeginning) {
    const std::size_t got = bytes(std::span(beginning).subspan(size));
    if (got == 0) break;
    size += got;
  }
  beginning.resize(size);
  const auto rest = std::make_shared<std::string>(beginning);
  return {beginning, [rest, bytes](std::span<char> buffer) {
            if (rest->empty()) return bytes(buffer);
            const std::size_t taken = std::min(rest->size(), buffer.size());
            std::copy_n(rest->begin(), taken, buffer.begin());
            rest->erase(0, taken);
            return taken;
          }};
}

}  // namespace

CsvReader OpenTableFile(const std::string& path, const TableLayout& layout, ByteSource bytes) {
  if (!bytes) bytes = OpenFile(path);
  auto [beginning, whole] = WithBeginning(bytes);
  if (!IsParquet(beginning) && !IsArrow(beginning)) {
    return CsvReader(InUtf8(Decompressed(std::move(whole), path), layout.encoding, path),
                     layout.delimiter, path, layout.quote);
  }
  if (path == "-") {
    throw Error("a Parquet or Arrow file is not read from standard input; name the file.");
  }
  return CsvReader(ArrowTableText(path, layout.header), TableLayout().delimiter, path);
}

}  // namespace sordino
