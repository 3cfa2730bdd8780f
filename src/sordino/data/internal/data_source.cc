#include "sordino/data/internal/data_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/data/digits.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::DataFormat;
using internal::DataSource;
using internal::SplitFiles;

constexpr std::array<std::string_view, 5> kNames = {"digits", "mnist", "fashion-mnist", "cifar-10",
                                                    "sst2"};
constexpr std::array<std::pair<std::string_view, DataFormat>, 7> kFormats = {{
    {"idx", DataFormat::kIdx},
    {"cifar", DataFormat::kCifar},
    {"csv", DataFormat::kCsv},
    {"tsv", DataFormat::kTsv},
    {"npy", DataFormat::kNpy},
    {"images", DataFormat::kImages},
    {"text", DataFormat::kText},
}};
constexpr std::int64_t kSst2Length = 64;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// `path` as it is, or compressed.
std::optional<fs::path> Stored(const fs::path& path) {
  for (const char* ending : {"", ".gz", ".xz"}) {
    fs::path candidate = path;
    candidate += ending;
    if (Exists(candidate)) return candidate;
  }
  return {};
}

class KnownFolder {
 public:
  explicit KnownFolder(const std::string& name) : name_(name) {
    const char* root = std::getenv("SORDINO_DATA");
    if (root == nullptr || *root == '\0') {
      throw Error(
          fmt::format("The files of '{}' are looked for below the folder that SORDINO_DATA "
                      "names, and it is not set; set it to the folder that holds {}/, or "
                      "take digits, which needs no files.",
                      name, name));
    }
    folder_ = fs::path(root) / name;
  }

  fs::path operator()(const char* file) const {
    if (const std::optional<fs::path> stored = Stored(folder_ / file)) return *stored;
    throw Error(
        fmt::format("'{}' is missing (also as .gz and .xz), which '{}' needs; put it there "
                    "or set SORDINO_DATA to another folder.",
                    (folder_ / file).string(), name_));
  }

 private:
  std::string name_;
  fs::path folder_;
};

DatasetDeclaration ImageDeclaration(const std::string& name, std::vector<std::int64_t> shape,
                                    std::int64_t records) {
  DatasetDeclaration declaration;
  declaration.name = name;
  declaration.kind = InputKind::kImage;
  declaration.shape = std::move(shape);
  declaration.classes = 10;
  declaration.records = records;
  const auto channels = static_cast<std::size_t>(declaration.shape[0]);
  declaration.normalisation = {std::vector<double>(channels, 0.5),
                               std::vector<double>(channels, 0.5),
                               "constants of the program, not of the data"};
  return declaration;
}

DataSource MnistLike(const std::string& name) {
  const KnownFolder file(name);
  DataSource source;
  source.format = DataFormat::kIdx;
  source.train = {{file("train-images-idx3-ubyte")}, file("train-labels-idx1-ubyte")};
  source.test = {{file("t10k-images-idx3-ubyte")}, file("t10k-labels-idx1-ubyte")};
  source.declaration = ImageDeclaration(name, {1, 28, 28}, 60'000);
  if (name == "fashion-mnist") {
    source.declaration.class_names = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                      "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};
  }
  return source;
}

DataSource Cifar10() {
  const KnownFolder file("cifar-10");
  DataSource source;
  source.format = DataFormat::kCifar;
  source.train.inputs = {file("data_batch_1.bin"), file("data_batch_2.bin"),
                         file("data_batch_3.bin"), file("data_batch_4.bin"),
                         file("data_batch_5.bin")};
  source.test = SplitFiles{{file("test_batch.bin")}, {}};
  source.declaration = ImageDeclaration("cifar-10", {3, 32, 32}, 50'000);
  source.declaration.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                    "dog",      "frog",       "horse", "ship", "truck"};
  return source;
}

DataSource Sst2() {
  const KnownFolder file("sst2");
  DataSource source;
  source.format = DataFormat::kText;
  source.train.inputs = {file("train.tsv")};
  source.test = SplitFiles{{file("test.tsv")}, {}};
  source.vocabulary = {file("dev.tsv"), file("test.tsv")};
  source.vocabulary_is_text = true;
  source.declaration.name = "sst2";
  source.declaration.kind = InputKind::kTokens;
  source.declaration.shape = {kSst2Length};
  source.declaration.classes = 2;
  source.declaration.class_names = {"negative", "positive"};
  source.declaration.records = 67'349;
  source.declaration.vocabulary_source =
      "words of the development and test sentences, which are declared public";
  return source;
}

DataSource Digits() {
  DataSource source;
  source.format = DataFormat::kMade;
  source.declaration = DigitsDeclaration();
  return source;
}

DataSource KnownSource(const std::string& name) {
  if (name == "digits") return Digits();
  if (name == "cifar-10") return Cifar10();
  if (name == "sst2") return Sst2();
  return MnistLike(name);
}

std::string DidYouMean(std::string_view given, std::span<const std::string_view> known) {
  const std::string nearest = NearestName(given, known);
  return nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest);
}

