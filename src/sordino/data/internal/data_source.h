// What a request of catalog.h stands for: its format, its files, and its declaration.
#ifndef SORDINO_DATA_INTERNAL_DATA_SOURCE_H_
#define SORDINO_DATA_INTERNAL_DATA_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"
#include "sordino/data/table_reader.h"

namespace sordino::internal {

enum class DataFormat : std::uint8_t { kMade, kIdx, kCifar, kNpy, kCsv, kTsv, kImages, kText };

std::string_view FormatName(DataFormat format);

struct SplitFiles {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path labels;  // empty: with the inputs, or none
};

struct DataSource {
  bool known = false;  // a name of the catalogue
  DataFormat format = DataFormat::kMade;
  SplitFiles train;  // empty for kMade
  std::optional<SplitFiles> test;
  std::vector<TableColumn> columns;
  std::vector<std::filesystem::path> vocabulary;
  bool vocabulary_is_text = false;  // public sentences instead of a list of words
  DatasetDeclaration declaration;   // without the size of a vocabulary
};

// Reads no data. Throws Error for what is not known, not there, or not declared.
DataSource SourceOf(const DataRequest& request);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_DATA_SOURCE_H_
