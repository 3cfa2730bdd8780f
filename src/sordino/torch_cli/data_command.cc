#include "sordino/torch_cli/data_command.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/data/catalog.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/tables/public_sample.h"
#include "sordino/torch_cli/contact_sheet.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/train_options.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// No text begins so: a schema that was filled in is overwritten with --force only.
constexpr std::string_view kNever("\0", 1);
constexpr OutputKind kSchema = {.name = "a new schema", .ending = ".toml", .beginning = kNever};

struct CommandOptions {
  std::string source;
  TrainFlags data;
  std::optional<std::string> picture;
  std::optional<std::string> declare;
  PublicSources from;
  bool formats = false;
  bool declaration_only = false;
  bool force = false;
  bool json = false;
  bool show_private = false;
};

struct DataAnswer {
  DatasetDeclaration declaration;
  std::string format;
  std::vector<DataFile> files;
  std::vector<std::string> columns;
  bool read = false;
  std::optional<Dataset> test;
};

std::string_view KindName(InputKind kind) {
  switch (kind) {
    case InputKind::kImage:
      return "images";
    case InputKind::kFeatures:
      return "features";
    case InputKind::kTokens:
      return "tokens";
  }
  return "";
}

// Records of each class; asked for public sets only.
std::vector<std::int64_t> ClassCounts(const Dataset& test) {
  const at::Tensor counts = at::bincount(test.labels, {}, test.declaration.classes);
  const auto* values = counts.const_data_ptr<std::int64_t>();
  return {values, values + counts.numel()};
}

// By the ending of its name.
OutputKind PictureKind(const std::string& path) {
  for (const OutputKind& kind : {kPngPicture, kSvgPicture}) {
    if (path.ends_with(kind.ending)) return kind;
  }
  throw Error(fmt::format("--picture is '{}'; give a file that ends in .png or .svg.", path));
}

OutputFile PictureFile(const CommandOptions& options, const std::vector<DataFile>& files) {
  std::vector<std::filesystem::path> inputs;
  inputs.reserve(files.size());
  for (const DataFile& file : files) inputs.emplace_back(file.path);
  return {{"--picture", *options.picture, PictureKind(*options.picture), options.force}, inputs};
}

std::string Picture(const CommandOptions& options, const Dataset& test) {
  if (options.picture->ends_with(kPngPicture.ending)) return ContactSheetPng(test);
  return ContactSheetSvg(
      test, fmt::format("First images of the public test set of {}", test.declaration.name));
}

DataRequest RequestOf(const CommandOptions& options) {
  TrainConfig config;
  SetFromFlags(config, WithSource(options.data.Given(), options.source));
  return config.data;
}

DataAnswer Solve(const CommandOptions& options) {
  const DataRequest request = RequestOf(options);
  DataAnswer answer;
  answer.declaration = Declare(request);
  answer.format = FormatOf(request);
  answer.files = FilesOf(request);
  answer.columns = WithSchema(request).columns.declared;
  if (options.declaration_only) {
    if (options.picture) {
      throw Error(
          "--picture needs the test images, and --declaration reads none; leave one of "
          "them out.");
    }
    return answer;
  }
  std::optional<OutputFile> picture;
  if (options.picture) picture.emplace(PictureFile(options, answer.files));
  CheckTestFiles(request);
  answer.test = OpenData(request).test;
  answer.read = true;
  if (!picture) return answer;
  if (!answer.test) {
    throw Error(
        "--picture draws images of the public test set, and there is none; name one with "
        "--test.");
  }
  picture->Write(Picture(options, *answer.test));
  return answer;
}

Json NormalisationJson(const Normalisation& normalisation) {
  if (normalisation.mean.empty()) return nullptr;
  return {{"mean", normalisation.mean},
          {"deviation", normalisation.deviation},
          {"source", normalisation.source}};
}

Json TargetJson(const DatasetDeclaration& d) {
  if (!d.target) return nullptr;
  return {{"name", d.target->name}, {"low", d.target->low}, {"high", d.target->high}};
}

void PrintJson(const DataAnswer& answer) {
  const DatasetDeclaration& d = answer.declaration;
  const auto or_null = [](std::int64_t number) {
    return number > 0 ? Json(number) : Json(nullptr);
  };
  Json json = {{"schema", kJsonSchema},
               {"name", d.name},
               {"format", answer.format},
               {"kind", KindName(d.kind)},
               {"shape", d.shape},
               {"classes", d.classes},
               {"class_names", d.class_names},
               {"target", TargetJson(d)},
               {"records", or_null(d.records)},
               {"rows_per_user", or_null(d.rows_per_user)},
               {"normalisation", NormalisationJson(d.normalisation)}};
  if (d.kind == InputKind::kTokens) {
    json["vocabulary"] = {{"ids", d.vocabulary}, {"source", d.vocabulary_source}};
  }
  if (!answer.columns.empty()) json["columns"] = answer.columns;
  json["files"] = Json::array();
  for (const DataFile& file : answer.files) {
    json["files"].push_back({{"path", file.path},
                             {"role", file.role},
                             {"public", file.is_public},
                             {"bytes", file.is_public ? Json(file.bytes) : Json(nullptr)}});
  }
  json["keeps_to_declaration"] = answer.read ? Json(true) : Json(nullptr);
  json["test"] = nullptr;
  if (answer.test) {
    json["test"] = {{"records", answer.test->size()}};
    if (!d.target) json["test"]["class_counts"] = ClassCounts(*answer.test);
  }
  PrintReport(json);
}

