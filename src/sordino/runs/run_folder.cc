#include "sordino/runs/run_folder.h"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/shallow_json.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/internal/script_network.h"
#include "sordino/runs/train_settings.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kConfigFile = "config.toml";
constexpr const char* kLockFile = ".lock";
constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kModelFile = "model.safetensors";

[[noreturn]] void FailToWrite(const std::filesystem::path& file, int error) {
  throw std::runtime_error(
      fmt::format("the file '{}' cannot be written: {}.", file.string(), std::strerror(error)));
}

// Letters, digits, dots and dashes: a part of a folder's name.
std::string Plain(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
    plain += kept ? c : '-';
  }
  return plain.substr(0, 60);
}

[[noreturn]] void FailToRead(const std::string& file, const std::string& key) {
  throw Error(fmt::format(
      "the file '{}' does not say its '{}'; give the folder of a run of 'sordino train'.", file,
      key));
}

// The JSON value of a key; null where there is none.
Json MetadataValue(const std::map<std::string, std::string>& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  return entry == metadata.end() ? Json(nullptr) : Json::parse(entry->second, kShallowJson, false);
}

std::int64_t WholeOf(const std::map<std::string, std::string>& metadata, const std::string& key,
                     const std::string& file) {
  const Json value = MetadataValue(metadata, key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) FailToRead(file, key);
  return value.get<std::int64_t>();
}

template <typename Entry>
std::vector<Entry> ListOf(const std::map<std::string, std::string>& metadata,
                          const std::string& key, const std::string& file) {
  const Json value = MetadataValue(metadata, key);
  const auto fits = [](const Json& entry) {
    return std::is_same_v<Entry, std::string> ? entry.is_string()
           : std::is_same_v<Entry, double>    ? entry.is_number()
                                              : entry.is_number_integer();
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), fits)) FailToRead(file, key);
  return value.get<std::vector<Entry>>();
}

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void LoadParameters(const Model& model, const SafetensorsFile& saved, const std::string& file) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> tensors(saved.tensors.begin(), saved.tensors.end());
  for (auto [name, parameter] : model.Parameters()) {
    const auto entry = tensors.find(name);
    if (entry == tensors.end() || entry->second.sizes() != parameter.sizes()) {
      throw Error(fmt::format(
          "the file '{}' does not fit the model of its folder: the parameter '{}' is {}.", file,
          name, entry == tensors.end() ? "missing" : "of another shape"));
    }
    parameter.copy_(entry->second);
  }
}

void CheckHashes(const SafetensorsFile& saved, const std::filesystem::path& folder,
                 const std::filesystem::path& file) {
  const auto differs = [&](const std::string& key, const std::string& found) {
    const auto entry = saved.metadata.find(key);
    if (entry == saved.metadata.end()) FailToRead(file.string(), key);
    return entry->second != found;
  };
  if (differs("weights_sha256", WeightsHash(saved.tensors))) {
    throw Error(fmt::format("the weights in '{}' were changed; put the file back, or train again.",
                            file.string()));
  }
  if (differs("inputs_sha256", CheckInputs(folder))) {
    throw Error(fmt::format(
        "the files in '{}' are those of another run than its {}; put them back, or train again.",
        folder.string(), kModelFile));
  }
}

