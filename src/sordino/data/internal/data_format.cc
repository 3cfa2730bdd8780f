#include "sordino/data/internal/data_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/tables/compressed_file.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::DataFormat;
using internal::DataFormats;

// A setting that not every format takes.
struct FormatSetting {
  std::string_view key;
  bool (*given)(const DataRequest& request);
};

constexpr FormatSetting kFormatSettings[] = {
    {.key = "labels", .given = [](const DataRequest& r) { return !r.labels.empty(); }},
    {.key = "test-labels", .given = [](const DataRequest& r) { return !r.test_labels.empty(); }},
    {.key = "shape", .given = [](const DataRequest& r) { return !r.shape.empty(); }},
    {.key = "resize", .given = [](const DataRequest& r) { return !r.resize.empty(); }},
    {.key = "classes", .given = [](const DataRequest& r) { return r.classes > 0; }},
    {.key = "class-names", .given = [](const DataRequest& r) { return !r.class_names.empty(); }},
    {.key = "columns", .given = [](const DataRequest& r) { return !r.columns.declared.empty(); }},
    {.key = "schema", .given = [](const DataRequest& r) { return !r.schema.empty(); }},
    {.key = "no-header", .given = [](const DataRequest& r) { return r.no_header; }},
    {.key = "encoding", .given = [](const DataRequest& r) { return !r.encoding.empty(); }},
    {.key = "delimiter", .given = [](const DataRequest& r) { return !r.delimiter.empty(); }},
    {.key = "quote", .given = [](const DataRequest& r) { return !r.quote.empty(); }},
    {.key = "id", .given = [](const DataRequest& r) { return !r.id.empty(); }},
    {.key = "missing", .given = [](const DataRequest& r) { return !r.missing.empty(); }},
    {.key = "rows-per-user", .given = [](const DataRequest& r) { return r.rows_per_user > 0; }},
    {.key = "vocabulary", .given = [](const DataRequest& r) { return !r.vocabulary.empty(); }},
    {.key = "length", .given = [](const DataRequest& r) { return r.length > 0; }},
};

bool TakesAllGiven(const DataRequest& request, const DataFormat& format) {
  return std::all_of(std::begin(kFormatSettings), std::end(kFormatSettings),
                     [&](const FormatSetting& setting) {
                       return !setting.given(request) || format.Takes(setting.key);
                     });
}

// The first bytes, decompressed; empty where they cannot be read.
std::string Beginning(const fs::path& path) {
  std::string bytes(64, '\0');
  std::size_t size = 0;
  try {
    const ByteSource source = Decompressed(OpenFile(path.string()), path.string());
    while (size < bytes.size()) {
      const std::size_t got = source(std::span(bytes).subspan(size));
      if (got == 0) break;
      size += got;
    }
  } catch (const Error&) {
    size = 0;  // whoever reads the file says why it cannot be
  }
  bytes.resize(size);
  return bytes;
}

// Those whose files have such a name, or whose folder it is.
std::vector<const DataFormat*> FormatsByName(const fs::path& path) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  fs::path plain = path;
  if (plain.extension() == ".gz" || plain.extension() == ".xz") plain.replace_extension();
  const std::string name = plain.filename().string();
  std::vector<const DataFormat*> found;
  for (const DataFormat* const format : DataFormats()) {
    const bool named = std::any_of(format->endings.begin(), format->endings.end(),
                                   [&](std::string_view ending) { return name.ends_with(ending); });
    const bool holds = format->is_folder != nullptr && folder && format->is_folder(path);
    if (folder ? holds : named) found.push_back(format);
  }
  return found;
}

}  // namespace

std::vector<DataFormatFacts> KnownDataFormats() {
  std::vector<DataFormatFacts> facts;
  for (const DataFormat* const format : DataFormats()) {
    facts.push_back({format->name, format->help, format->takes});
  }
  return facts;
}

std::span<const std::string_view> DataFormatNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const DataFormat* const format : DataFormats()) all.push_back(format->name);
    return all;
  }();
  return names;
}

namespace internal {

const DataFormat& FormatNamed(std::string_view name) {
  return *DataFormats()[IndexOfName("the data format", name, DataFormatNames())];
}

const DataFormat& RecognisedFormat(const fs::path& path, const DataRequest& request) {
  const std::vector<const DataFormat*> named = FormatsByName(path);
  for (const DataFormat* const format : named) {
    if (TakesAllGiven(request, *format)) return *format;
  }
  if (!named.empty()) return *named.front();
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::string beginning = Beginning(path);
    for (const DataFormat* const format : DataFormats()) {
      if (format->begins != nullptr && format->begins(beginning)) return *format;
    }
  }
  throw Error(fmt::format("the name of '{}' does not show its format; name it with --format: {}.",
                          path.string(), OneOf(DataFormatNames())));
}

bool IsGiven(const DataRequest& request, std::string_view key) {
  const auto given = [&](std::string_view name) {
    return std::any_of(std::begin(kFormatSettings), std::end(kFormatSettings),
                       [&](const FormatSetting& setting) {
                         return setting.key == name && setting.given(request);
                       });
  };
  return given(key) || (key == "classes" && given("class-names")) ||
         (key == "columns" && given("schema")) || (key == "shape" && given("resize"));
}

void RefuseUnused(const DataRequest& request, const DataFormat& format) {
  for (const FormatSetting& setting : kFormatSettings) {
    if (!setting.given(request) || format.Takes(setting.key)) continue;
    throw Error(
        fmt::format("--{} was given for '{}', and the format {} has no use for it; leave it out.",
                    setting.key, request.source, format.name));
  }
}

}  // namespace internal
}  // namespace sordino
