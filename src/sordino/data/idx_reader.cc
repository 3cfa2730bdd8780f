#include "sordino/data/idx_reader.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/data/internal/array_bytes.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr std::size_t kMaxIdxDimensions = 8;

std::optional<at::ScalarType> IdxType(unsigned code) {
  switch (code) {
    case 0x08:
      return at::kByte;
    case 0x09:
      return at::kChar;
    case 0x0B:
      return at::kShort;
    case 0x0C:
      return at::kInt;
    case 0x0D:
      return at::kFloat;
    case 0x0E:
      return at::kDouble;
    default:
      return std::nullopt;
  }
}

unsigned ByteAt(std::span<const std::byte> bytes, std::size_t place) {
  return std::to_integer<unsigned>(bytes[place]);
}

bool IsWhole(const at::Tensor& values) {
  return at::isIntegralType(values.scalar_type(), /*includeBool=*/true);
}

std::vector<std::int64_t> WithRecords(std::int64_t records,
                                      const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> whole{records};
  whole.insert(whole.end(), shape.begin(), shape.end());
  return whole;
}

// The array in the shape that was declared for an example, or undefined.
at::Tensor Arranged(const at::Tensor& inputs, const DatasetDeclaration& declaration) {
  const std::int64_t records = inputs.size(0);
  const std::vector<std::int64_t>& shape = declaration.shape;
  if (inputs.sizes() == at::IntArrayRef(WithRecords(records, shape))) return inputs;
  if (declaration.kind == InputKind::kImage && shape.size() == 3) {
    if (shape[0] == 1 && inputs.sizes() == at::IntArrayRef({records, shape[1], shape[2]})) {
      return inputs.unsqueeze(1);
    }
    if (inputs.sizes() == at::IntArrayRef({records, shape[1], shape[2], shape[0]})) {
      return inputs.permute({0, 3, 1, 2}).contiguous();
    }
  }
  if (declaration.kind == InputKind::kFeatures && shape.size() == 1 && shape[0] == 1 &&
      inputs.dim() == 1) {
    return inputs.unsqueeze(1);
  }
  return {};
}

at::Tensor Converted(const at::Tensor& inputs, InputKind kind, const std::string& name) {
  switch (kind) {
    case InputKind::kImage:
      if (inputs.scalar_type() != at::kByte) {
        throw Error(fmt::format(
            "the images in '{}' are {}; pixels must be unsigned bytes, 0 to 255: convert them "
            "first.",
            name, c10::toString(inputs.scalar_type())));
      }
      return inputs;
    case InputKind::kFeatures:
      return inputs.to(at::kFloat);
    case InputKind::kTokens:
      if (!IsWhole(inputs)) {
        throw Error(fmt::format("the tokens in '{}' are {}; they must be whole numbers.", name,
                                c10::toString(inputs.scalar_type())));
      }
      return inputs.to(at::kLong);
  }
  return {};
}

at::Tensor LabelsOf(const at::Tensor& labels, std::int64_t records, const std::string& inputs_name,
                    const std::string& name) {
  const bool column = labels.dim() == 2 && labels.size(1) == 1;
  if (labels.dim() != 1 && !column) {
    throw DataError(
        fmt::format("the labels in '{}' have another shape than one number a record.", name),
        fmt::format("their shape is {}", internal::ShapeText(labels.sizes())));
  }
  if (!IsWhole(labels)) {
    throw Error(fmt::format("the labels in '{}' are {}; they must be whole numbers from 0.", name,
                            c10::toString(labels.scalar_type())));
  }
  if (labels.size(0) != records) {
    throw DataError(
        fmt::format("'{}' has another number of records than '{}' has labels; give two files that "
                    "belong together.",
                    inputs_name, name),
        fmt::format("there are {} records and {} labels", records, labels.size(0)));
  }
  return labels.reshape({records}).to(at::kLong);
}

}  // namespace

