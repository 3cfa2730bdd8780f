#include "sordino/data/npy_reader.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/data/idx_reader.h"
#include "sordino/data/internal/array_bytes.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/data/internal/mapped_file.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kMaxHeader = std::size_t{64} << 10;
constexpr std::size_t kMaxDimensions = 16;

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing else.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader Parse() {
    NpyHeader header;
    bool seen_descr = false;
    bool seen_order = false;
    bool seen_shape = false;
    Expect('{');
    while (!Take('}')) {
      const std::string key = Text();
      Expect(':');
      if (key == "descr" && !std::exchange(seen_descr, true)) {
        header.descr = Descr();
      } else if (key == "fortran_order" && !std::exchange(seen_order, true)) {
        header.fortran_order = Truth();
      } else if (key == "shape" && !std::exchange(seen_shape, true)) {
        header.shape = Shape();
      } else {
        Fail("a key is not expected there", fmt::format("the key is {}", QuotedText(key)));
      }
      if (!Take(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (place_ != text_.size()) Fail("there is something behind its dictionary");
    if (!seen_descr || !seen_order || !seen_shape) {
      Fail("the keys descr, fortran_order and shape must all be there");
    }
    return header;
  }

 private:
  [[noreturn]] void Fail(const std::string& why, const std::string& detail = {}) const {
    throw DataError(fmt::format("the NPY header of '{}' cannot be read: {}.", name_, why),
                    detail.empty() ? fmt::format("it is byte {} of the header", place_) : detail);
  }

  void SkipSpace() {
    while (place_ < text_.size() && kSpace.find(text_[place_]) != std::string_view::npos) ++place_;
  }

  bool Take(char wanted) {
    SkipSpace();
    if (place_ == text_.size() || text_[place_] != wanted) return false;
    ++place_;
    return true;
  }

  void Expect(char wanted) {
    if (!Take(wanted)) Fail(fmt::format("'{}' is missing", wanted));
  }

  std::string Text() {
    SkipSpace();
    const char quote = place_ < text_.size() ? text_[place_] : '\0';
    if (quote != '\'' && quote != '"') Fail("there is no text where one belongs");
    const std::size_t end = text_.find(quote, place_ + 1);
    if (end == std::string_view::npos) Fail("a quote is not closed");
    const std::string_view text = text_.substr(place_ + 1, end - place_ - 1);
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '\\'; };
    if (!std::all_of(text.begin(), text.end(), plain)) Fail("a text is not plain ASCII");
    place_ = end + 1;
    return std::string(text);
  }

  std::string Descr() {
    SkipSpace();
    if (place_ < text_.size() && text_[place_] == '[') {
      throw Error(
          fmt::format("'{}' is an array of records with fields; save each field as an "
                      "array of its own.",
                      name_));
    }
    return Text();
  }

  bool Truth() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(place_).starts_with(word)) {
        place_ += word.size();
        return value;
      }
    }
    Fail("fortran_order is neither True nor False");
  }

  std::int64_t Length() {
    SkipSpace();
    const std::size_t start = place_;
    std::int64_t length = 0;
    while (place_ < text_.size() && text_[place_] >= '0' && text_[place_] <= '9') {
      const int digit = text_[place_++] - '0';
      if (length > (std::numeric_limits<std::int64_t>::max() - digit) / 10) {
        Fail("a length in its shape is too large");
      }
      length = length * 10 + digit;
    }
    if (place_ == start) Fail("a length in its shape is not a whole number from 0");
    return length;
  }

  std::vector<std::int64_t> Shape() {
    std::vector<std::int64_t> shape;
    Expect('(');
    while (!Take(')')) {
      shape.push_back(Length());
      if (shape.size() > kMaxDimensions) {
        Fail(fmt::format("its array has more than {} dimensions", kMaxDimensions));
      }
      if (Take(',')) continue;
      // In Python (3) is a number, (3,) a tuple.
      if (shape.size() == 1) Fail("its shape is a number where a tuple belongs");
      Expect(')');
      break;
    }
    return shape;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t place_ = 0;
};

