// Makes batches ready while the step before them is computed.
//
// Request() hands over the indices of a coming batch; a thread gathers the records, augments,
// normalises and moves them to the device; Take() returns the batches in the order in which they
// were asked for, waiting where one is not ready. An exception of the thread is thrown by Take().
//
// A dataset that fits is kept on the device as it is stored (one byte a pixel), and gathering
// happens there unless images are augmented.
#ifndef SORDINO_DATA_BATCH_LOADER_H_
#define SORDINO_DATA_BATCH_LOADER_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/data/augmentation.h"
#include "sordino/data/dataset.h"
#include "sordino/data/record_source.h"

namespace sordino {

struct LoaderOptions {
  AugmentationOptions augmentation = {};
  c10::Device device = c10::kCPU;
};

class BatchLoader final : public RecordSource {
 public:
  // Keeps the tensors of `data` alive. Throws Error when they are not of the types that the
  // declaration says, when its constants of normalisation do not fit, when augmentation is asked
  // for what are not images, and for a device that is not there.
  BatchLoader(const Dataset& data, LoaderOptions options);
  ~BatchLoader() override;

  // Throws Error for an index that is not below the number of records.
  void Request(std::vector<std::uint64_t> indices, std::uint64_t seed = 0) override;
  // {inputs, labels}: float32 [n, ...] or [n, K, ...], int64 tokens as they are; labels int64 [n].
  // An empty request gives tensors with 0 examples. Throws Error when nothing was asked for.
  std::vector<at::Tensor> Take() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The records on the device as they are stored, where they fit; else as they are. For those that
// are loaded again and again.
Dataset KeptOnDevice(const Dataset& data, c10::Device device);

// Records [begin, end) as the model sees them, without augmentation. `data` are in memory, or on
// the device.
std::vector<at::Tensor> LoadRange(const Dataset& data, std::int64_t begin, std::int64_t end,
                                  c10::Device device);

// Inputs as the model sees them: normalised float32, or tokens as they are.
at::Tensor Normalise(const DatasetDeclaration& declaration, const at::Tensor& inputs);

}  // namespace sordino

#endif  // SORDINO_DATA_BATCH_LOADER_H_
