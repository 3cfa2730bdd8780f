#include "sordino/data/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/data/cifar_reader.h"
#include "sordino/data/digits.h"
#include "sordino/data/idx_reader.h"
#include "sordino/data/image_folder.h"
#include "sordino/data/internal/data_source.h"
#include "sordino/data/npy_reader.h"
#include "sordino/data/table_reader.h"
#include "sordino/data/text_reader.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::DataFormat;
using internal::DataSource;
using internal::SourceOf;
using internal::SplitFiles;

CifarLabels CifarLabelsOf(const DatasetDeclaration& declaration) {
  // Files of CIFAR-100 have two labels a row; 20 classes are the coarse ones.
  if (declaration.classes == 100) return CifarLabels::kFine;
  return declaration.classes == 20 ? CifarLabels::kCoarse : CifarLabels::kOne;
}

struct ReadOptions {
  bool labelled = true;
  bool capped = false;  // rows of a user
};

Vocabulary VocabularyFor(const DataSource& source) {
  return source.vocabulary.size() == 1 && !source.vocabulary_is_text
             ? ReadVocabulary(source.vocabulary.front())
             : VocabularyOf(source.vocabulary);
}

bool HasClassFolders(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.')) return true;
  }
  return false;
}

Dataset ReadTableSplit(const DataSource& source, const fs::path& file,
                       const DatasetDeclaration& declaration, const ReadOptions& options) {
  TableOptions table;
  table.columns = source.columns;
  table.separator = source.format == DataFormat::kTsv ? '\t' : ',';
  table.labelled = options.labelled;
  table.rows_per_user = options.capped ? declaration.rows_per_user : 0;
  return ReadTable(file, declaration, table);
}

Dataset ReadSplit(const DataSource& source, const SplitFiles& files,
                  const DatasetDeclaration& declaration, const ReadOptions& options) {
  const fs::path& first = files.inputs.front();
  switch (source.format) {
    case DataFormat::kMade:
      break;
    case DataFormat::kIdx:
      return ReadIdxDataset(first, files.labels, declaration);
    case DataFormat::kCifar:
      return ReadCifarDataset(files.inputs, declaration, CifarLabelsOf(declaration));
    case DataFormat::kNpy:
      return ReadNpyDataset(first, files.labels, declaration);
    case DataFormat::kCsv:
    case DataFormat::kTsv:
      return ReadTableSplit(source, first, declaration, options);
    case DataFormat::kImages: {
      ImageFolderOptions folder;
      folder.labelled = options.labelled || HasClassFolders(first);
      return ReadImageFolder(first, declaration, folder);
    }
    case DataFormat::kText: {
      TextOptions text;
      text.labelled = options.labelled;
      return ReadText(first, VocabularyFor(source), declaration, text);
    }
  }
  return {};
}

DatasetDeclaration DeclarationOf(const DataSource& source) {
  DatasetDeclaration declaration = source.declaration;
  if (source.format == DataFormat::kText) declaration.vocabulary = VocabularyFor(source).size();
  return declaration;
}

// The number of private records is public only where it was declared, so a file with more is no
// longer what was declared. Fewer are fine: the constant stands in for the number.
void CheckRecords(const Dataset& train) {
  const std::int64_t declared = train.declaration.records;
  if (declared > 0 && train.size() > declared) {
    throw Error(
        fmt::format("'{}' has more records than the {} that were declared; declare their "
                    "true number, or leave it out to keep it private.",
                    train.declaration.name, declared));
  }
}

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

void AddFiles(const SplitFiles& split, const std::string& name, bool is_public,
              std::vector<DataFile>& files) {
  for (const fs::path& path : split.inputs) {
    files.push_back(FileAt(path, name + " records", is_public));
  }
  if (!split.labels.empty()) {
    files.push_back(FileAt(split.labels, name + " labels", is_public));
  }
}

}  // namespace

DatasetDeclaration Declare(const DataRequest& request) { return DeclarationOf(SourceOf(request)); }

std::string VocabularyText(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  return source.format == DataFormat::kText ? VocabularyFor(source).Text() : "";
}

std::string FormatOf(const DataRequest& request) {
  return std::string(internal::FormatName(SourceOf(request).format));
}

std::vector<DataFile> FilesOf(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  std::vector<DataFile> files;
  AddFiles(source.train, "training", false, files);
  if (source.test) AddFiles(*source.test, "test", true, files);
  for (const fs::path& path : source.vocabulary) {
    const bool listed = std::any_of(files.begin(), files.end(), [&](const DataFile& file) {
      return file.path == path.string();
    });
    if (!listed) files.push_back(FileAt(path, "vocabulary", true));
  }
  return files;
}

DataSplits OpenData(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  const DatasetDeclaration declaration = DeclarationOf(source);
  DataSplits splits;
  if (source.format == DataFormat::kMade) {
    splits = MakeDigits();
    splits.train.declaration = declaration;
    splits.test->declaration = declaration;
  } else {
    splits.train = ReadSplit(source, source.train, declaration, {.labelled = true, .capped = true});
  }
  NeedLabels(splits.train);
  CheckDeclaration(splits.train);
  CheckRecords(splits.train);
  if (source.test) {
    splits.test = ReadSplit(source, *source.test, declaration, {});
    NeedLabels(*splits.test);
    CheckDeclaration(*splits.test);
  }
  return splits;
}

Dataset OpenForPrediction(const DataRequest& request) {
  const DataSource source = SourceOf(request);
  const DatasetDeclaration declaration = DeclarationOf(source);
  if (source.format == DataFormat::kMade) {
    DataSplits digits = MakeDigits(0);
    digits.test->declaration = declaration;
    return *std::move(digits.test);
  }
  const SplitFiles& files = source.known && source.test ? *source.test : source.train;
  Dataset data = ReadSplit(source, files, declaration, {.labelled = false, .capped = false});
  CheckDeclaration(data);
  return data;
}

}  // namespace sordino
