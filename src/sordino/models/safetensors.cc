#include "sordino/models/safetensors.h"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "sordino/base/error.h"

namespace sordino {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied byte for byte");

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kMaxDimensions = 64;
constexpr int kDeepestNesting = 3;  // header, tensor, list of numbers
constexpr std::string_view kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  at::ScalarType type;
};

constexpr std::array<Dtype, 10> kDtypes = {{{"F64", at::kDouble},
                                            {"F32", at::kFloat},
                                            {"F16", at::kHalf},
                                            {"BF16", at::kBFloat16},
                                            {"I64", at::kLong},
                                            {"I32", at::kInt},
                                            {"I16", at::kShort},
                                            {"I8", at::kChar},
                                            {"U8", at::kByte},
                                            {"BOOL", at::kBool}}};

constexpr auto kDtypeNames = [] {
  std::array<std::string_view, kDtypes.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kDtypes[i].name;
  return names;
}();

struct Entry {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Header {
  std::vector<Entry> entries;  // in the order of the bytes
  std::map<std::string, std::string> metadata;
};

// What a file says about itself is untrusted: names in sentences are cut and made printable.
std::string Shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown;
  for (const char c : text.substr(0, kLongest)) {
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    shown += printable ? c : '?';
  }
  return text.size() > kLongest ? shown + "..." : shown;
}

class HeaderReader {
 public:
  HeaderReader(const std::string& file, std::uint64_t data_bytes)
      : file_(file), data_bytes_(data_bytes) {}

  Header Read(std::string_view text) const {
    const Json json = Parse(text);
    if (!json.is_object()) Fail("its header is no JSON object");
    Header header;
    for (const auto& [name, value] : json.items()) {
      if (name == kMetadata) {
        header.metadata = Metadata(value);
      } else {
        header.entries.push_back(Tensor(name, value));
      }
    }
    std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t place = 0;
    for (const Entry& entry : header.entries) {
      if (entry.begin != place) {
        Fail(fmt::format("the bytes of tensor '{}' begin at {} and those before it end at {}",
                         Shown(entry.name), entry.begin, place));
      }
      place = entry.end;
    }
    if (place != data_bytes_) {
      Fail(fmt::format("its tensors take {} bytes and {} follow the header", place, data_bytes_));
    }
    return header;
  }

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(fmt::format("'{}' is not a valid safetensors file: {}.", file_, what));
  }

 private:
  Json Parse(std::string_view text) const {
    if (text.empty() || text.front() != '{') Fail("its header does not begin with '{'");
    std::set<std::string> names;
    // The parser keeps the last of two equal keys, so a second one is looked for here.
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      if (depth > kDeepestNesting) Fail("its header is nested too deeply");
      if (event == Json::parse_event_t::key && depth == 1) {
        const auto& name = value.get_ref<const std::string&>();
        if (!names.insert(name).second) {
          Fail(fmt::format("its header has two entries '{}'", Shown(name)));
        }
      }
      return true;
    };
    try {
      return Json::parse(text.begin(), text.end(), watch);
    } catch (const Json::exception&) {
      Fail("its header is not valid JSON");
    }
  }

  std::map<std::string, std::string> Metadata(const Json& value) const {
    std::map<std::string, std::string> metadata;
    if (!value.is_object()) Fail("its metadata are no object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) Fail(fmt::format("its metadata '{}' is no string", Shown(key)));
      metadata.emplace(key, text.get<std::string>());
    }
    return metadata;
  }

  std::vector<std::uint64_t> Numbers(const std::string& name, const Json& value, const char* key,
                                     std::size_t most) const {
    const auto list = value.find(key);
    if (list == value.end() || !list->is_array() || list->size() > most) {
      Fail(fmt::format("tensor '{}' has no list '{}' of at most {} numbers", Shown(name), key,
                       most));
    }
    std::vector<std::uint64_t> numbers;
    for (const Json& number : *list) {
      if (!number.is_number_unsigned()) {
        Fail(fmt::format("'{}' of tensor '{}' has an entry that is not a whole number from 0", key,
                         Shown(name)));
      }
      numbers.push_back(number.get<std::uint64_t>());
    }
    return numbers;
  }

  Entry Tensor(const std::string& name, const Json& value) const {
    if (!value.is_object() || value.size() != 3) {
      Fail(fmt::format("tensor '{}' is not described by dtype, shape and data_offsets",
                       Shown(name)));
    }
    Entry entry;
    entry.name = name;
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) {
      Fail(fmt::format("tensor '{}' has no dtype", Shown(name)));
    }
    const auto& type = dtype->get_ref<const std::string&>();
    const auto known = std::find_if(kDtypes.begin(), kDtypes.end(),
                                    [&](const Dtype& d) { return d.name == type; });
    if (known == kDtypes.end()) {
      Fail(fmt::format("tensor '{}' has the dtype '{}' and those known are {}", Shown(name),
                       Shown(type), fmt::join(kDtypeNames, ", ")));
    }
    entry.type = known->type;

    // The product without its zeros bounds the strides as well as the bytes.
    std::uint64_t bytes = c10::elementSize(entry.type);
    bool empty = false;
    for (const std::uint64_t side : Numbers(name, value, "shape", kMaxDimensions)) {
      empty = empty || side == 0;
      if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(side, 1), &bytes) ||
          bytes > std::numeric_limits<std::int64_t>::max()) {
        Fail(fmt::format("the shape of tensor '{}' is too large", Shown(name)));
      }
      entry.shape.push_back(static_cast<std::int64_t>(side));
    }
    if (empty) bytes = 0;

    const std::vector<std::uint64_t> range = Numbers(name, value, "data_offsets", 2);
    if (range.size() != 2 || range[0] > range[1] || range[1] > data_bytes_) {
      Fail(fmt::format("the bytes of tensor '{}' do not lie within the {} of the file", Shown(name),
                       data_bytes_));
    }
    entry.begin = range[0];
    entry.end = range[1];
    if (entry.end - entry.begin != bytes) {
      Fail(fmt::format("tensor '{}' has {} bytes and its shape needs {}", Shown(name),
                       entry.end - entry.begin, bytes));
    }
    return entry;
  }

  const std::string& file_;
  std::uint64_t data_bytes_;
};

