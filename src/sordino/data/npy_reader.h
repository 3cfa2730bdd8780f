// The NPY format of NumPy, versions 1.0, 2.0 and 3.0.
//
// The header is a Python dictionary with the keys descr, fortran_order and shape. It is read by a
// parser that knows this one form and evaluates nothing. Types: b1, i1, i2, i4, i8, u1, u2, u4, f2,
// f4, f8, of either byte order. Arrays of objects are pickles, which run code when they are loaded:
// they are refused. The shape must account for every byte after the header, which is checked
// before anything is allocated.
#ifndef SORDINO_DATA_NPY_READER_H_
#define SORDINO_DATA_NPY_READER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "sordino/data/dataset.h"

namespace sordino {

inline constexpr std::uint64_t kMappedFileSize = std::uint64_t{64} << 20;

// Plain, gzip or xz. In C order whatever the file has; u2 becomes int32 and u4 int64, because
// libtorch computes with few unsigned types. A file from kMappedFileSize on is mapped where that is
// possible, and read where not.
at::Tensor ReadNpy(const std::filesystem::path& path);
// The array as it lies in the file, which is not read: records come into memory when they are used,
// and data may be larger than it. The tensor must not be written to, and the file not be changed
// while it lives. Undefined where the bytes are not those of a tensor: a compressed file, Fortran's
// order, the other byte order, types b1, u2 and u4, no elements.
at::Tensor MapNpy(const std::filesystem::path& path);
at::Tensor ParseNpy(std::span<const std::byte> bytes, const std::string& name);

// Two files as one dataset (DatasetFromArrays in idx_reader.h says which types and shapes). Without
// a name for the labels they are left undefined.
Dataset ReadNpyDataset(const std::filesystem::path& inputs, const std::filesystem::path& labels,
                       const DatasetDeclaration& declaration);

}  // namespace sordino

#endif  // SORDINO_DATA_NPY_READER_H_
