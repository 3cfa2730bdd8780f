// Where the batches of a run come from: a Dataset (batch_loader.h), or what a program has.
#ifndef SORDINO_DATA_RECORD_SOURCE_H_
#define SORDINO_DATA_RECORD_SOURCE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sordino {

class RecordSource {
 public:
  RecordSource() = default;
  virtual ~RecordSource() = default;
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  // The records of a coming batch. The seed is that of whatever is random about how they are
  // loaded (augmentation.h: secret and fresh).
  virtual void Request(std::vector<std::uint64_t> records, std::uint64_t seed) = 0;
  // The batches, in the order in which they were asked for.
  virtual std::vector<at::Tensor> Take() = 0;
};

}  // namespace sordino

#endif  // SORDINO_DATA_RECORD_SOURCE_H_
