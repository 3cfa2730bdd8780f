#include "sordino/data/internal/data_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <system_error>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/data/format_settings.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/data/internal/known_datasets.h"
#include "sordino/data/text_reader.h"
#include "sordino/data/vocabulary_source.h"
#include "sordino/tables/schema_text.h"
#include "sordino/tables/table_schema.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::DataFormat;
using internal::DataSource;
using internal::SplitFiles;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

fs::path ExistingPath(const std::string& path) {
  if (!Exists(path)) {
    throw Error(fmt::format("'{}' is neither a known dataset nor a file; {}known are {}.", path,
                            DidYouMean(path, DatasetNames()), fmt::join(DatasetNames(), ", ")));
  }
  return path;
}

fs::path NeededFile(const std::string& path, std::string_view what) {
  if (!Exists(path)) {
    throw Error(
        fmt::format("the file of the {}, '{}', does not exist; give one that does.", what, path));
  }
  return path;
}

// None where words are hashed.
std::vector<fs::path> VocabularyFiles(const DataRequest& request) {
  if (request.vocabulary.empty()) return {};
  const VocabularySource source = ParseVocabularySource(request.vocabulary);
  if (source.file.empty()) return {};
  return {NeededFile(source.file, "vocabulary")};
}

SplitFiles FilesAt(const DataFormat& format, const fs::path& path, const std::string& labels,
                   bool test) {
  SplitFiles files;
  files.inputs = format.files != nullptr ? format.files(path, test) : std::vector{path};
  if (!labels.empty()) files.labels = NeededFile(labels, "labels");
  return files;
}

const DataFormat& FormatFor(const DataRequest& request, const fs::path& path) {
  return request.format.empty() ? internal::RecognisedFormat(path, request)
                                : internal::FormatNamed(request.format);
}

// What the user declared replaces what the catalogue or the format says.
void TakeDeclared(const DataRequest& request, DatasetDeclaration& declaration) {
  if (!request.class_names.empty()) {
    declaration.class_names = request.class_names;
    if (declaration.classes == 0) {
      declaration.classes = static_cast<std::int64_t>(request.class_names.size());
    }
  }
  if (request.classes > 0) declaration.classes = request.classes;
  if (request.records > 0) declaration.records = request.records;
  if (!request.mean.empty() || !request.deviation.empty()) {
    declaration.normalisation = {request.mean, request.deviation, "declared"};
  }
}

DataSource FileSource(const DataRequest& request) {
  DataSource source;
  const fs::path path = ExistingPath(request.source);
  source.format = &FormatFor(request, path);
  internal::RefuseUnused(request, *source.format);
  source.train = FilesAt(*source.format, path, request.labels, false);
  const fs::path name = path.has_filename() ? path : path.parent_path();
  source.declaration.name = name.filename().string();
  source.vocabulary = VocabularyFiles(request);
  source.read = source.format->open(request, source.declaration);
  TakeDeclared(request, source.declaration);
  return source;
}

// The format whose settings may be given: for images that the program makes, that of images.
const DataFormat& SettingsOf(const DataSource& known) {
  return known.format != nullptr ? *known.format : internal::FormatNamed("images");
}

void RefuseForKnown(const DataRequest& request, const DataSource& source) {
  const auto refuse = [&](bool given, std::string_view flag) {
    if (given) {
      throw Error(fmt::format("{} was given for '{}', which has no use for it; leave it out.", flag,
                              request.source));
    }
  };
  refuse(!request.labels.empty(), "--labels");
  refuse(!request.format.empty(), "--format");
  refuse(!request.resize.empty(), "--resize");
  refuse(request.test.empty() && !request.test_labels.empty(), "--test-labels");
  refuse(source.format == nullptr && !request.test.empty(), "--test");
  internal::RefuseUnused(request, SettingsOf(source));
}

// The words of the public text of a known set, unless a vocabulary was given.
internal::DatasetReader KnownSentences(const DataRequest& request, DataSource& source) {
  DatasetDeclaration& declaration = source.declaration;
  if (request.length > 0) declaration.shape = {request.length};
  if (!request.vocabulary.empty()) {
    DataRequest full = request;
    full.length = declaration.shape[0];
    source.vocabulary = VocabularyFiles(request);
    return source.format->open(full, declaration);
  }
  Vocabulary vocabulary = VocabularyOf(source.vocabulary);
  declaration.vocabulary = vocabulary.size();
  return [vocabulary = std::move(vocabulary)](const SplitFiles& files,
                                              const DatasetDeclaration& declared,
                                              const internal::ReadOptions& options) {
    return ReadText(files.inputs.front(), vocabulary, declared, {.labelled = options.labelled});
  };
}

