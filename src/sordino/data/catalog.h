// From what a user names to examples in memory.
//
// A source is the name of a known dataset ("digits", which is made by the program itself; "mnist",
// "fashion-mnist", "cifar-10", "sst2", found below the folder of SORDINO_DATA), or a file or folder
// with its format and its declaration.
#ifndef SORDINO_DATA_CATALOG_H_
#define SORDINO_DATA_CATALOG_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/tables/table_layout.h"

namespace sordino {

struct TableColumns {
  // "age:numeric:0:120", ... (tables/table_columns.h)
  std::vector<std::string> declared;
};

// Everything that a user says about the data. Fields left empty come from the catalogue for known
// names; for files, what the format needs and was not declared is an Error that says so.
struct DataRequest {
  std::string source;  // a known name, a file or a folder
  std::string labels;  // the file of the labels, where the format keeps them apart (idx, npy)
  std::string test;    // like source, for the public test set; empty: the catalogue's, or none
  std::string test_labels;
  std::string format;  // one of DataFormatNames(); empty: by the name of the file
  std::vector<std::int64_t> shape;
  std::string resize;  // of images: "64x48", "64x48:crop" (image_resize.h); empty: to the shape
  std::int64_t classes = 0;
  std::vector<std::string> class_names;
  std::int64_t records = 0;
  std::vector<double> mean;
  std::vector<double> deviation;
  TableColumns columns;
  std::string schema;      // of a table: a schema file (tables/table_schema.h) instead of columns
  bool no_header = false;  // of a table: its first line is a record, columns are called 1, 2, ...
  std::string encoding;    // of a table: one of EncodingNames(); empty: UTF-8
  std::string delimiter;   // of a table: one character or "tab"; empty: that of the format
  std::string quote;       // of a table: a double or single quote, or "none"; empty: a double quote
  std::vector<std::string> missing;  // of a table: cells without a value
  std::string id;                    // of a table: the column that names its records, kept as text
  std::int64_t rows_per_user = 0;
  // Of a table: rows with a cell that does not keep to the declaration.
  MalformedRows malformed = MalformedRows::kRefuse;
  std::string vocabulary;   // text: where its words come from (vocabulary_source.h)
  std::int64_t length = 0;  // text: tokens of an example
};

std::span<const std::string_view> DatasetNames();
bool IsDatasetName(std::string_view name);

// What can be given as a format, from the list of them (format_list.inc).
struct DataFormatFacts {
  std::string_view name;
  std::string_view help;  // what its files are
  // The settings that it takes besides those of every format.
  std::vector<std::string_view> takes;
};
std::vector<DataFormatFacts> KnownDataFormats();
std::span<const std::string_view> DataFormatNames();

// The request with what its schema file says written out, so that it stands without the file. A
// request without one is returned as it is. Throws Error for a schema that cannot be read and for
// one beside columns.
DataRequest WithSchema(DataRequest request);
// A schema file for the table of the request, with the names of its columns and nothing of its
// rows. Throws Error where the data are not a table.
std::string SchemaTemplateOf(const DataRequest& request);

// What is known before a byte of the private data is read. A vocabulary is read: it is public.
DatasetDeclaration Declare(const DataRequest& request);

// The words of text, which are public, one a line in the order of their ids; empty for other data.
std::string VocabularyText(const DataRequest& request);

inline constexpr const char* kTrainingRecords = "training records";
inline constexpr const char* kTestRecords = "test records";
// A file or folder that a request stands for.
struct DataFile {
  std::string path;
  std::string role;  // of the two above, or "training labels", "vocabulary", ...
  bool is_public = false;
  // As stored; of a folder, of all files in it. 0 where it is private: a size reveals how much
  // there is.
  std::uint64_t bytes = 0;
};
// "made by the program", "idx", "cifar", ...
std::string FormatOf(const DataRequest& request);
// Empty where the program makes the data itself. Throws Error for a file that does not exist.
std::vector<DataFile> FilesOf(const DataRequest& request);

// Reads and checks. Throws Error with one sentence: what is wrong, where, and what to do.
DataSplits OpenData(const DataRequest& request);
// Records to apply a model to: the public test set of a known name, or all records of a file.
// Labels may be absent (an undefined tensor), and no rows are dropped to cap those of a user.
Dataset OpenForPrediction(const DataRequest& request);

}  // namespace sordino

#endif  // SORDINO_DATA_CATALOG_H_
