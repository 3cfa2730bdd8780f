#include "sordino/tables/text_file.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/tables/byte_source.h"

namespace sordino {

std::string ReadTextFile(const std::string& path, std::string_view advice) {
  constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;
  const ByteSource source = OpenFile(path);
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (const std::size_t size = source(std::span<char>(block))) {
    text.append(block.data(), size);
    if (text.size() > kMaxTextBytes) {
      throw Error(fmt::format("{} is larger than 64 MiB; {}.", path, advice));
    }
  }
  return text;
}

}  // namespace sordino
