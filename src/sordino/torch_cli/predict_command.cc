#include "sordino/torch_cli/predict_command.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/csv_field.h"
#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/base/quantity.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/data/batch_loader.h"
#include "sordino/data/format_settings.h"
#include "sordino/runs/missing_settings.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/torch_cli/class_quality_report.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/run_data.h"
#include "sordino/torch_cli/train_options.h"
#include "sordino/training/classification.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kChunk = 500;    // records in one pass
constexpr std::int64_t kShares = 1000;  // that progress is shown in: the number is private
constexpr std::string_view kClassHeader = "class,probability";
constexpr std::string_view kNumberHeader = "prediction";

struct PredictOptions {
  std::string model;  // a place on the line, as --run
  std::string source;
  std::string run;
  std::string out;
  std::string device = "cpu";
  bool probabilities = false;
  std::optional<double> threshold;
  std::string id;
  std::string names;  // the heading of the names of the records; empty: they have none
  bool public_labels = false;
  bool force = false;
  bool json = false;
  bool show_private = false;
  TrainFlags data;
};

struct Prediction {
  std::int64_t label = 0;
  std::vector<double> probabilities = {};  // of all classes; empty where a number is predicted
  double number = 0;

  double probability() const { return probabilities[static_cast<std::size_t>(label)]; }
};

std::vector<Prediction> Predict(const TrainedRun& run, const Dataset& data, c10::Device device) {
  const at::NoGradGuard no_grad;
  const std::int64_t records = data.inputs.size(0);
  Progress progress("predict", kShares);
  std::vector<Prediction> predictions;
  for (std::int64_t begin = 0; begin < records; begin += kChunk) {
    const std::int64_t end = std::min(records, begin + kChunk);
    const at::Tensor inputs =
        Normalise(data.declaration, data.inputs.slice(0, begin, end)).to(device);
    const at::Tensor outputs = run.model->Forward(run.model->Features(inputs));
    if (run.data.target) {
      const at::Tensor numbers = outputs.to(at::kCPU, at::kDouble).contiguous();
      for (std::int64_t i = 0; i < end - begin; ++i) {
        predictions.push_back(
            {.label = 0, .number = run.data.target->Unscaled(numbers.const_data_ptr<double>()[i])});
      }
      progress.Update(static_cast<std::uint64_t>(kShares * end / records));
      continue;
    }
    const at::Tensor chances = at::softmax(outputs, 1).to(at::kCPU, at::kDouble).contiguous();
    const std::int64_t classes = chances.size(1);
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double* const row = chances.const_data_ptr<double>() + i * classes;
      predictions.push_back({.label = std::max_element(row, row + classes) - row,
                             .probabilities = {row, row + classes}});
    }
    progress.Update(static_cast<std::uint64_t>(kShares * end / records));
  }
  progress.Update(kShares);
  progress.Finish();
  return predictions;
}

std::string ClassName(const DatasetDeclaration& declaration, std::int64_t label) {
  const auto index = static_cast<std::size_t>(label);
  return index < declaration.class_names.size() ? declaration.class_names[index]
                                                : fmt::format("{}", label);
}

// "id,class,probability": the beginning of every file of predictions.
std::string Header(const PredictOptions& options, const DatasetDeclaration& declaration) {
  return (options.names.empty() ? "" : CsvField(options.names) + ',') +
         std::string(declaration.target ? kNumberHeader : kClassHeader);
}

std::string Csv(const PredictOptions& options, const Dataset& data,
                const std::vector<Prediction>& predictions) {
  const bool numbers = data.declaration.target.has_value();
  std::string csv = Header(options, data.declaration);
  if (options.probabilities) {
    for (std::int64_t k = 0; k < data.declaration.classes; ++k) {
      csv += ',' + CsvField(ClassName(data.declaration, k));
    }
  }
  csv += '\n';
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& prediction = predictions[i];
    if (!data.ids.empty()) csv += CsvField(data.ids[i]) + ',';
    if (numbers) {
      csv += fmt::format("{:.6g}\n", prediction.number);
      continue;
    }
    csv += fmt::format("{},{:.6g}", CsvField(ClassName(data.declaration, prediction.label)),
                       prediction.probability());
    if (options.probabilities) {
      for (const double p : prediction.probabilities) csv += fmt::format(",{:.6g}", p);
    }
    csv += '\n';
  }
  return csv;
}

Json PredictionJson(const PredictOptions& options, const Dataset& data,
                    const Prediction& prediction, std::size_t index) {
  Json json;
  if (!data.ids.empty()) json[options.id.empty() ? options.names : "id"] = data.ids[index];
  if (data.declaration.target) {
    json["prediction"] = NumberJson(prediction.number);
    return json;
  }
  json["class"] = ClassName(data.declaration, prediction.label);
  json["probability"] = prediction.probability();
  if (options.probabilities) json["probabilities"] = prediction.probabilities;
  return json;
}

