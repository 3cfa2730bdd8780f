#include "sordino/ledger/data_description.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/output_file.h"
#include "sordino/base/toml_nesting.h"
#include "sordino/ledger/internal/data_memory.h"
#include "sordino/ledger/internal/witness.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderDescription = "sordino.toml";
constexpr std::string_view kFileSuffix = ".sordino.toml";
constexpr std::array<std::string_view, 1> kKeys = {"ledger"};
constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 20;
constexpr int kMaxLinks = 40;  // as the kernel follows

struct NamedLedger {
  fs::path description;
  fs::path ledger;
};

// The names by which the data can be meant: as given, along the links of its last part, and where
// everything leads in the end.
std::vector<fs::path> NamesOf(const fs::path& data) {
  if (data.empty()) throw Error("the name of the data is empty; give the path of their file.");
  std::error_code error;
  fs::path path = fs::absolute(data, error);
  if (error) {
    throw Error(
        fmt::format("the place of '{}' cannot be found: {}.", data.string(), error.message()));
  }
  while (path.has_relative_path() && (path.filename().empty() || path.filename() == ".")) {
    path = path.parent_path();
  }
  std::vector<fs::path> names = {path};
  for (int i = 0; i < kMaxLinks && fs::is_symlink(names.back(), error); ++i) {
    const fs::path target = fs::read_symlink(names.back(), error);
    if (error) break;
    names.push_back(names.back().parent_path() / target);
  }
  const fs::path canonical = fs::weakly_canonical(path, error);
  if (!error) names.push_back(canonical);
  return names;
}

void AddOf(const fs::path& path, std::vector<fs::path>& places) {
  if (path.filename().empty() || path.filename() == "..") return;
  fs::path beside = path;
  beside += kFileSuffix;
  places.push_back(std::move(beside));
}

std::vector<fs::path> PlacesOf(const fs::path& data) {
  std::vector<fs::path> places;
  for (const fs::path& name : NamesOf(data)) {
    AddOf(name, places);
    AddOf(name.parent_path(), places);
    places.push_back(name.parent_path() / kFolderDescription);
    std::error_code error;
    if (fs::is_directory(name, error)) places.push_back(name / kFolderDescription);
  }
  return places;
}

std::string ReadDescription(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (!error && size > kLargest) {
    throw Error(
        fmt::format("{} is too large for the description of a dataset, which names its "
                    "ledger; remove it or write a new one.",
                    file.string()));
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!error && in && size > 0) text << in.rdbuf();
  if (error || !in) {
    throw Error(
        fmt::format("{} describes the data and cannot be read; nothing is released before "
                    "it can.",
                    file.string()));
  }
  return std::move(text).str();
}

// The ledger that a description names. One that names none is a mistake: somebody meant to protect
// the data.
fs::path LedgerIn(const fs::path& file) {
  const std::string text = ReadDescription(file);
  CheckTomlNesting(text, file.string());
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw Error(fmt::format("{}, line {}: this is not TOML: {}.", file.string(),
                            error.source().begin.line, what));
  }
  for (const auto& [key, node] : table) {
    IndexOfName(fmt::format("a key of the data's description {}", file.string()), key.str(), kKeys);
  }
  const toml::node* const node = table.get("ledger");
  if (node == nullptr) {
    throw Error(fmt::format(
        "{} describes the data and names no ledger; write ledger = \"FILE\" into it, or remove it.",
        file.string()));
  }
  const auto name = node->value_exact<std::string>();
  if (!name || name->empty()) {
    throw Error(fmt::format("{}, line {}: 'ledger' must be the name of a file in quotes.",
                            file.string(), node->source().begin.line));
  }
  // Where the description really lies, so that it means the same through every link.
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  return (error ? file : real).parent_path() / *name;
}