fs::path ExistingPath(const std::string& path) {
  if (!Exists(path)) {
    throw Error(fmt::format("'{}' is neither a known dataset nor a file; {}known are {}.", path,
                            DidYouMean(path, kNames), fmt::join(kNames, ", ")));
  }
  return path;
}

fs::path NeededFile(const std::string& path, std::string_view what) {
  if (!Exists(path)) {
    throw Error(
        fmt::format("The file of the {}, '{}', does not exist; give one that does.", what, path));
  }
  return path;
}

DataFormat FormatByName(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return Stored(path / "data_batch_1.bin") ? DataFormat::kCifar : DataFormat::kImages;
  }
  fs::path plain = path;
  if (plain.extension() == ".gz" || plain.extension() == ".xz") plain.replace_extension();
  const std::string ending = plain.extension().string();
  if (ending == ".csv") return DataFormat::kCsv;
  if (ending == ".tsv") return DataFormat::kTsv;
  if (ending == ".npy") return DataFormat::kNpy;
  if (ending == ".bin") return DataFormat::kCifar;
  if (ending == ".txt") return DataFormat::kText;
  if (ending == ".idx" || plain.string().ends_with("-ubyte")) return DataFormat::kIdx;
  throw Error(
      fmt::format("The name of '{}' does not tell its format; say which with --format: "
                  "idx, cifar, csv, tsv, npy, images or text.",
                  path.string()));
}

DataFormat ParseFormat(const std::string& text) {
  std::array<std::string_view, kFormats.size()> names;
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].first == text) return kFormats[i].second;
    names[i] = kFormats[i].first;
  }
  throw Error(fmt::format("The format '{}' is not known; {}it can be {}.", text,
                          DidYouMean(text, names), fmt::join(names, ", ")));
}

// The batches in a folder of CIFAR, or one file.
std::vector<fs::path> CifarFiles(const fs::path& path, bool test) {
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
        fmt::format("The folder '{}' holds no {} of CIFAR; give the folder of its binary "
                    "version, or one file.",
                    path.string(), test ? "test_batch" : "data_batch_..."));
  }
  return files;
}

SplitFiles FilesAt(DataFormat format, const fs::path& path, const std::string& labels, bool test) {
  SplitFiles files;
  files.inputs = format == DataFormat::kCifar ? CifarFiles(path, test) : std::vector{path};
  if (!labels.empty()) {
    if (format != DataFormat::kIdx && format != DataFormat::kNpy) {
      throw Error(
          fmt::format("A file of labels was given for data in the format {}, which holds "
                      "its labels itself; leave it out.",
                      internal::FormatName(format)));
    }
    files.labels = NeededFile(labels, "labels");
  }
  return files;
}

void Need(bool declared, std::string_view what, std::string_view flag) {
  if (!declared) {
    throw Error(
        fmt::format("The {} must be declared before the data are read; give {}.", what, flag));
  }
}

void DeclareTable(const DataRequest& request, DataSource& source) {
  Need(!request.columns.declared.empty(), "columns of a table",
       "--columns, such as age:numeric:0:120 sick:label:no|yes");
  source.columns = ParseColumns(request.columns.declared);
  DeclareColumns(source.columns, source.declaration);
  const bool has_user =
      std::any_of(source.columns.begin(), source.columns.end(),
                  [](const TableColumn& column) { return column.role == ColumnRole::kUser; });
  if (has_user && request.rows_per_user == 0) {
    throw Error(
        "A user column was declared without a cap on the rows of a user; give "
        "--rows-per-user, such as 1.");
  }
  if (!has_user && request.rows_per_user > 0) {
    throw Error(
        fmt::format("At most {} rows of a user were declared without a user column; "
                    "declare it, such as id:user.",
                    request.rows_per_user));
  }
  source.declaration.rows_per_user = request.rows_per_user;
}

void DeclareText(const DataRequest& request, DataSource& source) {
  Need(request.length > 0, "tokens of an example", "--length, such as 64");
  Need(!request.vocabulary.empty(), "vocabulary",
       "--vocabulary with a file of public words, one a line");
  source.declaration.kind = InputKind::kTokens;
  source.declaration.shape = {request.length};
}

