#include "sordino/base/output_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqlite("SQLite format 3\0", 16);
constexpr std::array<std::string_view, 3> kSqliteCompanions = {"-journal", "-wal", "-shm"};
constexpr std::size_t kHead = 64;  // longer than every beginning

using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> IdOf(const fs::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileId(found.st_dev, found.st_ino);
}

// Absent where the file cannot be read.
std::optional<std::string> HeadOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string head(kHead, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (in.bad()) return std::nullopt;
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head;
}

bool IsSqlite(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return false;
  const std::optional<std::string> head = HeadOf(file);
  return head && head->starts_with(kSqlite);
}

// Whether the name is one that SQLite gives to the journal of a database that is there.
bool IsSqliteCompanion(const fs::path& file) {
  const std::string name = file.string();
  for (const std::string_view ending : kSqliteCompanions) {
    if (name.ends_with(ending) && IsSqlite(name.substr(0, name.size() - ending.size()))) {
      return true;
    }
  }
  return false;
}

// Whether the folder, or one below it, holds the file. `seen` stops at links that lead back.
bool Holds(const fs::path& folder, const FileId& file, std::set<FileId>& seen) {
  const std::optional<FileId> id = IdOf(folder);
  if (!id || !seen.insert(*id).second) return false;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IdOf(entry->path()) == file) return true;
    std::error_code none;
    if (entry->is_directory(none) && Holds(entry->path(), file, seen)) return true;
  }
  return false;
}

bool IsInput(const fs::path& target, const fs::path& input) {
  if (input.empty() || input == "-") return false;
  if (SameFile(target, input)) return true;
  const std::optional<FileId> id = IdOf(target);
  std::error_code none;
  std::set<FileId> seen;
  return id && fs::is_directory(input, none) && Holds(input, *id, seen);
}

bool IsRunFolder(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "config.toml", none) &&
         (fs::exists(folder / "metrics.jsonl", none) ||
          fs::exists(folder / "model.safetensors", none));
}

// What a run writes into its folder; what else lies there is somebody else's.
constexpr std::array<std::string_view, 16> kRunFiles = {
    "config.toml",      "metrics.jsonl", "model.safetensors",
    "statement.txt",    "event.txt",     "record.json",
    "audit.json",       "audit.svg",     "coefficients.csv",
    "coefficients.svg", "SHA256SUMS",    "ledger.db",
    "vocabulary.txt",   ".lock",         "accuracy-and-epsilon.svg",
    "predictions.json"};
constexpr std::array<std::string_view, 3> kRunFolders = {"checkpoints", "schedules", "script"};

bool IsFileOfRun(const fs::path& file) {
  const auto is_one_of = [](const auto& names, const fs::path& name) {
    return std::find(names.begin(), names.end(), name.string()) != names.end();
  };
  if (IsRunFolder(file.parent_path()) && is_one_of(kRunFiles, file.filename())) return true;
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (is_one_of(kRunFolders, folder.filename()) && IsRunFolder(folder.parent_path())) return true;
  }
  return false;
}

// Where links lead. One that leads nowhere is replaced itself.
fs::path TargetOf(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return path;
  const fs::path target = fs::weakly_canonical(absolute, error);
  return error ? absolute : target;
}

void CheckFolder(const fs::path& named, const fs::path& target) {
  const fs::path folder = target.parent_path();
  std::error_code none;
  const int error = fs::exists(folder, none) && !fs::is_directory(folder, none) ? ENOTDIR
                    : access(folder.c_str(), W_OK | X_OK) != 0                  ? errno
                                                                                : 0;
  if (error == 0) return;
  throw Error(fmt::format(
      "the file '{}' cannot be written: {}; name a file in a folder that can be written to.",
      named.string(), std::strerror(error)));
}

// What must not be overwritten by anything, as the end of a sentence; empty where it may be.
std::string NeverOverwritten(const fs::path& target) {
  std::error_code none;
  if (IsSqliteCompanion(target)) return "belongs to a ledger or another SQLite database";
  if (!fs::exists(target, none)) return "";
  if (!fs::is_regular_file(target, none)) return "is not a regular file";
  const std::optional<std::string> head = HeadOf(target);
  if (!head) return "exists and cannot be read, so what would be lost is not known";
  if (head->starts_with(kSqlite)) return "is a ledger or another SQLite database";
  if (IsFileOfRun(target)) return "is a file of a training run";
  return "";
}

bool IsOfAnotherKind(const fs::path& target, const OutputKind& kind) {
  std::error_code none;
  if (!fs::exists(target, none) || fs::file_size(target, none) == 0) return false;
  const std::optional<std::string> head = HeadOf(target);
  return !head || !head->starts_with(kind.beginning);
}

}  // namespace

OutputFile::OutputFile(const OutputRequest& request, std::span<const fs::path> inputs)
    : target_(TargetOf(request.path)) {
  const std::string given = fmt::format("{} is '{}'", request.flag, request.path.string());
  if (!request.path.string().ends_with(request.kind.ending)) {
    throw Error(fmt::format("{}, and what is written is {}; give a file that ends in {}.", given,
                            request.kind.name, request.kind.ending));
  }
  for (const fs::path& input : inputs) {
    if (!IsInput(target_, input)) continue;
    throw Error(
        fmt::format("{}, which this command also reads or writes as '{}'; name another file.",
                    given, input.string()));
  }
  if (const std::string why = NeverOverwritten(target_); !why.empty()) {
    throw Error(fmt::format("{}, which {} and is not overwritten; name another file.", given, why));
  }
  if (!request.force && IsOfAnotherKind(target_, request.kind)) {
    throw Error(fmt::format(
        "{}, which exists and is not {}; name another file, or overwrite it with --force.", given,
        request.kind.name));
  }
  CheckFolder(request.path, target_);
}

void OutputFile::Write(std::string_view content) const { WriteWholeFile(target_, content); }

bool SameFile(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) {
    const bool same = fs::equivalent(a, b, error);
    if (!error) return same;
  }
  const fs::path one = fs::weakly_canonical(a, error);
  if (error) return false;
  const fs::path other = fs::weakly_canonical(b, error);
  return !error && one == other;
}

}  // namespace sordino