std::string ClassesText(const DatasetDeclaration& d) {
  if (d.target) {
    return fmt::format("none: {} is a number from {:g} to {:g}", d.target->name, d.target->low,
                       d.target->high);
  }
  if (d.class_names.empty()) return fmt::format("{}: 0 to {}", d.classes, d.classes - 1);
  constexpr std::size_t kMaxNames = 20;
  if (d.class_names.size() > kMaxNames) return fmt::format("{} with declared names", d.classes);
  return fmt::format("{}: {}", d.classes, fmt::join(d.class_names, ", "));
}

std::string NormalisationText(const DatasetDeclaration& d) {
  const Normalisation& n = d.normalisation;
  if (d.kind == InputKind::kTokens) return "none: tokens";
  if (n.mean.empty()) {
    return d.kind == InputKind::kImage ? "pixels divided by 255" : "none";
  }
  return fmt::format("mean {}, deviation {} ({})", fmt::join(n.mean, ", "),
                     fmt::join(n.deviation, ", "), n.source);
}

std::string BytesText(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.0f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

void PrintText(const DataAnswer& answer, const std::optional<std::string>& picture) {
  const DatasetDeclaration& d = answer.declaration;
  std::vector<std::vector<std::string>> rows = {
      {"name", d.name},
      {"format", answer.format},
      {"an example", fmt::format("{} of shape {}", KindName(d.kind), fmt::join(d.shape, " x "))},
      {"classes", ClassesText(d)},
      {"training records", d.records > 0 ? fmt::format("{}, a declared public constant", d.records)
                                         : "not declared: their number is private"},
      {"normalisation", NormalisationText(d)}};
  if (d.kind == InputKind::kTokens) {
    rows.push_back({"vocabulary", fmt::format("{} ids: {}", d.vocabulary, d.vocabulary_source)});
  }
  if (d.rows_per_user > 0) {
    rows.push_back({"privacy unit", fmt::format("a user with at most {} rows", d.rows_per_user)});
  }
  for (const std::string& column : answer.columns) rows.push_back({"column", column});
  std::string text = AlignedTable(rows, 1);
  if (!answer.files.empty()) {
    text += '\n';
    rows = {{"", "stored", "file"}};
    for (const DataFile& file : answer.files) {
      rows.push_back({fmt::format("{} {}", file.is_public ? "public" : "private", file.role),
                      file.is_public ? BytesText(file.bytes) : "-", file.path});
    }
    text += AlignedTable(rows, 2);
  }
  if (answer.test) {
    text += fmt::format("\nThe public test set has {} records", answer.test->size());
    text += d.target ? std::string(".\n")
                     : fmt::format("; by class: {}.\n", fmt::join(ClassCounts(*answer.test), ", "));
  }
  if (answer.read) {
    text +=
        "\nAll records keep to the declaration. Nothing else about the training records is "
        "shown.\n";
  }
  if (picture) text += fmt::format("The first test images are in {}.\n", *picture);
  std::cout << ShownLines(text);
}

// What was said about the layout of the table holds for the sample.
PublicSources SourcesOf(const CommandOptions& options, const DataRequest& request) {
  PublicSources sources = options.from;
  KnownLayout& layout = sources.layout;
  if (!request.encoding.empty()) layout.encoding = ParseEncoding(request.encoding);
  if (!request.delimiter.empty()) layout.delimiter = ParseDelimiter(request.delimiter);
  if (!request.quote.empty()) layout.quote = ParseQuote(request.quote);
  if (request.no_header) layout.header = false;
  return sources;
}

Json ColumnsJson(std::span<const DraftColumn> columns) {
  Json list = Json::array();
  for (const DraftColumn& column : columns) {
    list.push_back({{"name", column.name},
                    {"declaration", column.declared ? Json(ColumnText(*column.declared)) : nullptr},
                    {"note", column.note.empty() ? Json(nullptr) : Json(column.note)}});
  }
  return list;
}

// `columns` are those of public data; null where the names come from the table, whose first line
// may be a record.
void PrintDeclared(const CommandOptions& options, const Json& columns, const std::string& text) {
  if (!options.json) {
    std::cout << ShownLines(text);
    return;
  }
  Json report = NewReport();
  report["file"] = *options.declare;
  report["columns"] = columns;
  PrintReport(report);
}

// A schema from public data; the table that it is for is not read, and need not be named.
void WriteFromPublic(const CommandOptions& options, const DataRequest& request) {
  std::vector<std::filesystem::path> inputs;
  if (!request.source.empty()) inputs.emplace_back(request.source);
  for (const std::string& file : {options.from.sample, options.from.codebook}) {
    if (file.empty()) continue;
    CheckPublicSample(file, request.source);
    inputs.emplace_back(file);
  }
  const OutputFile file({"--declare", *options.declare, kSchema, options.force}, inputs);
  const PublicSchema schema = SchemaFromPublic(SourcesOf(options, request));
  file.Write(schema.text);
  std::string text = fmt::format(
      "The columns are declared in {} as the public data show them; go through it, and see with\n"
      "sordino data {} --schema {} whether the table keeps to it.\n",
      *options.declare, request.source.empty() ? "TABLE" : request.source, *options.declare);
  for (const DraftColumn& column : schema.columns) {
    if (column.declared) continue;
    text += fmt::format("  left open: {}{}{}\n", column.name, column.note.empty() ? "" : ": ",
                        column.note);
  }
  PrintDeclared(options, ColumnsJson(schema.columns), text);
}

// A schema to fill in. Its only input is the first line of the table.
void WriteTemplate(const CommandOptions& options) {
  const DataRequest request = RequestOf(options);
  if (!options.from.sample.empty() || !options.from.codebook.empty()) {
    return WriteFromPublic(options, request);
  }
  if (!options.from.predicted.empty()) {
    throw Error(
        "--predicts needs a --public-sample or a --codebook, which the values or bounds of the "
        "column come from.");
  }
  const std::vector<std::filesystem::path> inputs = {request.source};
  const OutputFile file({"--declare", *options.declare, kSchema, options.force}, inputs);
  file.Write(SchemaTemplateOf(request));
  PrintDeclared(
      options, nullptr,
      fmt::format("The names of the columns are in {}; write the kind of each that is used.\n",
                  *options.declare));
}

void PrintFormats(bool json) {
  if (json) {
    Json list = Json::array();
    for (const DataFormatFacts& format : KnownDataFormats()) {
      list.push_back({{"name", format.name}, {"files", format.help}, {"settings", format.takes}});
    }
    Json report = NewReport();
    report["formats"] = list;
    PrintReport(report);
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"format", "files", "flags"}};
  for (const DataFormatFacts& format : KnownDataFormats()) {
    rows.push_back({std::string(format.name), std::string(format.help),
                    fmt::format("--{}", fmt::join(format.takes, " --"))});
  }
  std::cout << AlignedTable(rows, 1);
}

