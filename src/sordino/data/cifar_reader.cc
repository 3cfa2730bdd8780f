#include "sordino/data/cifar_reader.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "sordino/base/error.h"
#include "sordino/data/internal/array_bytes.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/data/internal/parallel_items.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixels = std::size_t{3} * 32 * 32;
const std::vector<std::int64_t> kShape = {3, 32, 32};

// Files of CIFAR-100 have two labels a row; 20 classes are the coarse ones.
CifarLabels LabelsOf(const DatasetDeclaration& declaration) {
  if (declaration.classes == 100) return CifarLabels::kFine;
  return declaration.classes == 20 ? CifarLabels::kCoarse : CifarLabels::kOne;
}

// The batches in a folder, or one file.
std::vector<fs::path> BatchFiles(const fs::path& path, bool test) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(test ? "test_batch" : "data_batch_")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    throw Error(
        fmt::format("the folder '{}' holds no {} of CIFAR; give the folder of its binary "
                    "version, or one file.",
                    path.string(), test ? "test_batch" : "data_batch_..."));
  }
  return files;
}

}  // namespace

CifarRows ParseCifar(std::span<const std::byte> bytes, const std::string& name,
                     std::int64_t classes, CifarLabels labels) {
  const std::size_t label_bytes = labels == CifarLabels::kOne ? 1 : 2;
  const std::size_t label_place = labels == CifarLabels::kFine ? 1 : 0;
  const std::size_t row = label_bytes + kPixels;
  if (bytes.size() % row != 0) {
    throw DataError(
        fmt::format("'{}' does not hold whole CIFAR rows of {} label byte{} and {} pixel bytes; "
                    "fetch or copy it again.",
                    name, label_bytes, label_bytes == 1 ? "" : "s", kPixels),
        fmt::format("it has {} bytes", bytes.size()));
  }
  const auto records = static_cast<std::int64_t>(bytes.size() / row);
  CifarRows rows{at::empty({records, 3, 32, 32}, at::kByte), at::empty({records}, at::kLong)};
  auto* pixel = rows.images.mutable_data_ptr<std::uint8_t>();
  auto* label = rows.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < records; ++i) {
    const std::byte* const from = bytes.data() + static_cast<std::size_t>(i) * row;
    label[i] = std::to_integer<std::int64_t>(from[label_place]);
    if (label[i] >= classes) {
      throw DataError(fmt::format("'{}' has a label beyond the {} declared classes; the labels "
                                  "are 0 to {}.",
                                  name, classes, classes - 1),
                      fmt::format("row {} has the label {}", i + 1, label[i]));
    }
    std::memcpy(pixel + static_cast<std::size_t>(i) * kPixels, from + label_bytes, kPixels);
  }
  return rows;
}

Dataset ReadCifarDataset(const std::vector<std::filesystem::path>& files,
                         const DatasetDeclaration& declaration, CifarLabels labels) {
  if (declaration.kind != InputKind::kImage || declaration.shape != kShape) {
    throw Error(fmt::format("the declared shape is {}; CIFAR files hold images of the shape {}.",
                            internal::ShapeText(declaration.shape), internal::ShapeText(kShape)));
  }
  if (files.empty()) throw Error("no CIFAR file was given; name at least one.");
  std::vector<at::Tensor> images(files.size());
  std::vector<at::Tensor> classes(files.size());
  const auto read = [&](std::size_t i) {
    CifarRows rows =
        ParseCifar(ReadWholeFile(files[i]), files[i].string(), declaration.classes, labels);
    images[i] = std::move(rows.images);
    classes[i] = std::move(rows.labels);
  };
  internal::ForEachItem(files.size(), read, [](std::size_t) {});
  Dataset data{declaration, at::cat(images), at::cat(classes)};
  CheckDeclaration(data);
  return data;
}

namespace internal {

const DataFormat& CifarFormat() {
  static const DataFormat format = {
      .name = "cifar",
      .help = "a binary batch of CIFAR, or a folder of them",
      .endings = {".bin"},
      .is_folder = [](const fs::path& path) { return !Stored(path / "data_batch_1.bin").empty(); },
      .takes = {"shape", "classes", "class-names"},
      .needs = {{"classes", "the classes", "--classes 10"}},
      .files = BatchFiles,
      .open = [](const DataRequest& request, DatasetDeclaration& declaration) -> DatasetReader {
        declaration.kind = InputKind::kImage;
        declaration.shape = request.shape.empty() ? kShape : request.shape;
        return [](const SplitFiles& files, const DatasetDeclaration& declared, const ReadOptions&) {
          return ReadCifarDataset(files.inputs, declared, LabelsOf(declared));
        };
      }};
  return format;
}

}  // namespace internal

}  // namespace sordino