void DeclareArrays(const DataRequest& request, DataSource& source) {
  const bool images = source.format == DataFormat::kImages;
  if (source.format == DataFormat::kCifar) {
    source.declaration.shape = {3, 32, 32};
  } else {
    Need(!request.shape.empty(), "shape of an example",
         "--shape, such as 1,28,28 for images or 13 for features");
    source.declaration.shape = request.shape;
  }
  const std::size_t dimensions = source.declaration.shape.size();
  if (dimensions != 3 && (images || dimensions != 1)) {
    throw Error(fmt::format("The shape of an example is {}; give channels, height and width{}.",
                            fmt::join(request.shape, ","),
                            images ? "" : ", or one number of features"));
  }
  source.declaration.kind = dimensions == 3 ? InputKind::kImage : InputKind::kFeatures;
}

void RefuseUnused(const DataRequest& request, const DataSource& source) {
  const auto refuse = [&](bool given, std::string_view what) {
    if (given) {
      throw Error(fmt::format("{} given for '{}', which has no use for it; leave it out.", what,
                              request.source));
    }
  };
  const bool table = source.format == DataFormat::kCsv || source.format == DataFormat::kTsv;
  const bool text = source.format == DataFormat::kText;
  refuse(!table && !request.columns.declared.empty(), "--columns was");
  refuse(!table && request.rows_per_user > 0, "--rows-per-user was");
  refuse(!text && !request.vocabulary.empty(), "--vocabulary was");
  refuse(!text && request.length > 0, "--length was");
  refuse((table || text) && !request.shape.empty(), "--shape was");
  refuse(table && (request.classes > 0 || !request.class_names.empty()),
         "--classes or --class-names was");
  refuse(source.known && !request.labels.empty(), "--labels was");
  refuse(source.known && !request.format.empty(), "--format was");
  refuse(source.known && request.test.empty() && !request.test_labels.empty(), "--test-labels was");
  refuse(source.format == DataFormat::kMade && !request.test.empty(), "--test was");
}

// What the user declared replaces what the catalogue knows.
void TakeDeclared(const DataRequest& request, DataSource& source) {
  DatasetDeclaration& declaration = source.declaration;
  if (source.known && !request.shape.empty()) declaration.shape = request.shape;
  if (!request.class_names.empty()) {
    declaration.class_names = request.class_names;
    if (!source.known) {
      declaration.classes = static_cast<std::int64_t>(request.class_names.size());
    }
  }
  if (request.classes > 0) declaration.classes = request.classes;
  if (request.records > 0) declaration.records = request.records;
  if (request.length > 0) declaration.shape = {request.length};
  if (!request.mean.empty() || !request.deviation.empty()) {
    declaration.normalisation = {request.mean, request.deviation, "declared"};
  }
  if (!request.vocabulary.empty()) {
    source.vocabulary = {NeededFile(request.vocabulary, "vocabulary")};
    source.vocabulary_is_text = false;
    declaration.vocabulary_source =
        fmt::format("the file '{}', declared public", request.vocabulary);
  }
}

DataSource FileSource(const DataRequest& request) {
  DataSource source;
  const fs::path path = ExistingPath(request.source);
  source.format = request.format.empty() ? FormatByName(path) : ParseFormat(request.format);
  // Tables and sentences share an ending; only sentences have a vocabulary.
  if (request.format.empty() && source.format == DataFormat::kTsv && !request.vocabulary.empty()) {
    source.format = DataFormat::kText;
  }
  source.train = FilesAt(source.format, path, request.labels, false);
  fs::path name = path.has_filename() ? path : path.parent_path();
  source.declaration.name = name.filename().string();
  switch (source.format) {
    case DataFormat::kCsv:
    case DataFormat::kTsv:
      DeclareTable(request, source);
      break;
    case DataFormat::kText:
      DeclareText(request, source);
      break;
    default:
      DeclareArrays(request, source);
  }
  return source;
}

}  // namespace

std::span<const std::string_view> DatasetNames() { return kNames; }

namespace internal {

std::string_view FormatName(DataFormat format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return "made by the program";
}

DataSource SourceOf(const DataRequest& request) {
  if (request.source.empty()) {
    throw Error(
        fmt::format("No data were named; known are {}, and any file or folder can be "
                    "given.",
                    fmt::join(kNames, ", ")));
  }
  const bool known = std::find(kNames.begin(), kNames.end(), request.source) != kNames.end();
  DataSource source = known ? KnownSource(request.source) : FileSource(request);
  source.known = known;
  RefuseUnused(request, source);
  TakeDeclared(request, source);
  Need(source.declaration.classes > 0, "number of classes",
       source.columns.empty() ? "--classes, or --class-names" : "a label column");
  if (!request.test.empty()) {
    source.test =
        FilesAt(source.format, NeededFile(request.test, "test set"), request.test_labels, true);
  } else if (!known && source.format == DataFormat::kCifar && fs::is_directory(request.source)) {
    source.test = FilesAt(source.format, request.source, {}, true);
  }
  return source;
}

}  // namespace internal
}  // namespace sordino
