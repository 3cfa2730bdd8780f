// What a request of catalog.h stands for: its format, its files, and its declaration.
#ifndef SORDINO_DATA_INTERNAL_DATA_SOURCE_H_
#define SORDINO_DATA_INTERNAL_DATA_SOURCE_H_

#include <filesystem>
#include <optional>
#include <vector>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"
#include "sordino/data/internal/data_format.h"

namespace sordino::internal {

struct DataSource {
  bool known = false;                  // a name of the catalogue
  const DataFormat* format = nullptr;  // none: the program makes the data
  SplitFiles train;                    // empty where the program makes them
  std::optional<SplitFiles> test;
  // Public files that are read besides: a list of words, or the text that a known set takes them
  // from.
  std::vector<std::filesystem::path> vocabulary;
  DatasetDeclaration declaration;
  DatasetReader read;  // none where the program makes the data
};

// Reads no private data. Throws Error for what is not known, not there, or not declared.
DataSource SourceOf(const DataRequest& request);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_DATA_SOURCE_H_