at::Tensor ParseIdx(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < 4 || ByteAt(bytes, 0) != 0 || ByteAt(bytes, 1) != 0) {
    throw Error(
        fmt::format("'{}' is not an IDX file: it does not start with two zero bytes, a "
                    "type and a number of dimensions.",
                    name));
  }
  const std::optional<at::ScalarType> type = IdxType(ByteAt(bytes, 2));
  if (!type) {
    throw DataError(
        fmt::format("'{}' has an IDX type that is not known; known are 0x08, 0x09, 0x0B, 0x0C, "
                    "0x0D and 0x0E.",
                    name),
        fmt::format("its type is 0x{:02X}", ByteAt(bytes, 2)));
  }
  const std::size_t dimensions = ByteAt(bytes, 3);
  if (dimensions == 0 || dimensions > kMaxIdxDimensions) {
    throw DataError(fmt::format("'{}' has a number of dimensions that is not possible; an IDX file "
                                "may have 1 to {}.",
                                name, kMaxIdxDimensions),
                    fmt::format("it has {} dimensions", dimensions));
  }
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) {
    throw Error(fmt::format("'{}' ends within its IDX header; fetch or copy it again.", name));
  }
  std::vector<std::int64_t> shape;
  for (std::size_t place = 4; place < header; place += 4) {
    std::int64_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length * 256 + ByteAt(bytes, place + i);
    shape.push_back(length);
  }
  const std::span<const std::byte> values = bytes.subspan(header);
  const std::optional<std::uint64_t> wanted = internal::ArrayBytes(shape, c10::elementSize(*type));
  if (!wanted || *wanted != values.size()) {
    throw DataError(
        fmt::format("'{}' states a shape that does not account for the bytes behind its header; "
                    "fetch or copy it again.",
                    name),
        fmt::format("it states {} and has {} bytes", internal::ShapeText(shape), values.size()));
  }
  return internal::TensorFromBytes(values, *type, shape,
                                   std::endian::native == std::endian::little);
}

at::Tensor ReadIdx(const std::filesystem::path& path) {
  return ParseIdx(ReadWholeFile(path), path.string());
}

Dataset ReadIdxDataset(const std::filesystem::path& images, const std::filesystem::path& labels,
                       const DatasetDeclaration& declaration) {
  return DatasetFromArrays(ReadIdx(images), labels.empty() ? at::Tensor() : ReadIdx(labels),
                           declaration, images.string(), labels.string());
}

Dataset DatasetFromArrays(const at::Tensor& inputs, const at::Tensor& labels,
                          const DatasetDeclaration& declaration, const std::string& inputs_name,
                          const std::string& labels_name) {
  Dataset data;
  data.declaration = declaration;
  const at::Tensor arranged = inputs.dim() == 0 ? at::Tensor() : Arranged(inputs, declaration);
  if (!arranged.defined()) {
    throw DataError(fmt::format("'{}' does not hold records of the declared shape {}; declare "
                                "their shape, or give another file.",
                                inputs_name, internal::ShapeText(declaration.shape)),
                    fmt::format("its shape is {}", internal::ShapeText(inputs.sizes())));
  }
  data.inputs = Converted(arranged, declaration.kind, inputs_name);
  if (!labels.defined()) return data;
  data.labels = LabelsOf(labels, data.inputs.size(0), inputs_name, labels_name);
  CheckDeclaration(data);
  return data;
}

namespace internal {

const DataFormat& IdxFormat() {
  static const DataFormat format = {
      .name = "idx",
      .help = "images as in MNIST (images-idx3-ubyte), and a file of labels",
      .endings = {".idx", "-ubyte"},
      .begins =
          [](std::string_view bytes) {
            return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 &&
                   IdxType(static_cast<unsigned char>(bytes[2])) && bytes[3] > 0 &&
                   static_cast<std::size_t>(bytes[3]) <= kMaxIdxDimensions;
          },
      .takes = {"labels", "shape", "classes", "class-names"},
      .needs = {{"labels", "the labels", "--labels labels-idx1-ubyte"},
                {"shape", "the shape of an example", "--shape 1,28,28"},
                {"classes", "the classes", "--classes 10"}},
      .open = [](const DataRequest& request, DatasetDeclaration& declaration) -> DatasetReader {
        DeclareShape(request, true, declaration);
        return [](const SplitFiles& files, const DatasetDeclaration& declared, const ReadOptions&) {
          return ReadIdxDataset(files.inputs.front(), files.labels, declared);
        };
      }};
  return format;
}

}  // namespace internal

}  // namespace sordino