std::string_view DtypeName(at::ScalarType type, const std::string& name) {
  for (const Dtype& known : kDtypes) {
    if (known.type == type) return known.name;
  }
  throw Error(
      fmt::format("the tensor '{}' holds {}, which a safetensors file cannot; convert it to "
                  "one of {}.",
                  name, c10::toString(type), fmt::join(kDtypeNames, ", ")));
}

std::string MakeHeader(const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  std::uint64_t place = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata || header.contains(name)) {
      throw Error(
          fmt::format("the name '{}' is given to two tensors or is reserved; give every "
                      "tensor a name of its own.",
                      Shown(name)));
    }
    const std::uint64_t end = place + tensor.nbytes();
    header[name] = {
        {"dtype", DtypeName(tensor.scalar_type(), name)},
        {"shape", std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
        {"data_offsets", {place, end}}};
    place = end;
  }
  try {
    std::string text = header.dump();
    text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
    return text;
  } catch (const nlohmann::json::exception&) {
    throw Error("a name or a text of the metadata is not UTF-8; use UTF-8 names.");
  }
}

// Writes everything or throws Error; the file is on the disk when Close returns.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path)
      : path_(path),
        descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) Fail();
  }
  ~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    std::error_code ignored;
    if (!kept_) std::filesystem::remove(path_, ignored);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* data, std::size_t bytes) {
    const char* place = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(descriptor_, place, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) Fail();
      place += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }
  void MoveTo(const std::filesystem::path& target) {
    if (::fsync(descriptor_) != 0) Fail();
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0) Fail();
    std::error_code error;
    std::filesystem::rename(path_, target, error);
    if (error) {
      throw Error(
          fmt::format("the file '{}' cannot be written: {}.", target.string(), error.message()));
    }
    kept_ = true;
  }

 private:
  [[noreturn]] void Fail() const {
    throw Error(
        fmt::format("the file '{}' cannot be written: {}.", path_.string(), std::strerror(errno)));
  }

  std::filesystem::path path_;
  int descriptor_;
  bool kept_ = false;
};

}  // namespace

SafetensorsFile ParseSafetensors(std::span<const std::byte> bytes, const std::string& name) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes) {
    HeaderReader(name, 0).Fail("it is shorter than the 8 bytes that give the length of its header");
  }
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const std::uint64_t rest = bytes.size() - kLengthBytes;
  if (length > kMaxHeader || length > rest) {
    HeaderReader(name, 0).Fail(
        fmt::format("its header is said to have {} bytes and at most {} are possible", length,
                    std::min(rest, kMaxHeader)));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  const HeaderReader reader(name, rest - length);
  Header header = reader.Read({text, static_cast<std::size_t>(length)});

  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  for (Entry& entry : header.entries) {
    const std::span<const std::byte> range = data.subspan(entry.begin, entry.end - entry.begin);
    if (entry.type == at::kBool &&
        std::any_of(range.begin(), range.end(), [](std::byte b) { return b > std::byte{1}; })) {
      reader.Fail(fmt::format("tensor '{}' of truth values has a byte other than 0 and 1",
                              Shown(entry.name)));
    }
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(entry.type));
    if (!range.empty()) std::memcpy(tensor.data_ptr(), range.data(), range.size());
    file.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  return file;
}

bool HasSafetensorsType(at::ScalarType type) {
  return std::any_of(kDtypes.begin(), kDtypes.end(),
                     [type](const Dtype& known) { return known.type == type; });
}

SafetensorsFile ReadSafetensors(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw Error(
        fmt::format("the file '{}' does not exist; give a safetensors file.", file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (!stream || error) {
    throw Error(
        fmt::format("the file '{}' cannot be opened; check that it may be read.", file.string()));
  }
  std::vector<std::byte> bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(stream.gcount()) != size) {
    throw Error(fmt::format("the file '{}' could not be read to its end.", file.string()));
  }
  return ParseSafetensors(bytes, file.string());
}

void WriteSafetensors(const std::filesystem::path& file,
                      const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  const std::string header = MakeHeader(tensors, metadata);
  std::filesystem::path temporary = file;
  temporary += fmt::format(".{}.tmp", ::getpid());
  OutputFile output(temporary);
  const std::uint64_t length = header.size();
  output.Write(&length, kLengthBytes);
  output.Write(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.detach().to(at::kCPU).contiguous();
    output.Write(dense.data_ptr(), dense.nbytes());
  }
  output.MoveTo(file);
}

}  // namespace sordino
