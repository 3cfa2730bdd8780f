// The folder that a training run leaves.
//
//   config.toml                everything that was set; running it again runs the same thing
//   metrics.jsonl              a line for each look at the public test set
//   model.safetensors          the weights
//   statement.txt              what was guaranteed, in words
//   event.txt                  the same as data, for `sordino account --event`
//   accuracy-and-epsilon.svg   a picture of metrics.jsonl
//
// Files are written beside their place and moved there, so a crash leaves none of them half
// written; metrics.jsonl grows by whole lines. Nothing here depends on the private records other
// than through the noised gradients.
#ifndef SORDINO_TRAINING_RUN_FOLDER_H_
#define SORDINO_TRAINING_RUN_FOLDER_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/training/statement.h"
#include "sordino/training/train_config.h"

namespace sordino {

// Writes beside the place and moves it there. Throws std::runtime_error where that fails.
void WriteWholeFile(const std::filesystem::path& file, std::string_view content);

// In hex.
std::string Sha256(std::string_view text);

// Where the run goes: --out, or runs/<date-time>-<data>-<model> below the current folder, with a
// number behind it where that is taken. Throws Error when --out holds anything already.
std::filesystem::path ChooseRunFolder(const TrainConfig& config, std::time_t now);

struct MetricsRow {
  bool is_private = true;
  std::int64_t step = 0;
  std::optional<Interval> epsilon;  // absent without privacy
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  double seconds = 0;  // since training began
};
std::string MetricsLine(const MetricsRow& row);  // one JSON object, no line break

class RunFolder {
 public:
  // Makes the folder. Throws Error where it cannot be made.
  explicit RunFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, std::string_view content) const;
  void AppendMetrics(const MetricsRow& row);

 private:
  std::filesystem::path path_;
  std::ofstream metrics_;
};

// What is known of a model beside its weights; written into the file of the weights.
struct ModelRecord {
  std::string name;
  DatasetDeclaration data;  // public: what the model takes and gives
  RunPrivacy privacy = RunPrivacy::kPrivate;
  Interval epsilon;
  double delta = 0;
  std::int64_t steps = 0;
  std::string statement;  // whose hash is written
};
std::map<std::string, std::string> ModelMetadata(const ModelRecord& record);
// The declaration that ModelMetadata wrote: kind, shape, classes and their names, vocabulary,
// normalisation. Throws Error with the name of the file.
DatasetDeclaration DeclarationFromMetadata(const std::map<std::string, std::string>& metadata,
                                           const std::string& file);

void SaveModel(const std::filesystem::path& file, const Model& model, const ModelRecord& record);

// Named and scripted models alike, with fresh weights.
std::unique_ptr<Model> MakeConfiguredModel(const TrainConfig& config, const ModelShape& shape,
                                           c10::Device device);

// A model from the folder of a run that ended.
struct TrainedRun {
  TrainConfig config;
  DatasetDeclaration data;
  std::unique_ptr<Model> model;  // in evaluation mode
  bool is_private = true;
};
TrainedRun OpenRun(const std::filesystem::path& folder, c10::Device device);

}  // namespace sordino

#endif  // SORDINO_TRAINING_RUN_FOLDER_H_