void Run(const CommandOptions& options) {
  if (options.formats) return PrintFormats(options.json);
  if (options.declare) return WriteTemplate(options);
  if (!(options.from.sample + options.from.codebook + options.from.predicted).empty()) {
    throw Error(
        "--public-sample, --codebook and --predicts make a schema; say with --declare FILE where "
        "to "
        "write it.");
  }
  const DataAnswer answer = Solve(options);
  if (options.json) {
    PrintJson(answer);
  } else {
    PrintText(answer, options.picture);
  }
}

}  // namespace

void AddDataCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", TorchCommandSummary("data"));
  const auto options = std::make_shared<CommandOptions>();
  CommandOptions& o = *options;
  command
      ->add_option("source", o.source,
                   fmt::format("{}; or a file or folder", fmt::join(DatasetNames(), ", ")))
      ->type_name("NAME|FILE");
  o.data.AddTo(*command, [](const Setting& setting) { return setting.section == "data"; });
  command->add_flag("--formats", o.formats, "List the data formats and the flags that each takes");
  command
      ->add_option(
          "--declare", o.declare,
          "Write a schema file to fill in, with the names of a table's columns and nothing "
          "of its rows")
      ->type_name("FILE");
  command
      ->add_option("--public-sample", o.from.sample,
                   "With --declare: read kinds, bounds, values and layout off this public table")
      ->type_name("FILE");
  command
      ->add_option("--codebook", o.from.codebook,
                   "With --declare: likewise, from a table with a row for each column")
      ->type_name("FILE");
  command
      ->add_option("--predicts", o.from.predicted,
                   "With these: the column that a model shall tell, the label or target")
      ->type_name("COLUMN");
  command->add_flag("--declaration", o.declaration_only,
                    "Show the declaration and read no records");
  command
      ->add_option("--picture", o.picture, "Draw the first public test images to this PNG or SVG")
      ->type_name("FILE");
  AddForceFlag(*command, o.force);
  command->add_flag("--json", o.json, "One JSON object on standard output");
  AddShowPrivate(*command, o.show_private);
  command->footer(
      "Examples:\n"
      "  sordino data digits --picture digits.png\n"
      "  sordino data patients.csv --columns 'age:numeric:0:120' 'sick:label:no|yes'\n"
      "  sordino data patients.csv --declare schema.toml\n"
      "  sordino data patients.csv --declare schema.toml --public-sample older.csv");
  command->callback([options] { ReportErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