struct NpyType {
  at::ScalarType stored;
  at::ScalarType given;  // what libtorch can compute with
};

std::optional<NpyType> TypeNamed(std::string_view name) {
  constexpr std::pair<std::string_view, NpyType> kTypes[] = {
      {"b1", {at::kBool, at::kBool}},    {"i1", {at::kChar, at::kChar}},
      {"i2", {at::kShort, at::kShort}},  {"i4", {at::kInt, at::kInt}},
      {"i8", {at::kLong, at::kLong}},    {"u1", {at::kByte, at::kByte}},
      {"u2", {at::kUInt16, at::kInt}},   {"u4", {at::kUInt32, at::kLong}},
      {"f2", {at::kHalf, at::kHalf}},    {"f4", {at::kFloat, at::kFloat}},
      {"f8", {at::kDouble, at::kDouble}}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

struct NpyElement {
  NpyType type;
  bool swap = false;
};

NpyElement ElementOf(const std::string& descr, const std::string& name) {
  const std::string_view text = descr;
  if (text == "|O" || text == "O") {
    throw Error(fmt::format(
        "'{}' holds Python objects as a pickle, which can run code when it is loaded; save an "
        "array of numbers.",
        name));
  }
  const char order = text.empty() ? '\0' : text.front();
  const std::optional<NpyType> type = text.empty() ? std::nullopt : TypeNamed(text.substr(1));
  const bool orderless = type && c10::elementSize(type->stored) == 1;
  if (!type || !(order == '<' || order == '>' || (order == '|' && orderless))) {
    throw DataError(
        fmt::format("'{}' has an NPY type that is not known; known are b1, i1, i2, i4, i8, u1, u2, "
                    "u4, f2, f4 and f8 behind '<', '>' or '|'.",
                    name),
        fmt::format("its type is {}", QuotedText(descr)));
  }
  constexpr bool kLittle = std::endian::native == std::endian::little;
  return {*type, order == (kLittle ? '>' : '<')};
}

struct NpyParts {
  std::string_view header;
  std::span<const std::byte> values;
};

NpyParts SplitFile(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) {
    throw Error(fmt::format("'{}' is not an NPY file: it does not start with \\x93NUMPY.", name));
  }
  const auto byte_at = [&](std::size_t place) -> std::size_t {
    if (place >= bytes.size()) {
      throw Error(fmt::format("'{}' ends within its NPY header; fetch or copy it again.", name));
    }
    return std::to_integer<std::size_t>(bytes[place]);
  };
  const std::size_t major = byte_at(6);
  const std::size_t minor = byte_at(7);
  if (major < 1 || major > 3 || minor != 0) {
    throw DataError(
        fmt::format("'{}' has an NPY version that is not known; known are 1.0, 2.0 and 3.0.", name),
        fmt::format("its version is {}.{}", major, minor));
  }
  const std::size_t width = major == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;) length = length * 256 + byte_at(8 + i);
  if (length > kMaxHeader) {
    throw DataError(fmt::format("'{}' has a longer NPY header than the {} bytes that are read.",
                                name, kMaxHeader),
                    fmt::format("its header has {} bytes", length));
  }
  const std::size_t start = 8 + width;
  if (length > 0) byte_at(start + length - 1);
  return {text.substr(start, length), bytes.subspan(start + length)};
}

// A bool of C++ with another value than 0 or 1 is undefined behaviour.
void CheckBooleans(std::span<const std::byte> values, const std::string& name) {
  const auto neither = [](std::byte value) { return std::to_integer<unsigned>(value) > 1; };
  if (std::any_of(values.begin(), values.end(), neither)) {
    throw Error(
        fmt::format("'{}' is an array of truth values but has bytes that are neither 0 "
                    "nor 1; fetch or copy it again.",
                    name));
  }
}

struct NpyArray {
  NpyHeader header;
  NpyElement element;
  std::span<const std::byte> values;
};

