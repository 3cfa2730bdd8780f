// The chunks of a batch: what is summed as one, whatever the number of processes.
//
// Their number is a power of two, so that 2, 4, 8 or 16 processes have equally many.
#ifndef SORDINO_GRADIENTS_CHUNKS_H_
#define SORDINO_GRADIENTS_CHUNKS_H_

#include <cstdint>
#include <vector>

namespace sordino {

struct ChunkOptions {
  std::int64_t micro_batch = 1;    // examples that stay together
  std::int64_t most_examples = 0;  // in a chunk; 0: kChunkExamples
  // That was declared; the chunks of a larger one are single micro-batches. 0: there is no larger
  // one.
  std::int64_t largest_batch = 0;

  bool is_padded = false;  // chunks are padded to most_examples, and no more than are needed

  bool IsSurplus(std::int64_t examples) const {
    return largest_batch > 0 && examples > largest_batch;
  }
};

inline constexpr std::int64_t kChunkExamples = 32;

struct Chunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The number of chunks of a batch of up to so many examples: the least power of two with which none
// has more than `most_examples` (or one micro-batch), and at least 16 where that leaves 8 examples
// in each and none is padded. It does not fall where batches grow. A batch that is larger than was
// declared has as many as micro-batches.
std::int64_t ChunkCount(std::int64_t examples, const ChunkOptions& options);

// Consecutive chunks of a batch, of as many examples as possible alike; some may be empty.
std::vector<Chunk> Chunks(std::int64_t examples, const ChunkOptions& options);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_CHUNKS_H_
