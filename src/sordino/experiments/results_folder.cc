#include "sordino/experiments/results_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/shallow_json.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kFolderSchema = 1;
constexpr std::uintmax_t kMaxRecordBytes = std::uintmax_t{1} << 20;

const char* FormOf(const Experiment& experiment) { return experiment.quick ? "quick" : "full"; }

// Makes a folder; a place that cannot be written to is a mistake, a disk that fails is not.
void MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    ThrowFileError(error.value(),
                   fmt::format("the folder '{}' cannot be made: {}; name another with --out.",
                               folder.string(), error.message()));
  }
}

double NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::optional<std::string> ReadSmallFile(const fs::path& file, std::uintmax_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status)) return std::nullopt;
  if (!fs::is_regular_file(status)) throw Error(fmt::format("'{}' is not a file.", file.string()));
  if (const std::uintmax_t size = fs::file_size(file, error); error || size > most) {
    throw Error(fmt::format("'{}' has {} bytes; this program writes at most {} there.",
                            file.string(), size, most));
  }
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw Error(fmt::format("'{}' cannot be read.", file.string()));
  return text;
}

ResultsFolder::ResultsFolder(fs::path folder, const Experiment& experiment)
    : folder_(std::move(folder)) {
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error)) {
    throw Error(fmt::format("'{}' is a file; name a folder with --out.", folder_.string()));
  }
  MakeFolder(folder_);
  Lock();
  try {
    Claim(experiment);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

ResultsFolder::~ResultsFolder() { ::close(lock_); }

// On the folder itself: a file for it would make an empty folder one that holds something.
void ResultsFolder::Lock() {
  lock_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) {
    ThrowFileError(errno, fmt::format("the folder '{}' cannot be opened: {}.", folder_.string(),
                                      std::strerror(errno)));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(lock_);
  throw Error(
      fmt::format("another process runs the experiment in '{}'; wait for it, or name another "
                  "folder with --out.",
                  folder_.string()));
}

void ResultsFolder::Claim(const Experiment& experiment) {
  const fs::path mark = folder_ / "experiment.json";
  const std::optional<std::string> text = ReadSmallFile(mark, kMaxRecordBytes);
  if (!text) {
    if (!fs::is_empty(folder_)) {
      throw Error(
          fmt::format("'{}' holds files that are not of an experiment; name a new or empty "
                      "folder with --out.",
                      folder_.string()));
    }
    if (::access(folder_.c_str(), W_OK) != 0) {
      throw Error(fmt::format("the folder '{}' cannot be written to; name another with --out.",
                              folder_.string()));
    }
    Json json;
    json["schema"] = kFolderSchema;
    json["experiment"] = experiment.name;
    json["form"] = FormOf(experiment);
    WriteWholeFile(mark, json.dump(2) + "\n");
  } else {
    const Json json = Json::parse(*text, kShallowJson, false);
    if (!json.is_object() || NumberAt(json, "schema") != kFolderSchema ||
        TextAt(json, "experiment").empty()) {
      throw Error(fmt::format(
          "'{}' is not what an experiment writes; name another folder with --out.", mark.string()));
    }
    if (TextAt(json, "experiment") != experiment.name ||
        TextAt(json, "form") != FormOf(experiment)) {
      throw Error(fmt::format(
          "'{}' holds the {} form of the experiment '{}', and this is the {} form of '{}'; name "
          "another folder with --out.",
          folder_.string(), TextAt(json, "form").substr(0, 20),
          TextAt(json, "experiment").substr(0, 60), FormOf(experiment), experiment.name));
    }
    if (::access(folder_.c_str(), W_OK) != 0) {
      throw Error(fmt::format("the folder '{}' cannot be written to; name another with --out.",
                              folder_.string()));
    }
  }
  WriteWholeFile(folder_ / "experiment.toml", experiment.text);
  MakeFolder(folder_ / "cells");
}

std::optional<FinishedCell> ResultsFolder::Find(const Cell& cell) const {
  const fs::path record = Of(cell) / "cell.json";
  const std::optional<std::string> text = ReadSmallFile(record, kMaxRecordBytes);
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, kShallowJson, false);
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("the cell in '{}' {}; remove this folder, and the cell runs again.",
                            Of(cell).string(), why));
  };
  if (!json.is_object() || !json.contains("words") || json["words"] != Json(cell.words)) {
    refuse("is not the one that its name says");
  }
  const FinishedCell finished{NumberAt(json, "seconds"), NumberAt(json, "memory_mb")};
  if (!(finished.seconds >= 0) || !(finished.memory_mb >= 0))
    refuse("has no times that can be read");
  const std::optional<std::string> output = ReadSmallFile(OutputOf(cell), kMaxOutputBytes);
  if (!output || Sha256Hex(*output) != TextAt(json, "output")) {
    refuse("has another output than when it finished");
  }
  return finished;
}

void ResultsFolder::Begin(const Cell& cell) const {
  fs::remove_all(Of(cell));
  MakeFolder(Of(cell));
}

void ResultsFolder::Finish(const Cell& cell, const FinishedCell& finished) const {
  Json json;
  json["schema"] = kFolderSchema;
  json["words"] = cell.words;
  json["seconds"] = finished.seconds;
  json["memory_mb"] = finished.memory_mb;
  json["output"] = Sha256HexOfFile(OutputOf(cell));
  WriteWholeFile(Of(cell) / "cell.json",
                 json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace sordino