std::optional<double> NumberOf(const Json& row, const char* key) {
  const auto value = row.find(key);
  if (value == row.end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<MetricsRow> ParseMetricsLine(const std::string& line) {
  const Json json = Json::parse(line, kShallowJson, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto is_private = json.find("private");
  const auto step = json.find("step");
  const std::optional<double> seconds = NumberOf(json, "seconds");
  if (is_private == json.end() || !is_private->is_boolean() || step == json.end() ||
      !step->is_number_integer() || !seconds) {
    return std::nullopt;
  }
  MetricsRow row;
  row.is_private = is_private->get<bool>();
  row.step = step->get<std::int64_t>();
  if (const auto epsilon = NumberOf(json, "epsilon")) row.epsilon = {0, *epsilon};
  row.test_accuracy = NumberOf(json, "test_accuracy");
  row.test_loss = NumberOf(json, "test_loss");
  const std::optional<double> squared = NumberOf(json, "test_mean_squared_error");
  const std::optional<double> absolute = NumberOf(json, "test_mean_absolute_error");
  if (squared && absolute) row.test_error = {*squared, *absolute};
  row.seconds = *seconds;
  return row;
}

// A crash may leave a part of a line at the end: it has no line break, or does not parse.
template <typename Visit>
void ForEachRow(const std::filesystem::path& file, const Visit& visit) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    if (const auto row = ParseMetricsLine(line)) visit(*row, line);
  }
}

FolderLock LockOfNew(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    ThrowFileError(error.value(),
                   fmt::format("the run folder '{}' cannot be made: {}; name another with --out.",
                               folder.string(), error.message()));
  }
  return FolderLock(folder);
}

}  // namespace

std::filesystem::path ChooseRunFolder(const TrainConfig& config, std::time_t now) {
  std::error_code ignored;
  if (!config.run.out.empty()) {
    std::filesystem::path out = config.run.out;
    const bool there = std::filesystem::exists(out, ignored);
    if (there && !std::filesystem::is_directory(out, ignored)) {
      throw Error(fmt::format("--out is '{}', which is a file; name a new folder.", out.string()));
    }
    if (there && !std::filesystem::is_empty(out, ignored)) {
      throw Error(fmt::format(
          "--out is '{}', which already holds something; a run is never overwritten, so name a new "
          "folder.",
          out.string()));
    }
    return out;
  }
  std::tm parts{};
  gmtime_r(&now, &parts);
  const std::string data = Plain(std::filesystem::path(config.data.source).filename().string());
  const std::string name =
      fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}-{}-{}", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                  data.empty() ? "data" : data, Plain(config.ModelName()));
  std::filesystem::path folder = std::filesystem::path("runs") / name;
  for (int i = 2; std::filesystem::exists(folder, ignored); ++i) {
    folder = std::filesystem::path("runs") / fmt::format("{}-{}", name, i);
  }
  return folder;
}

std::string MetricsLine(const MetricsRow& row) {
  Json json;
  json["private"] = row.is_private;
  json["step"] = row.step;
  json["epsilon"] = row.epsilon ? NumberOrNull(row.epsilon->upper) : Json(nullptr);
  json["test_accuracy"] = row.test_accuracy ? NumberOrNull(*row.test_accuracy) : Json(nullptr);
  json["test_loss"] = row.test_loss ? NumberOrNull(*row.test_loss) : Json(nullptr);
  if (row.test_error) {
    json["test_mean_squared_error"] = NumberOrNull(row.test_error->mean_squared);
    json["test_mean_absolute_error"] = NumberOrNull(row.test_error->mean_absolute);
  }
  json["seconds"] = row.seconds;
  return json.dump();
}

std::vector<MetricsRow> ReadMetrics(const std::filesystem::path& folder) {
  std::vector<MetricsRow> rows;
  ForEachRow(folder / kMetricsFile,
             [&](const MetricsRow& row, const std::string&) { rows.push_back(row); });
  return rows;
}

