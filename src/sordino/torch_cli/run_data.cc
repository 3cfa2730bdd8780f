#include "sordino/torch_cli/run_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "sordino/base/error.h"
#include "sordino/data/format_settings.h"

namespace sordino {

DataRequest RequestLike(const TrainedRun& run, const std::vector<GivenFlag>& flags,
                        const char* nothing_given) {
  TrainConfig asked;
  SetFromFlags(asked, flags);
  if (asked.data.source.empty()) {
    throw Error(nothing_given);
  }
  TrainConfig config;
  DataRequest& data = config.data;
  const DataRequest& then = run.config.data;
  // Tabs are in tables and in text; words tell which.
  if (run.data.kind == InputKind::kTokens && asked.data.vocabulary.empty()) {
    asked.data.vocabulary = then.vocabulary;
  }
  const auto takes = [&](std::string_view key) { return TakesSetting(asked.data, key); };
  if (takes("columns") && asked.data.schema.empty() && asked.data.columns.declared.empty()) {
    data.columns = then.columns;
    data.no_header = then.no_header;
    data.encoding = then.encoding;
    data.delimiter = then.delimiter;
    data.quote = then.quote;
    data.missing = then.missing;
    data.rows_per_user = then.rows_per_user;
  }
  if (takes("classes")) data.classes = run.data.classes;
  if (takes("resize")) data.resize = then.resize;
  if (takes("class-names")) data.class_names = run.data.class_names;
  if (takes("vocabulary")) data.vocabulary = then.vocabulary;
  if (takes("length") && run.data.kind == InputKind::kTokens) data.length = run.data.shape[0];
  const bool known = IsDatasetName(asked.data.source);
  // A known set has its own shape; CheckRecordsFit compares it.
  if (takes("shape") && !known && run.data.kind != InputKind::kTokens) data.shape = run.data.shape;
  if (run.data.kind != InputKind::kTokens) {
    data.mean = run.data.normalisation.mean;
    data.deviation = run.data.normalisation.deviation;
  }
  SetFromFlags(config, flags);
  return data;
}

void CheckRecordsFit(const TrainedRun& run, const Dataset& data) {
  const DatasetDeclaration& given = data.declaration;
  if (given.target.has_value() != run.data.target.has_value()) {
    throw Error(fmt::format(
        "the model predicts {}, and the columns declare {}; declare those of the run.",
        run.data.target ? "a number" : "a class", given.target ? "a target" : "a label"));
  }
  if (given.shape == run.data.shape && given.kind == run.data.kind &&
      given.vocabulary == run.data.vocabulary) {
    return;
  }
  throw Error(fmt::format(
      "the records have the shape {} and the model was trained on {}{}; give records of that kind.",
      fmt::join(given.shape, ","), fmt::join(run.data.shape, ","),
      given.shape == run.data.shape ? " of another kind or vocabulary" : ""));
}

}  // namespace sordino
