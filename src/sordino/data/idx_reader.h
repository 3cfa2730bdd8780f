// The IDX format of MNIST: 0, 0, a byte for the type, a byte for the number of dimensions, the
// dimensions as big-endian uint32, and the values in C order, big endian.
//
// Types: 0x08 ubyte, 0x09 byte, 0x0B short, 0x0C int, 0x0D float, 0x0E double. The dimensions must
// account for every byte of the file, which is checked before anything is allocated.
#ifndef SORDINO_DATA_IDX_READER_H_
#define SORDINO_DATA_IDX_READER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "sordino/data/dataset.h"

namespace sordino {

// Plain, gzip or xz. uint8, int8, int16, int32, float32 or float64.
at::Tensor ReadIdx(const std::filesystem::path& path);
at::Tensor ParseIdx(std::span<const std::byte> bytes, const std::string& name);

// Two files as one dataset. Without a name for the labels they are left undefined.
Dataset ReadIdxDataset(const std::filesystem::path& images, const std::filesystem::path& labels,
                       const DatasetDeclaration& declaration);

// Two arrays of any reader as one dataset that keeps to its declaration, else Error.
//   kImage     uint8 [n, c, h, w], [n, h, w, c], or [n, h, w] where c = 1
//   kFeatures  any numbers [n, features] (or [n] where there is one feature)
//   kTokens    whole numbers [n, length]
// Labels are whole numbers [n] or [n, 1], or an undefined tensor. The names stand in the sentences.
Dataset DatasetFromArrays(const at::Tensor& inputs, const at::Tensor& labels,
                          const DatasetDeclaration& declaration, const std::string& inputs_name,
                          const std::string& labels_name);

}  // namespace sordino

#endif  // SORDINO_DATA_IDX_READER_H_
