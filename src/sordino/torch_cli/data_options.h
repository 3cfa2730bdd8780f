// The flags that say which data a command works on and what was declared about them, shared by
// `sordino data`, `sordino train` and `sordino predict`.
#ifndef SORDINO_TORCH_CLI_DATA_OPTIONS_H_
#define SORDINO_TORCH_CLI_DATA_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "sordino/data/catalog.h"

namespace CLI {
class App;
}

namespace sordino {

// The flags as they were typed; parsing them here keeps every mistake a sentence of our own.
struct DataOptions {
  std::string source;  // --data
  std::string labels;
  std::string test;
  std::string test_labels;
  std::string format;
  std::vector<std::string> shape;
  std::optional<std::string> classes;
  std::vector<std::string> class_names;
  std::optional<std::string> records;
  std::vector<std::string> mean;
  std::vector<std::string> deviation;
  std::vector<std::string> columns;
  std::optional<std::string> rows_per_user;
  std::string vocabulary;
  std::optional<std::string> length;
};

// --data and the flags of a declaration.
void AddDataFlags(CLI::App& command, DataOptions& options);
// The same without --data, for a command whose data are named by a place on its line.
void AddDeclarationFlags(CLI::App& command, DataOptions& options);

// Throws Error for numbers that are none. Whether the fields belong together is for the catalogue
// to say.
DataRequest ToRequest(const DataOptions& options);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_DATA_OPTIONS_H_