// The file is removed at the end, so whoever got the lock of one that is no longer there tries
// again: the lock of a name is that of the file which stands under it.
FolderLock::FolderLock(const std::filesystem::path& folder) : file_(folder / kLockFile) {
  while (true) {
    const int descriptor = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      const int error = errno;
      ThrowFileError(error,
                     fmt::format("the run folder '{}' cannot be written to: {}; name another.",
                                 folder.string(), std::strerror(error)));
    }
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      close(descriptor);
      if (error == EINTR) continue;
      if (error != EWOULDBLOCK) FailToWrite(file_, error);
      throw Error(
          fmt::format("the folder '{}' is in use by another run; wait for it to end, or name "
                      "another folder.",
                      folder.string()));
    }
    struct stat held {};
    struct stat named {};
    if (fstat(descriptor, &held) == 0 && stat(file_.c_str(), &named) == 0 &&
        held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
      descriptor_ = descriptor;
      return;
    }
    close(descriptor);
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  unlink(file_.c_str());
  close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunFolder::RunFolder(std::filesystem::path folder, FolderLock lock)
    : path_(std::move(folder)), lock_(std::move(lock)) {}

RunFolder::RunFolder(const std::filesystem::path& folder) : RunFolder(folder, LockOfNew(folder)) {
  std::error_code ignored;
  if (std::filesystem::exists(path_ / kMetricsFile, ignored)) {
    throw Error(
        fmt::format("the folder '{}' holds a run already, and a run is never overwritten; name a "
                    "new folder.",
                    path_.string()));
  }
  OpenMetrics();
}

RunFolder RunFolder::Reopen(std::filesystem::path folder, std::int64_t last_step) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(folder / kConfigFile, ignored)) {
    throw Error(fmt::format(
        "the folder '{}' has no {}; give the folder of a run of 'sordino train' to resume.",
        folder.string(), kConfigFile));
  }
  FolderLock lock(folder);
  RunFolder run(std::move(folder), std::move(lock));
  // Drafts of a process that was killed while it wrote; nobody else writes here now.
  for (const auto& entry : std::filesystem::directory_iterator(run.path_)) {
    if (entry.path().extension() == ".tmp") std::filesystem::remove(entry.path(), ignored);
  }
  std::string kept;
  ForEachRow(run.path_ / kMetricsFile, [&](const MetricsRow& row, const std::string& line) {
    if (row.step <= last_step) kept += line + '\n';
  });
  WriteWholeFile(run.path_ / kMetricsFile, kept);
  run.OpenMetrics();
  return run;
}

void RunFolder::OpenMetrics() {
  metrics_.open(path_ / kMetricsFile, std::ios::binary | std::ios::app);
  if (!metrics_) {
    throw Error(fmt::format("the run folder '{}' cannot be written to; name another with --out.",
                            path_.string()));
  }
}

void RunFolder::Write(const std::string& name, std::string_view content) const {
  WriteWholeFile(path_ / name, content);
}

void RunFolder::AppendMetrics(const MetricsRow& row) {
  metrics_ << MetricsLine(row) + '\n' << std::flush;
  if (!metrics_) FailToWrite(path_ / kMetricsFile, errno);
}

