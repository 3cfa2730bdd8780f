// A data format as a component. One file holds a format: its name, how its files are recognised,
// which settings it takes, and its reader. A line in format_list.inc makes it known; the command
// line, configuration files, error sentences and docs take what they say about formats from there.
#ifndef SORDINO_DATA_INTERNAL_DATA_FORMAT_H_
#define SORDINO_DATA_INTERNAL_DATA_FORMAT_H_

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"

namespace sordino::internal {

// The files of a training or test set.
struct SplitFiles {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path labels;  // empty: with the inputs, or none
};

struct ReadOptions {
  bool labelled = true;  // without it labels may be absent, and are then undefined
  bool capped = false;   // rows of a user
};

using DatasetReader =
    std::function<Dataset(const SplitFiles& files, const DatasetDeclaration&, const ReadOptions&)>;

// A setting without which a format's files cannot be read.
struct NeededSetting {
  std::string_view key;   // of one that is enough; class names are classes, a schema has columns
  std::string_view what;  // "the shape of an example"
  std::string_view give;  // "--shape 3,64,64"
  std::string_view note = {};
};

struct DataFormat {
  std::string_view name;  // "idx"
  std::string_view help;  // what the files are, in a few words
  // How it is recognised: by the end of a file's name (without .gz or .xz), by what a folder holds,
  // or by the first bytes of a file (decompressed). Of several formats that share an ending the
  // first one is meant that takes everything that was declared.
  std::vector<std::string_view> endings = {};
  bool (*is_folder)(const std::filesystem::path& folder) = nullptr;
  bool (*begins)(std::string_view bytes) = nullptr;
  // Keys of the section "data", besides source, test, format, records, mean and deviation, which
  // every format takes.
  std::vector<std::string_view> takes = {};
  // Of these, what must be declared; open() refuses a request without it.
  std::vector<NeededSetting> needs = {};
  // The files of a set that was named by `path`; none: the path itself. A folder may hold its test
  // set too.
  std::vector<std::filesystem::path> (*files)(const std::filesystem::path& path,
                                              bool test) = nullptr;
  // Checks what was declared, fills in the declaration and returns what reads the files. Public
  // files are read, private ones are not.
  DatasetReader (*open)(const DataRequest& request, DatasetDeclaration& declaration) = nullptr;
  // The heading of the names that its records have by themselves; empty: they have none.
  std::string_view record_names = {};
  // The names of the columns; none: the format has no columns.
  std::vector<std::string> (*column_names)(const std::filesystem::path& path,
                                           const DataRequest& request) = nullptr;
  // A schema to fill in, from the names of the columns; none: the format has no columns.
  std::string (*schema_template)(const std::filesystem::path& path,
                                 const DataRequest& request) = nullptr;

  bool Takes(std::string_view key) const {
    // The test set is like the training set.
    if (key == "test-labels") key = "labels";
    return std::find(takes.begin(), takes.end(), key) != takes.end();
  }
};

// All formats, in the order in which they are tried and shown.
std::span<const DataFormat* const> DataFormats();
// Throws Error for a name that is not known.
const DataFormat& FormatNamed(std::string_view name);

// Of `path` by its name, its folder or its first bytes. Throws Error where nothing tells.
const DataFormat& RecognisedFormat(const std::filesystem::path& path, const DataRequest& request);

// Whether a setting was declared, by itself or by one that says the same.
bool IsGiven(const DataRequest& request, std::string_view key);
// Throws Error for a declared setting that the format does not take.
void RefuseUnused(const DataRequest& request, const DataFormat& format);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_DATA_FORMAT_H_
