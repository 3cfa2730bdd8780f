#include "sordino/data/internal/known_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/data/digits.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/format_declaration.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::DataSource;
using internal::SplitFiles;

constexpr std::array<std::string_view, 5> kNames = {"digits", "mnist", "fashion-mnist", "cifar-10",
                                                    "sst2"};
constexpr std::int64_t kSst2Length = 64;

class KnownFolder {
 public:
  explicit KnownFolder(const std::string& name) : name_(name) {
    const char* root = std::getenv("SORDINO_DATA");
    if (root == nullptr || *root == '\0') {
      throw Error(
          fmt::format("the files of '{}' are looked for below the folder that SORDINO_DATA "
                      "names, and it is not set; set it to the folder that holds {}/, or "
                      "take digits, which needs no files.",
                      name, name));
    }
    folder_ = fs::path(root) / name;
  }

  fs::path operator()(const char* file) const {
    if (fs::path stored = internal::Stored(folder_ / file); !stored.empty()) return stored;
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
  source.format = &internal::FormatNamed("idx");
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
  source.format = &internal::FormatNamed("cifar");
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
  source.format = &internal::FormatNamed("text");
  source.train.inputs = {file("train.tsv")};
  source.test = SplitFiles{{file("test.tsv")}, {}};
  source.vocabulary = {file("dev.tsv"), file("test.tsv")};
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
  source.declaration = DigitsDeclaration();
  return source;
}

}  // namespace

std::span<const std::string_view> DatasetNames() { return kNames; }

bool IsDatasetName(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

namespace internal {

bool IsKnown(const std::string& name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

DataSource KnownSource(const std::string& name) {
  if (name == "digits") return Digits();
  if (name == "cifar-10") return Cifar10();
  if (name == "sst2") return Sst2();
  return MnistLike(name);
}

}  // namespace internal
}  // namespace sordino