// Of records whose labels were said to be public; nothing without records.
struct Quality {
  std::optional<ClassQuality> classes = std::nullopt;
  std::optional<PredictionError> error = std::nullopt;
};

PredictionError ErrorOf(const Dataset& data, const std::vector<Prediction>& predictions) {
  PredictionError error;
  const TargetBounds& target = *data.declaration.target;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double truth = target.Unscaled(data.labels[static_cast<std::int64_t>(i)].item<double>());
    const double gap = predictions[i].number - truth;
    error.mean_squared += gap * gap / static_cast<double>(predictions.size());
    error.mean_absolute += std::abs(gap) / static_cast<double>(predictions.size());
  }
  return error;
}

double ShareOfRight(const Dataset& data, const std::vector<Prediction>& predictions) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const auto label = data.labels[static_cast<std::int64_t>(i)].item<std::int64_t>();
    right += predictions[i].label == label ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(predictions.size());
}

Quality QualityOf(const PredictOptions& options, const Dataset& data,
                  const std::vector<Prediction>& predictions) {
  if (!options.public_labels) return {};
  if (!data.labels.defined()) {
    throw Error(
        "--public-labels is given and the data have no labels; leave it out, or give "
        "--labels.");
  }
  if (predictions.empty()) return {};
  if (data.declaration.target) return {.error = ErrorOf(data, predictions)};
  ClassQualityMeter meter;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    meter.Add(predictions[i].probabilities,
              data.labels[static_cast<std::int64_t>(i)].item<std::int64_t>());
  }
  Quality quality = {.classes = meter.Quality()};
  if (options.threshold) quality.classes->accuracy = ShareOfRight(data, predictions);
  return quality;
}

// With a threshold the second class is the one that is looked for.
void TakeThreshold(const std::optional<double>& threshold, const DatasetDeclaration& declaration,
                   std::vector<Prediction>& predictions) {
  if (!threshold) return;
  for (Prediction& prediction : predictions) {
    prediction.label = prediction.probabilities[1] >= *threshold ? 1 : 0;
  }
  std::cerr << fmt::format("sordino: the class is '{}' from a probability of {:g} on, else '{}'.\n",
                           ShownText(ClassName(declaration, 1)), *threshold,
                           ShownText(ClassName(declaration, 0)));
}

void CheckThreshold(const std::optional<double>& threshold, const DatasetDeclaration& declaration) {
  if (!threshold) return;
  if (declaration.target || declaration.classes != 2) {
    throw Error(fmt::format(
        "--threshold decides between two classes, and the model predicts {}; leave it out.",
        declaration.target ? std::string("a number")
                           : fmt::format("{} classes", declaration.classes)));
  }
  CheckRange("--threshold", *threshold, 0, false, 1, false);
}

void PrintJson(const PredictOptions& options, const TrainedRun& run, const Dataset& data,
               const std::vector<Prediction>& predictions, const Quality& quality) {
  Json json = NewReport();
  json["run"] = options.run;
  json["out"] = options.out.empty() ? Json(nullptr) : Json(options.out);
  json["records"] = predictions.size();
  json["accuracy"] = quality.classes ? Json(quality.classes->accuracy) : Json(nullptr);
  AddQuality(json, "", quality.classes);
  if (quality.error) {
    json["mean_squared_error"] = NumberJson(quality.error->mean_squared);
    json["mean_absolute_error"] = NumberJson(quality.error->mean_absolute);
  }
  json["private"] = run.is_private;
  if (options.out.empty()) {
    json["predictions"] = Json::array();
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      json["predictions"].push_back(PredictionJson(options, data, predictions[i], i));
    }
  }
  PrintReport(json, /*one_line=*/true);
}

OutputFile FileOfPredictions(const PredictOptions& options, const TrainedRun& run,
                             const DataRequest& request) {
  const std::filesystem::path folder = options.run;
  std::vector<std::filesystem::path> inputs = {folder / "config.toml", folder / "model.safetensors",
                                               run.config.model.script,
                                               run.config.model.pretrained};
  for (const DataFile& file : FilesOf(request)) inputs.emplace_back(file.path);
  const std::string header = Header(options, run.data);
  const OutputKind predictions = {
      .name = "a file of predictions", .ending = "", .beginning = header};
  return {{"--out", options.out, predictions, options.force}, inputs};
}

bool IsRun(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / "config.toml", ignored);
}