// The parts of a file whose shape accounts for all of its bytes.
NpyArray ArrayOf(std::span<const std::byte> bytes, const std::string& name) {
  const auto [text, values] = SplitFile(bytes, name);
  NpyHeader header = HeaderParser(text, name).Parse();
  const NpyElement element = ElementOf(header.descr, name);
  const std::optional<std::uint64_t> wanted =
      internal::ArrayBytes(header.shape, c10::elementSize(element.type.stored));
  if (!wanted || *wanted != values.size()) {
    throw DataError(
        fmt::format("'{}' states a shape that does not account for the bytes behind its header; "
                    "fetch or copy it again.",
                    name),
        fmt::format("it states {} of type {} and has {} bytes", internal::ShapeText(header.shape),
                    header.descr, values.size()));
  }
  return {std::move(header), element, values};
}

// Whether a tensor can be the bytes of the file as they are. Truth values have to be checked, and
// are small.
bool IsATensor(const NpyArray& array) {
  const NpyType& type = array.element.type;
  const auto begin = reinterpret_cast<std::uintptr_t>(array.values.data());
  return !array.values.empty() && !array.element.swap && !array.header.fortran_order &&
         type.given == type.stored && type.stored != at::kBool &&
         begin % c10::elementSize(type.stored) == 0;
}

}  // namespace

at::Tensor ParseNpy(std::span<const std::byte> bytes, const std::string& name) {
  auto [header, element, values] = ArrayOf(bytes, name);
  const auto [type, swap] = element;
  if (type.stored == at::kBool) CheckBooleans(values, name);
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  at::Tensor array = internal::TensorFromBytes(values, type.stored, header.shape, swap);
  if (type.given != type.stored) array = array.to(type.given);
  if (!header.fortran_order) return array;
  std::vector<std::int64_t> backwards(header.shape.size());
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    backwards[i] = static_cast<std::int64_t>(backwards.size() - 1 - i);
  }
  return array.permute(backwards).contiguous();
}

at::Tensor MapNpy(const std::filesystem::path& path) {
  const auto file = internal::MappedFile::Open(path);
  if (file == nullptr) return {};
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  if (!text.starts_with(kMagic)) return {};  // it is compressed, or nothing that is known
  const NpyArray array = ArrayOf(file->bytes(), path.string());
  if (!IsATensor(array)) return {};
  // A tensor has no type for what may not be written to. The file goes with its storage.
  auto* const values = const_cast<std::byte*>(array.values.data());  // NOLINT
  return at::from_blob(
      values, array.header.shape, [file](void*) {}, array.element.type.stored);
}

at::Tensor ReadNpy(const std::filesystem::path& path) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  if (!unknown && size >= kMappedFileSize) {
    if (at::Tensor mapped = MapNpy(path); mapped.defined()) return mapped;
  }
  return ParseNpy(ReadWholeFile(path), path.string());
}

Dataset ReadNpyDataset(const std::filesystem::path& inputs, const std::filesystem::path& labels,
                       const DatasetDeclaration& declaration) {
  return DatasetFromArrays(ReadNpy(inputs), labels.empty() ? at::Tensor() : ReadNpy(labels),
                           declaration, inputs.string(), labels.string());
}

namespace internal {

const DataFormat& NpyFormat() {
  static const DataFormat format = {
      .name = "npy",
      .help = "an array of NumPy, and an array of labels",
      .endings = {".npy"},
      .begins = [](std::string_view bytes) { return bytes.starts_with("\x93NUMPY"); },
      .takes = {"labels", "shape", "classes", "class-names"},
      .needs = {{"labels", "the labels", "--labels labels.npy"},
                {"shape", "the shape of an example", "--shape 1,28,28"},
                {"classes", "the classes", "--classes 10"}},
      .open = [](const DataRequest& request, DatasetDeclaration& declaration) -> DatasetReader {
        DeclareShape(request, true, declaration);
        return [](const SplitFiles& files, const DatasetDeclaration& declared, const ReadOptions&) {
          return ReadNpyDataset(files.inputs.front(), files.labels, declared);
        };
      }};
  return format;
}

}  // namespace internal

}  // namespace sordino