std::map<std::string, std::string> ModelMetadata(const ModelRecord& record) {
  const DatasetDeclaration& data = record.data;
  std::map<std::string, std::string> metadata = {
      {"class_names", Json(data.class_names).dump(-1, ' ', false, Json::error_handler_t::replace)},
      {"classes", fmt::format("{}", data.classes)},
      {"deviation", Json(data.normalisation.deviation).dump()},
      {"format", "sordino"},
      {"input", Json(data.shape).dump()},
      {"inputs_sha256", record.inputs},
      {"kind", fmt::format("{}", static_cast<int>(data.kind))},
      {"mean", Json(data.normalisation.mean).dump()},
      {"model", record.name},
      {"private", record.privacy == RunPrivacy::kPrivate ? "yes" : "no"},
      {"statement_sha256", Sha256Hex(record.statement)},
      {"steps", fmt::format("{}", record.steps)},
      {"vocabulary", fmt::format("{}", data.vocabulary)},
  };
  if (data.target) {
    const Json target = {
        {"name", data.target->name}, {"low", data.target->low}, {"high", data.target->high}};
    metadata["target"] = target.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (record.privacy == RunPrivacy::kPrivate) {
    metadata["epsilon"] = fmt::format("{}", record.epsilon.upper);
    metadata["delta"] = fmt::format("{}", record.delta);
  } else {
    metadata["NOT PRIVATE"] = NotPrivateWarning(record.privacy);  // sorts first
  }
  return metadata;
}

DatasetDeclaration DeclarationFromMetadata(const std::map<std::string, std::string>& metadata,
                                           const std::string& file) {
  DatasetDeclaration data;
  const std::int64_t kind = WholeOf(metadata, "kind", file);
  if (kind > static_cast<std::int64_t>(InputKind::kTokens)) FailToRead(file, "kind");
  data.kind = static_cast<InputKind>(kind);
  data.shape = ListOf<std::int64_t>(metadata, "input", file);
  data.classes = WholeOf(metadata, "classes", file);
  data.class_names = ListOf<std::string>(metadata, "class_names", file);
  if (metadata.contains("target")) {
    const Json target = MetadataValue(metadata, "target");
    const bool whole = target.is_object() && target.contains("name") && target["name"].is_string();
    const std::optional<double> low = whole ? NumberOf(target, "low") : std::nullopt;
    const std::optional<double> high = whole ? NumberOf(target, "high") : std::nullopt;
    if (!low || !high || !(*low < *high)) FailToRead(file, "target");
    data.target = TargetBounds{target["name"].get<std::string>(), *low, *high};
  }
  data.vocabulary = WholeOf(metadata, "vocabulary", file);
  data.normalisation.mean = ListOf<double>(metadata, "mean", file);
  data.normalisation.deviation = ListOf<double>(metadata, "deviation", file);
  return data;
}

std::string WeightsHash(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.contiguous();
    text += fmt::format("{} {}\n",
                        Sha256Hex({static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()}),
                        name);
  }
  return Sha256Hex(text);
}

void SaveModel(const std::filesystem::path& file, const Model& model, const ModelRecord& record) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, parameter] : model.Parameters()) {
    tensors.emplace_back(name, parameter.detach().cpu().contiguous());
  }
  std::map<std::string, std::string> metadata = ModelMetadata(record);
  metadata["weights_sha256"] = WeightsHash(tensors);
  WriteSafetensors(file, tensors, metadata);
  SyncFolder(file.parent_path());
}

std::unique_ptr<Model> MakeConfiguredModel(const TrainConfig& config, const ModelShape& shape,
                                           c10::Device device) {
  const ModelOptions options = ModelOptionsOf(config);
  if (config.model.script.empty()) return MakeModel(config.model.name, shape, options, device);
  ModelOptions script_options = options;
  script_options.seed = 0;  // a script brings its weights along
  return OpenScriptNetwork(config.model.script, shape, script_options, device);
}

TrainedRun OpenRun(const std::filesystem::path& folder, c10::Device device) {
  std::error_code ignored;
  for (const char* name : {kConfigFile, kModelFile}) {
    if (!std::filesystem::exists(folder / name, ignored)) {
      throw Error(fmt::format(
          "--run is '{}', which has no {}; give the folder of a run of 'sordino train' that ended.",
          folder.string(), name));
    }
  }
  TrainedRun run;
  const std::filesystem::path file = folder / kModelFile;
  const SafetensorsFile saved = ReadSafetensors(file);
  CheckHashes(saved, folder, file);
  run.config = KeptConfig(folder);
  run.data = DeclarationFromMetadata(saved.metadata, file.string());
  const auto is_private = saved.metadata.find("private");
  run.is_private = is_private != saved.metadata.end() && is_private->second == "yes";
  // The file holds all weights, also those of a backbone that came from another file then.
  TrainConfig loaded = run.config;
  loaded.model.pretrained = file.string();
  loaded.model.freeze.clear();
  run.model = MakeConfiguredModel(loaded, ModelShapeOf(run.data), device);
  LoadParameters(*run.model, saved, file.string());
  run.model->Train(false);
  return run;
}

}  // namespace sordino
