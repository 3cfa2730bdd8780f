// The binary version of CIFAR: rows of one label byte and 3,072 pixel bytes (32 x 32, planes red,
// green, blue). A row of CIFAR-100 has two label bytes, the coarse and the fine one.
#ifndef SORDINO_DATA_CIFAR_READER_H_
#define SORDINO_DATA_CIFAR_READER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sordino/data/dataset.h"

namespace sordino {

enum class CifarLabels : std::uint8_t {
  kOne,     // CIFAR-10
  kCoarse,  // CIFAR-100, the first of its two labels (20 classes)
  kFine,    // CIFAR-100, the second (100 classes)
};

struct CifarRows {
  at::Tensor images;  // uint8 [n, 3, 32, 32]
  at::Tensor labels;  // int64 [n]
};

// Throws Error unless the bytes are whole rows with labels below `classes`.
CifarRows ParseCifar(std::span<const std::byte> bytes, const std::string& name,
                     std::int64_t classes, CifarLabels labels = CifarLabels::kOne);

// The rows of several files (plain, gzip or xz), in the order of the files.
Dataset ReadCifarDataset(const std::vector<std::filesystem::path>& files,
                         const DatasetDeclaration& declaration,
                         CifarLabels labels = CifarLabels::kOne);

}  // namespace sordino

#endif  // SORDINO_DATA_CIFAR_READER_H_
