#include "sordino/data/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/data/digits.h"
#include "sordino/data/internal/data_source.h"
#include "sordino/data/internal/declaration_check.h"
#include "sordino/data/text_reader.h"
#include "sordino/data/vocabulary_source.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::DataSource;
using internal::SourceOf;
using internal::SplitFiles;

void NeedLabels(const Dataset& data) {
  if (!data.labels.defined()) {
    throw Error(
        fmt::format("'{}' has no labels; name their file (--labels), or declare a label "
                    "column.",
                    data.declaration.name));
  }
}

DataFile FileAt(const fs::path& path, std::string role, bool is_public) {
  DataFile file{path.string(), std::move(role), is_public, 0};
  if (!is_public) return file;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
             path, fs::directory_options::skip_permission_denied, error)) {
      std::error_code failed;
      const std::uintmax_t size = entry.is_regular_file(failed) ? entry.file_size(failed) : 0;
      if (!failed) file.bytes += size;
    }
    return file;
  }
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error) file.bytes = size;
  return file;
}

void AddFiles(const SplitFiles& split, bool is_public, std::vector<DataFile>& files) {
  for (const fs::path& path : split.inputs) {
    files.push_back(FileAt(path, is_public ? kTestRecords : kTrainingRecords, is_public));
  }
  if (!split.labels.empty()) {
    files.push_back(FileAt(split.labels, is_public ? "test labels" : "training labels", is_public));
  }
}

}  // namespace

DatasetDeclaration Declare(const DataRequest& request) {
  DatasetDeclaration declaration = SourceOf(request).declaration;
  internal::CheckItself(declaration);
  return declaration;
}

std::string VocabularyText(const DataRequest& request) {
  // Only data that are known by name have words that were not given; records of a program have no
  // source at all.
  if (request.vocabulary.empty() && !IsDatasetName(request.source)) return "";
  const DataSource source = SourceOf(request);
  if (source.vocabulary.empty()) return "";
  // Without a list of words a known set takes them from public text.
  return request.vocabulary.empty()
             ? VocabularyOf(source.vocabulary).Text()
             : MakeVocabulary(ParseVocabularySource(request.vocabulary)).Text();
}

std::string FormatOf(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  return source.format == nullptr ? "made by the program" : std::string(source.format->name);
}

std::vector<DataFile> FilesOf(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  std::vector<DataFile> files;
  AddFiles(source.train, false, files);
  if (source.test) AddFiles(*source.test, true, files);
  for (const fs::path& path : source.vocabulary) {
    const bool listed = std::any_of(files.begin(), files.end(), [&](const DataFile& file) {
      return file.path == path.string();
    });
    if (!listed) files.push_back(FileAt(path, "vocabulary", true));
  }
  if (!request.schema.empty()) files.push_back(FileAt(request.schema, "schema", true));
  return files;
}

DataSplits OpenData(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  const DatasetDeclaration& declaration = source.declaration;
  DataSplits splits;
  if (source.format == nullptr) {
    splits = MakeDigits();
    splits.train.declaration = declaration;
    splits.test->declaration = declaration;
  } else {
    splits.train = source.read(source.train, declaration, {.labelled = true, .capped = true});
  }
  NeedLabels(splits.train);
  CheckDeclaration(splits.train);
  if (source.test) {
    splits.test = source.read(*source.test, declaration, {});
    NeedLabels(*splits.test);
    CheckDeclaration(*splits.test);
  }
  return splits;
}

Dataset OpenForPrediction(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  const DatasetDeclaration& declaration = source.declaration;
  if (source.format == nullptr) {
    DataSplits digits = MakeDigits(0);
    digits.test->declaration = declaration;
    return *std::move(digits.test);
  }
  const SplitFiles& files = source.known && source.test ? *source.test : source.train;
  Dataset data = source.read(files, declaration, {.labelled = false, .capped = false});
  CheckDeclaration(data);
  return data;
}

}  // namespace sordino