// `predict MODEL DATA`; the old spellings --run and --data take the place of either.
PredictOptions Named(PredictOptions options) {
  if (!options.run.empty() && !options.model.empty()) {
    if (!options.source.empty()) {
      throw Error(
          fmt::format("both '{}' and --run were given; name the model once.", options.model));
    }
    options.source = options.model;
  } else if (options.run.empty()) {
    options.run = options.model;
    if (!options.source.empty() && IsRun(options.source) && !IsRun(options.model)) {
      throw Error(fmt::format("the model comes first; write sordino predict {} {}.", options.source,
                              options.model));
    }
  }
  return options;
}

void RefuseMissing(const PredictOptions& options, const std::vector<GivenFlag>& given) {
  std::vector<MissingSetting> missing;
  if (options.run.empty()) {
    missing.push_back(
        {"the model", "--run runs/first", "the folder of a run of 'sordino train' or of a fit"});
  }
  TrainConfig asked;
  SetFromFlags(asked, given);
  if (asked.data.source.empty()) {
    missing.push_back({"the records", "--data new.csv", "a file, a folder or an image"});
  }
  if (!missing.empty()) throw Error(MissingSentence(missing, GivenLine()));
}

void Run(const PredictOptions& given) {
  PredictOptions options = Named(given);
  const std::vector<GivenFlag> flags = WithSource(options.data.Given(), options.source);
  RefuseMissing(options, flags);
  const c10::Device device = ParseDevice(options.device);
  const TrainedRun run = OpenRun(options.run, device);
  DataRequest request = RequestLike(
      run, flags, "there is nothing to predict; give --data with the file of the records.");
  request.id = options.id;
  options.names = RecordNames(request);
  CheckThreshold(options.threshold, run.data);
  if (options.public_labels && !run.config.run.non_private) {
    CheckPublicRecords(request, run.config.data);
  }
  std::optional<OutputFile> out;
  if (!options.out.empty()) out.emplace(FileOfPredictions(options, run, request));
  const Dataset data = OpenForPrediction(request);
  CheckRecordsFit(run, data);
  if (data.declaration.target && options.probabilities) {
    throw Error(
        "--probabilities are those of classes, and the model predicts a number; leave it out.");
  }
  if (!run.is_private)
    std::cerr << "sordino: NOT PRIVATE: the model was trained without privacy.\n";
  std::vector<Prediction> predictions = Predict(run, data, device);
  TakeThreshold(options.threshold, run.data, predictions);
  const Quality quality = QualityOf(options, data, predictions);
  if (out) out->Write(Csv(options, data, predictions));
  if (options.json) {
    PrintJson(options, run, data, predictions, quality);
    return;
  }
  if (!out) std::cout << Csv(options, data, predictions);
  if (quality.classes) {
    std::cerr << fmt::format("sordino: accuracy {:.2f}%, {}\n", 100 * quality.classes->accuracy,
                             QualityText(*quality.classes));
  }
  if (quality.error) {
    std::cerr << fmt::format("sordino: mean squared error {:.6g}, mean absolute error {:.6g}\n",
                             quality.error->mean_squared, quality.error->mean_absolute);
  }
}

}  // namespace

void AddPredictCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("predict", TorchCommandSummary("predict"));
  const auto options = std::make_shared<PredictOptions>();
  PredictOptions& o = *options;
  command->add_option("model", o.model, "The folder of a run of 'sordino train' or 'sordino fit'")
      ->type_name("FOLDER");
  command->add_option("source", o.source, "The records: a file, a folder or one image")
      ->type_name("NAME|FILE");
  command->add_option("--run", o.run, "The model, as in the first place")->type_name("FOLDER");
  command->add_option("--out", o.out, "Write the predictions to this CSV file")->type_name("FILE");
  command->add_flag("--probabilities", o.probabilities,
                    "The probabilities of all classes, in their order");
  command
      ->add_option("--threshold", o.threshold,
                   "Of two classes: the second one from this probability on; the likelier one if "
                   "left out")
      ->type_name("P");
  command->add_option("--id", o.id, "Of a table: a column that is written beside each prediction")
      ->type_name("COLUMN");
  command->add_flag("--public-labels", o.public_labels,
                    "The labels of these records are public: say how many are right");
  command->add_option("--device", o.device, "cpu, cuda or cuda:N")
      ->type_name("NAME")
      ->capture_default_str();
  AddForceFlag(*command, o.force);
  command->add_flag("--json", o.json, "One JSON object on standard output");
  AddShowPrivate(*command, o.show_private);
  o.data.AddTo(*command, [](const Setting& setting) {
    return setting.section == "data" && setting.key.rfind("test", 0) != 0;
  });
  command->footer(
      "Examples:\n  sordino predict runs/20260101-120000-digits-cnn-mnist new.npy --out "
      "predictions.csv\n"
      "  sordino predict wards visits.csv --probabilities --threshold 0.3\n"
      "  sordino predict cats photo.png\nWhat was declared about the data of the run holds here "
      "too; flags "
      "override it.");
  command->callback([options] { ReportErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
