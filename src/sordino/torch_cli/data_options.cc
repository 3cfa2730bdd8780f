#include "sordino/torch_cli/data_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/cli/event_options.h"

namespace sordino {
namespace {

constexpr const char* kGroup = "Data";

std::int64_t Positive(std::string_view flag, std::string_view text) {
  const std::uint64_t value = ParseWhole(flag, text);
  if (value == 0) throw Error(fmt::format("{} is {}; give a whole number from 1.", flag, text));
  return static_cast<std::int64_t>(value);
}

std::int64_t PositiveOrAbsent(std::string_view flag, const std::optional<std::string>& text) {
  return text ? Positive(flag, *text) : 0;
}

std::vector<double> Reals(std::string_view flag, const std::vector<std::string>& texts) {
  std::vector<double> values;
  values.reserve(texts.size());
  for (const std::string& text : texts) values.push_back(ParseReal(flag, text));
  return values;
}

}  // namespace

void AddDataFlags(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data", options.source,
                  fmt::format("{}; or a file or folder with its declaration",
                              fmt::join(DatasetNames(), ", ")))
      ->type_name("NAME|FILE")
      ->group(kGroup);
  AddDeclarationFlags(command, options);
}

void AddDeclarationFlags(CLI::App& command, DataOptions& options) {
  DataOptions& o = options;
  const auto text = [&](const char* flag, auto& field, const char* type, const char* help) {
    return command.add_option(flag, field, help)->type_name(type)->group(kGroup);
  };
  const auto list = [&](const char* flag, std::vector<std::string>& field, const char* type,
                        const char* help) { text(flag, field, type, help)->delimiter(','); };
  text("--format", o.format, "NAME", "idx, cifar, csv, tsv, npy, images or text; else by the name");
  text("--labels", o.labels, "FILE", "Labels of idx and npy files");
  text("--test", o.test, "FILE", "A test set that is public");
  text("--test-labels", o.test_labels, "FILE", "Its labels");
  list("--shape", o.shape, "N,...", "Of one example: channels, height, width; or its features");
  text("--classes", o.classes, "N", "Number of classes");
  list("--class-names", o.class_names, "NAME,...", "Names of the classes, in their order");
  text("--records", o.records, "N", "Number of training records, where it is public");
  list("--mean", o.mean, "X,...", "Subtracted from each channel or feature");
  list("--deviation", o.deviation, "X,...", "Each channel or feature is divided by it");
  // Categories may hold commas, so a column is one argument.
  text("--columns", o.columns, "COLUMN",
       "Of a table: age:numeric:0:120 city:categorical:Bern|Basel sick:label:no|yes id:user");
  text("--rows-per-user", o.rows_per_user, "N", "Rows kept of each user, the first ones");
  text("--vocabulary", o.vocabulary, "FILE", "Of text: public words, one a line");
  text("--length", o.length, "N", "Of text: tokens of an example");
}

DataRequest ToRequest(const DataOptions& options) {
  DataRequest request;
  request.source = options.source;
  request.labels = options.labels;
  request.test = options.test;
  request.test_labels = options.test_labels;
  request.format = options.format;
  for (const std::string& size : options.shape) {
    request.shape.push_back(Positive("--shape", size));
  }
  request.classes = PositiveOrAbsent("--classes", options.classes);
  request.class_names = options.class_names;
  request.records = PositiveOrAbsent("--records", options.records);
  request.mean = Reals("--mean", options.mean);
  request.deviation = Reals("--deviation", options.deviation);
  request.columns.declared = options.columns;
  request.rows_per_user = PositiveOrAbsent("--rows-per-user", options.rows_per_user);
  request.vocabulary = options.vocabulary;
  request.length = PositiveOrAbsent("--length", options.length);
  return request;
}

}  // namespace sordino