DataSource NamedSource(const DataRequest& request) {
  DataSource source = internal::KnownSource(request.source);
  source.known = true;
  RefuseForKnown(request, source);
  if (source.declaration.kind == InputKind::kTokens) {
    source.read = KnownSentences(request, source);
  } else {
    DataRequest full = request;
    if (full.shape.empty()) full.shape = source.declaration.shape;
    source.declaration.shape = full.shape;
    if (source.format != nullptr) source.read = source.format->open(full, source.declaration);
  }
  TakeDeclared(request, source.declaration);
  return source;
}

// Flags win over what a schema says.
void TakeSchema(const TableSchema& schema, DataRequest& request) {
  if (schema.header) request.no_header = request.no_header || !*schema.header;
  if (schema.encoding && request.encoding.empty()) {
    request.encoding = EncodingName(*schema.encoding);
  }
  if (schema.delimiter && request.delimiter.empty()) {
    request.delimiter = DelimiterText(*schema.delimiter);
  }
  if (schema.quote && request.quote.empty()) request.quote = QuoteText(*schema.quote);
  if (request.missing.empty()) request.missing = schema.missing;
  if (request.rows_per_user == 0) request.rows_per_user = schema.rows_per_user;
  request.schema.clear();
}

// Patterns stand for the columns that the first line of the table names.
std::vector<TableColumn> ColumnsOf(const TableSchema& schema, const DataRequest& request) {
  if (schema.patterns.empty()) return schema.columns;
  const DataFormat& format = FormatFor(request, ExistingPath(request.source));
  const std::vector<std::string> names = format.column_names(request.source, request);
  if (!request.no_header) CheckColumnNames(names);
  return schema.ColumnsOf(names);
}

}  // namespace

bool TakesSetting(const DataRequest& request, std::string_view key) {
  return internal::IsKnown(request.source)
             ? SettingsOf(internal::KnownSource(request.source)).Takes(key)
             : FormatFor(request, ExistingPath(request.source)).Takes(key);
}

std::string RecordNames(const DataRequest& request) {
  if (!request.id.empty() || internal::IsKnown(request.source)) return request.id;
  return std::string(FormatFor(request, ExistingPath(request.source)).record_names);
}

std::vector<MissingSetting> MissingDeclarations(const DataRequest& request, bool to_train) {
  if (request.source.empty()) return {{"the data", "--data digits", "or any file or folder"}};
  if (internal::IsKnown(request.source)) return {};
  std::vector<MissingSetting> missing;
  for (const internal::NeededSetting& needed :
       FormatFor(request, ExistingPath(request.source)).needs) {
    if (needed.key == "labels" && !to_train) continue;
    if (internal::IsGiven(request, needed.key)) continue;
    missing.push_back(
        {std::string(needed.what), std::string(needed.give), std::string(needed.note)});
  }
  return missing;
}

DataRequest WithSchema(DataRequest request) {
  if (request.schema.empty()) return request;
  if (!request.columns.declared.empty()) {
    throw Error("both --schema and --columns were given; declare the columns in one of them.");
  }
  const TableSchema schema = ReadSchema(request.schema);
  if (schema.columns.empty() && schema.patterns.empty()) {
    throw Error(
        fmt::format("the schema '{}' ignores every column; give the kinds of those that "
                    "are used.",
                    request.schema));
  }
  TakeSchema(schema, request);
  for (const TableColumn& column : ColumnsOf(schema, request)) {
    request.columns.declared.push_back(ColumnText(column));
  }
  return request;
}

std::string SchemaTemplateOf(const DataRequest& request) {
  const bool known = internal::IsKnown(request.source);
  const DataFormat* const format =
      known ? nullptr : &FormatFor(request, ExistingPath(request.source));
  if (format == nullptr || format->schema_template == nullptr) {
    throw Error(fmt::format("'{}' is not a table; only tables have a schema.", request.source));
  }
  return format->schema_template(request.source, request);
}

namespace internal {

DataSource SourceOf(const DataRequest& given) {
  if (given.source.empty()) {
    throw Error(
        fmt::format("no data were named; known are {}, and any file or folder can be "
                    "given.",
                    fmt::join(DatasetNames(), ", ")));
  }
  const bool known = IsKnown(given.source);
  // What has no columns refuses a schema without having read it.
  const bool table = !known && FormatFor(given, ExistingPath(given.source)).Takes("schema");
  const DataRequest request = table ? WithSchema(given) : given;
  DataSource source = known ? NamedSource(request) : FileSource(request);
  Need(source.declaration.Outputs() > 0, "number of classes",
       table ? "a label column, or a target column" : "--classes, or --class-names");
  if (!request.test.empty()) {
    source.test =
        FilesAt(*source.format, NeededFile(request.test, "test set"), request.test_labels, true);
  } else if (!known && source.format->files != nullptr && fs::is_directory(request.source)) {
    source.test = FilesAt(*source.format, request.source, {}, true);
  }
  return source;
}

}  // namespace internal
}  // namespace sordino
