// The folder that a training run leaves.
//
//   config.toml                everything that was set; running it again runs the same thing
//   script/, vocabulary.txt    copies of what the model needs beside its weights (run_inputs.h)
//   SHA256SUMS                 hashes of these
//   metrics.jsonl              a line for each evaluation on the public test set
//   model.safetensors          the weights
//   statement.txt              what was guaranteed, in words
//   event.txt, record.json     the same as data, for `sordino account` and for registries
//   predictions.json           confusion matrix and examples of a public test set
//   accuracy-and-epsilon.svg   a picture of metrics.jsonl
//   audit.json, audit.svg      what the canaries of an audited run gave away (run_audit.h)
//   ledger.db                  what was charged, unless a ledger was named
//   checkpoints/               what a run is resumed from, while it has not ended
//   .lock                      while a process writes here
//
// Files are written beside their place and moved there, so a crash leaves none of them half
// written; metrics.jsonl grows by whole lines. Nothing here depends on the private records other
// than through the noised gradients.
#ifndef SORDINO_RUNS_RUN_FOLDER_H_
#define SORDINO_RUNS_RUN_FOLDER_H_

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
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/runs/statement.h"
#include "sordino/runs/train_config.h"
#include "sordino/training/classification.h"

namespace sordino {

// Where the run goes: --out, or runs/<date-time>-<data>-<model> below the current folder, with a
// number after it where that is taken. Throws Error when --out holds anything already.
std::filesystem::path ChooseRunFolder(const TrainConfig& config, std::time_t now);

struct MetricsRow {
  bool is_private = true;
  std::int64_t step = 0;
  std::optional<Interval> epsilon;  // absent without privacy
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  std::optional<PredictionError> test_error;
  double seconds = 0;  // since training began
};
std::string MetricsLine(const MetricsRow& row);  // one JSON object, no line break

// The rows of the run in this folder; the lower end of an epsilon is not in the file, and is 0.
// Lines that are not whole are left out; no row where there is no file.
std::vector<MetricsRow> ReadMetrics(const std::filesystem::path& folder);

// The right to write into a folder, of one process and one object at a time: a lock that the
// operating system takes back when the process ends, however it ends.
class FolderLock {
 public:
  // Throws Error while another holds it.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

// Holds the lock of the folder for as long as it lives.
class RunFolder {
 public:
  // Makes the folder. Throws Error where it cannot be made, holds a run already, or is in use.
  explicit RunFolder(const std::filesystem::path& folder);
  // The folder of a run that is resumed after `last_step`: rows of later steps are taken out of
  // metrics.jsonl, and new ones are written after what is left. Throws Error where the folder is
  // not that of a run, or is in use.
  static RunFolder Reopen(std::filesystem::path folder, std::int64_t last_step);

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, std::string_view content) const;
  void AppendMetrics(const MetricsRow& row);

 private:
  RunFolder(std::filesystem::path folder, FolderLock lock);
  void OpenMetrics();

  std::filesystem::path path_;
  FolderLock lock_;
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
  std::string inputs;     // CheckInputs of run_inputs.h
};
std::map<std::string, std::string> ModelMetadata(const ModelRecord& record);
// The declaration that ModelMetadata wrote: kind, shape, classes and their names or target,
// vocabulary, normalisation. Throws Error with the name of the file.
DatasetDeclaration DeclarationFromMetadata(const std::map<std::string, std::string>& metadata,
                                           const std::string& file);

// Recognises names and values of weights again.
std::string WeightsHash(const std::vector<std::pair<std::string, at::Tensor>>& tensors);
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
// Throws Error where the weights, or a file that decides what they predict, were changed.
TrainedRun OpenRun(const std::filesystem::path& folder, c10::Device device);

}  // namespace sordino

#endif  // SORDINO_RUNS_RUN_FOLDER_H_
