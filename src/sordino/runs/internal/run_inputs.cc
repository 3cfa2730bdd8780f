#include "sordino/runs/internal/run_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/data/catalog.h"
#include "sordino/data/vocabulary_source.h"
#include "sordino/runs/train_settings.h"
#include "sordino/schedules/schedule.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.toml";
constexpr const char* kScriptFolder = "script";
constexpr const char* kVocabulary = "vocabulary.txt";
constexpr const char* kSums = "SHA256SUMS";
constexpr std::uintmax_t kMaxCopyBytes = std::uintmax_t{64} << 20;
constexpr std::size_t kHashDigits = 64;

std::string ReadAll(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

// A setting that may name a file of factors, and where the copy of that file lies.
struct ScheduleText {
  std::string* text;
  std::string_view copy;
};

std::vector<ScheduleText> SchedulesOf(TrainConfig& config) {
  return {{&config.privacy.noise_schedule, "schedules/noise.csv"},
          {&config.privacy.clip_schedule, "schedules/clip.csv"},
          {&config.privacy.rate_schedule, "schedules/rate.csv"},
          {&config.training.schedule, "schedules/learning-rate.csv"}};
}

// Another command may be given the configuration in another folder.
TrainConfig WithAbsolutePaths(TrainConfig config) {
  const auto names = DatasetNames();
  const bool is_named = std::find(names.begin(), names.end(), config.data.source) != names.end();
  for (std::string* path :
       {&config.data.source, &config.data.labels, &config.data.test, &config.data.test_labels,
        &config.model.script, &config.model.pretrained}) {
    if (path->empty() || (path == &config.data.source && is_named)) continue;
    *path = fs::absolute(*path).lexically_normal().string();
  }
  if (!config.data.vocabulary.empty()) {
    VocabularySource words = ParseVocabularySource(config.data.vocabulary);
    if (!words.file.empty()) words.file = fs::absolute(words.file).lexically_normal().string();
    config.data.vocabulary = words.Setting();
  }
  for (const ScheduleText& schedule : SchedulesOf(config)) {
    if (const std::optional<std::string> file = Schedule::FileOf(*schedule.text)) {
      *schedule.text =
          Schedule::WithFile(*schedule.text, fs::absolute(*file).lexically_normal().string());
    }
  }
  return config;
}

// Where the copy of a script lies, or would.
fs::path ScriptCopy(const fs::path& folder, const TrainConfig& config) {
  return folder / kScriptFolder / fs::path(config.model.script).filename();
}

struct SumLine {
  std::string hash;
  std::string name;  // relative to the folder, or absolute
};

std::vector<SumLine> ReadSums(const fs::path& folder) {
  const fs::path file = folder / kSums;
  std::ifstream in(file, std::ios::binary);
  std::vector<SumLine> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.size() <= kHashDigits + 2 || line.compare(kHashDigits, 2, "  ") != 0) {
      throw Error(fmt::format("the file '{}' was changed; put it back.", file.string()));
    }
    lines.push_back({line.substr(0, kHashDigits), line.substr(kHashDigits + 2)});
  }
  if (lines.empty()) {
    throw Error(fmt::format(
        "the folder '{}' has no {}, so nobody knows whether its files are those of the run; give "
        "the folder of a run of this version of 'sordino train'.",
        folder.string(), kSums));
  }
  return lines;
}

}  // namespace

std::string KeepInputs(const fs::path& folder, const TrainConfig& config) {
  TrainConfig kept = WithAbsolutePaths(config);
  std::string sums;
  const auto keep = [&](const std::string& name, std::string_view content) {
    WriteWholeFile(folder / name, content);
    sums += fmt::format("{}  {}\n", Sha256Hex(content), name);
  };
  keep(kConfig, WriteTrainConfig(kept));
  if (!kept.model.script.empty()) {
    if (fs::file_size(kept.model.script) > kMaxCopyBytes) {
      sums += fmt::format("{}  {}\n", Sha256HexOfFile(kept.model.script), kept.model.script);
    } else {
      fs::create_directory(folder / kScriptFolder);
      keep(fs::relative(ScriptCopy(folder, kept), folder).string(), ReadAll(kept.model.script));
    }
  }
  for (const ScheduleText& schedule : SchedulesOf(kept)) {
    const std::optional<std::string> file = Schedule::FileOf(*schedule.text);
    if (!file) continue;
    fs::create_directories((folder / schedule.copy).parent_path());
    keep(std::string(schedule.copy), ReadAll(*file));
  }
  if (!config.data.source.empty()) {
    const std::string words = VocabularyText(config.data);
    if (!words.empty()) keep(kVocabulary, words);
  }
  WriteWholeFile(folder / kSums, sums);
  return Sha256Hex(sums);
}

std::string CheckInputs(const fs::path& folder) {
  for (const SumLine& line : ReadSums(folder)) {
    const fs::path file = folder / line.name;  // the name itself where it is absolute
    std::error_code none;
    if (!fs::is_regular_file(file, none)) {
      throw Error(fmt::format("the file '{}' of the run is gone; put it back.", file.string()));
    }
    if (Sha256HexOfFile(file) != line.hash) {
      throw Error(
          fmt::format("the file '{}' was changed since the run began, so the model would not be "
                      "the one that was trained; put it back, or train again.",
                      file.string()));
    }
  }
  return Sha256HexOfFile(folder / kSums);
}

TrainConfig KeptConfig(const fs::path& folder) {
  TrainConfig config = ReadTrainConfig(folder / kConfig);
  std::error_code none;
  if (const fs::path copy = ScriptCopy(folder, config);
      !config.model.script.empty() && fs::exists(copy, none)) {
    config.model.script = copy.string();
  }
  for (const ScheduleText& schedule : SchedulesOf(config)) {
    if (const fs::path copy = folder / schedule.copy; fs::exists(copy, none)) {
      *schedule.text = Schedule::WithFile(*schedule.text, copy.string());
    }
  }
  if (const fs::path words = folder / kVocabulary; fs::exists(words, none)) {
    config.data.vocabulary = words.string();
  }
  return config;
}

}  // namespace sordino