// The file that standard input is; empty where it is none, such as a pipe, or has no name. The
// latter is an Error unless a ledger was asked for.
fs::path FileOfStandardInput(bool has_ledger) {
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::error_code error;
  fs::path name = fs::read_symlink("/proc/self/fd/0", error);
  struct stat named = {};
  if (!error && ::stat(name.c_str(), &named) == 0 && named.st_dev == status.st_dev &&
      named.st_ino == status.st_ino) {
    return name;
  }
  if (has_ledger) return {};
  throw Error(
      "standard input is a file whose name cannot be found, so that nobody knows whether a "
      "description names its ledger; give the file by its name, or give --ledger.");
}

// Whether a file has several names, of which this may be the one without a description. Of a
// folder: whether a file in it has.
bool HasOtherNames(const fs::path& data) {
  std::error_code error;
  const auto is_linked = [](const fs::path& file) {
    struct stat status = {};
    return ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 1;
  };
  if (!fs::is_directory(data, error)) return is_linked(data);
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(data, options, error), end; !error && at != end;
       at.increment(error)) {
    if (is_linked(at->path())) return true;
  }
  return false;
}

std::optional<NamedLedger> FindBeside(const fs::path& data) {
  std::optional<NamedLedger> found;
  for (const fs::path& place : PlacesOf(data)) {
    std::error_code error;
    // A link that leads nowhere is a description that was lost, and not none.
    const fs::file_type type = fs::symlink_status(place, error).type();
    if (type == fs::file_type::not_found) continue;
    if (type == fs::file_type::none && error == std::errc::filename_too_long) continue;
    const fs::path ledger = LedgerIn(place);
    if (found && !SameFile(found->ledger, ledger)) {
      throw Error(fmt::format(
          "{} and {} name different ledgers for {}, {} and {}; correct the one that is wrong.",
          found->description.string(), place.string(), data.string(), found->ledger.string(),
          ledger.string()));
    }
    if (!found) found = NamedLedger{place, ledger};
  }
  return found;
}

// Of the same data under another name, where there is none beside this one.
std::optional<NamedLedger> Find(const fs::path& data) {
  if (std::optional<NamedLedger> found = FindBeside(data)) return found;
  const std::optional<fs::path> description =
      DataMemory(DefaultWitnessFolder()).DescriptionOf(data);
  if (!description) return std::nullopt;
  return NamedLedger{*description, LedgerIn(*description)};
}

}  // namespace

std::optional<fs::path> LedgerOfData(const fs::path& data) {
  const std::optional<NamedLedger> found = Find(data);
  return found ? std::optional(found->ledger) : std::nullopt;
}

std::optional<fs::path> ChooseLedger(const std::string& asked_for, std::span<const fs::path> data) {
  std::optional<NamedLedger> chosen;
  for (const fs::path& given : data) {
    const fs::path path = given == "-" ? FileOfStandardInput(!asked_for.empty()) : given;
    if (path.empty() && given == "-") continue;
    const std::optional<NamedLedger> found = Find(path);
    if (!found) {
      if (asked_for.empty() && HasOtherNames(path)) {
        throw Error(fmt::format(
            "'{}' is a hard link or holds some: their data have another name too, and a "
            "description beside that one may name a ledger; use that name, or give --ledger.",
            path.string()));
      }
      continue;
    }
    DataMemory(DefaultWitnessFolder()).Remember(path, found->description);
    if (!asked_for.empty() && !SameFile(asked_for, found->ledger)) {
      throw Error(fmt::format(
          "--ledger {} is not the ledger of {}, which {} says is {}; leave --ledger out, or name "
          "that one.",
          asked_for, path.string(), found->description.string(), found->ledger.string()));
    }
    if (chosen && !SameFile(chosen->ledger, found->ledger)) {
      throw Error(fmt::format(
          "the data have different ledgers, {} by {} and {} by {}; a release is charged to one, so "
          "use them apart.",
          chosen->ledger.string(), chosen->description.string(), found->ledger.string(),
          found->description.string()));
    }
    if (!chosen) chosen = found;
  }
  if (!asked_for.empty()) return fs::path(asked_for);
  return chosen ? std::optional(chosen->ledger) : std::nullopt;
}

}  // namespace sordino
