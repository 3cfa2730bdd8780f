#include "sordino/gradients/chunks.h"

#include <algorithm>

#include "sordino/base/check.h"

namespace sordino {
namespace {

constexpr std::int64_t kUsualChunks = 16;
constexpr std::int64_t kSmallestUsualChunk = 8;

std::int64_t Units(std::int64_t examples, std::int64_t micro_batch) {
  return (examples + micro_batch - 1) / micro_batch;
}

}  // namespace

std::int64_t ChunkCount(std::int64_t examples, const ChunkOptions& options) {
  SORDINO_CHECK(examples >= 0 && options.micro_batch >= 1 && options.most_examples >= 0,
                "a chunk holds at least one example");
  const std::int64_t units = Units(examples, options.micro_batch);
  if (options.IsSurplus(examples)) return units;
  const std::int64_t most = options.most_examples > 0 ? options.most_examples : kChunkExamples;
  const std::int64_t units_in_one = std::max<std::int64_t>(1, most / options.micro_batch);
  std::int64_t count = 1;
  while (count * units_in_one < units ||
         (!options.is_padded && count < kUsualChunks &&
          2 * count * kSmallestUsualChunk <= examples && 2 * count <= units)) {
    count *= 2;
  }
  return count;
}

std::vector<Chunk> Chunks(std::int64_t examples, const ChunkOptions& options) {
  const std::int64_t count = ChunkCount(examples, options);
  const std::int64_t units = Units(examples, options.micro_batch);
  const std::int64_t small = units / count;
  const std::int64_t larger = units % count;  // so many have one unit more
  std::vector<Chunk> chunks;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t width = (small + (i < larger ? 1 : 0)) * options.micro_batch;
    const std::int64_t end = std::min(examples, begin + width);
    chunks.push_back({begin, end});
    begin = end;
  }
  return chunks;
}

}  // namespace sordino
