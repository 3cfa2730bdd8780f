// The NPY format of NumPy, versions 1.0, 2.0 and 3.0.
//
// The header is a Python dictionary with the keys descr, fortran_order and shape. It is read by a
// parser that knows this one form and evaluates nothing. Types: b1, i1, i2, i4, i8, u1, u2, u4, f2,
// f4, f8, of either byte order. Arrays of objects are pickles, which run code when they are loaded:
// they are refused. The shape must account for every byte behind the header, which is checked
// before anything is allocated.
#ifndef SORDINO_DATA_NPY_READER_H_
#define SORDINO_DATA_NPY_READER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "sordino/data/dataset.h"

namespace sordino {

// Plain, gzip or xz. In C order whatever the file has; u2 becomes int32 and u4 int64, because
// libtorch computes with few unsigned types.
at::Tensor ReadNpy(const std::filesystem::path& path);
at::Tensor ParseNpy(std::span<const std::byte> bytes, const std::string& name);

// Two files as one dataset (DatasetFromArrays in idx_reader.h says which types and shapes). Without
// a name for the labels they are left undefined.
Dataset ReadNpyDataset(const std::filesystem::path& inputs, const std::filesystem::path& labels,
                       const DatasetDeclaration& declaration);

}  // namespace sordino

#endif  // SORDINO_DATA_NPY_READER_H_
