#include "sordino/runs/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/sha256.h"
#include "sordino/base/shallow_json.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/run_folder.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kTensorsFile = "state.safetensors";
constexpr const char* kFactsFile = "state.json";
constexpr std::string_view kDraft = ".new-";
constexpr std::string_view kStep = "step-";
constexpr std::string_view kFormat = "sordino checkpoint";
constexpr int kVersion = 1;
constexpr std::size_t kKept = 2;
// Schedules make long plans: a part of the event for each step.
constexpr std::uint64_t kMaxFactsBytes = std::uint64_t{1} << 28;
constexpr std::uint64_t kMaxTensorsBytes = std::uint64_t{1} << 40;

[[noreturn]] void FailToWrite(const fs::path& folder, const std::string& why) {
  throw std::runtime_error(
      fmt::format("the checkpoint '{}' cannot be written: {}.", folder.string(), why));
}

std::string NameOf(std::int64_t step) { return fmt::format("{}{:09}", kStep, step); }

std::optional<std::int64_t> StepOf(const std::string& name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  std::int64_t step = -1;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kStep.size(), end, step);
  if (error != std::errc() || rest != end || step < 0 || NameOf(step) != name) return std::nullopt;
  return step;
}

fs::path NewDraft(const fs::path& folder) {
  std::random_device random;
  return folder / fmt::format("{}{:08x}{:08x}", kDraft, random(), random());
}

struct Contents {
  std::vector<std::int64_t> steps;  // the newest first
  std::vector<fs::path> drafts;
};

Contents ContentsOf(const fs::path& folder) {
  Contents contents;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const auto step = StepOf(name)) contents.steps.push_back(*step);
    if (name.starts_with(kDraft)) contents.drafts.push_back(entry->path());
  }
  std::sort(contents.steps.rbegin(), contents.steps.rend());
  return contents;
}

// Under another name first: a crash in between leaves no half checkpoint under that of a whole one.
// What cannot be removed stays, and harms nobody.
void Discard(const fs::path& folder, std::int64_t step) {
  std::error_code ignored;
  const fs::path draft = NewDraft(folder);
  fs::rename(folder / NameOf(step), draft, ignored);
  fs::remove_all(draft, ignored);
}

void RemoveDrafts(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& draft : ContentsOf(folder).drafts) fs::remove_all(draft, ignored);
}

// A folder that is gone at the end, unless it was moved to its place.
class Draft {
 public:
  explicit Draft(const fs::path& folder) : path_(NewDraft(folder)) {
    std::error_code error;
    fs::create_directory(path_, error);
    if (error) FailToWrite(path_, error.message());
  }
  ~Draft() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const fs::path& path() const { return path_; }

  // A checkpoint that is there already changes places with this one, where the file system can do
  // that; elsewhere it is removed first, and a crash in between leaves the one before it.
  void MoveTo(const fs::path& folder, std::int64_t step) const {
    const fs::path place = folder / NameOf(step);
    std::error_code error;
    if (fs::exists(fs::symlink_status(place, error))) {
#ifdef RENAME_EXCHANGE
      if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return;
#endif
      Discard(folder, step);
    }
    fs::rename(path_, place, error);
    if (error) FailToWrite(place, error.message());
  }

 private:
  fs::path path_;
};

// The whole file, whose size is looked at before anything is allocated.
std::vector<char> ReadWhole(const fs::path& file, std::uint64_t least, std::uint64_t most) {
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{} {}", file.filename().string(), what));
  };
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(file, error))) fail("is not there");
  std::ifstream stream(file, std::ios::binary);
  const std::uint64_t size = fs::file_size(file, error);
  if (!stream || error) fail("cannot be opened");
  if (size < least || size > most) fail(fmt::format("has {} bytes", size));
  std::vector<char> bytes(size);
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::uint64_t>(stream.gcount()) != size) fail("cannot be read to its end");
  return bytes;
}

struct FileDigest {
  std::uint64_t bytes = 0;
  std::string sha256;
};

FileDigest DigestOf(std::span<const char> bytes) {
  return {bytes.size(), Sha256Hex({bytes.data(), bytes.size()})};
}

bool AreSane(const CheckpointFacts& facts) {
  return facts.step >= 0 && facts.step <= static_cast<std::int64_t>(kMaxExactCount) &&
         std::isfinite(facts.noise) && facts.noise >= 0 && std::isfinite(facts.seconds) &&
         facts.seconds >= 0;
}

Json FactsToJson(const CheckpointFacts& facts) {
  return {{"step", facts.step},      {"noise", facts.noise}, {"plan", facts.plan},
          {"ledger", facts.ledger},  {"run", facts.run},     {"head", facts.head},
          {"seconds", facts.seconds}};
}

// Numbers keep all their bits, and what is parsed prints as it was: the hash of the facts is that
// of their text.
std::string TextOf(const CheckpointFacts& facts, const FileDigest& tensors) {
  try {
    const Json own = FactsToJson(facts);
    Json json;
    json["format"] = kFormat;
    json["version"] = kVersion;
    json["facts"] = own;
    json["facts_sha256"] = Sha256Hex(own.dump());
    json["state_bytes"] = tensors.bytes;
    json["state_sha256"] = tensors.sha256;
    return json.dump(1) + '\n';
  } catch (const Json::exception&) {
    throw Error("a text of the checkpoint is not UTF-8; use UTF-8 names.");
  }
}

// The hash is that of what the disk gives back.
void WriteFacts(const fs::path& place, const CheckpointFacts& facts) {
  std::vector<char> tensors;
  try {
    tensors = ReadWhole(place / kTensorsFile, 0, kMaxTensorsBytes);
  } catch (const Error& error) {
    FailToWrite(place, error.what());
  }
  WriteWholeFile(place / kFactsFile, TextOf(facts, DigestOf(tensors)));
}

struct ReadFacts {
  CheckpointFacts facts;
  FileDigest tensors;
};

// Throws Json::exception for what is missing or of another type, and Error for what is wrong.
ReadFacts FactsFromJson(const Json& json) {
  if (json.at("format") != kFormat || json.at("version") != kVersion) {
    throw Error(fmt::format("{} was written by another version", kFactsFile));
  }
  const Json& own = json.at("facts");
  if (json.at("facts_sha256") != Sha256Hex(own.dump())) {
    throw Error(fmt::format("{} was changed", kFactsFile));
  }
  const auto whole = [](const Json& number) {
    return number.is_number_integer() ? number.get<std::int64_t>() : -1;
  };
  ReadFacts read;
  CheckpointFacts& facts = read.facts;
  facts.step = whole(own.at("step"));
  facts.noise = own.at("noise").get<double>();
  facts.seconds = own.at("seconds").get<double>();
  facts.plan = own.at("plan").get<std::string>();
  facts.ledger = own.at("ledger").get<std::string>();
  facts.run = own.at("run").get<std::string>();
  facts.head = own.at("head").get<std::string>();
  if (!AreSane(facts)) throw Error(fmt::format("{} has a number out of range", kFactsFile));
  const std::int64_t bytes = whole(json.at("state_bytes"));
  if (bytes < 0) throw Error(fmt::format("{} has a size out of range", kFactsFile));
  read.tensors.bytes = static_cast<std::uint64_t>(bytes);
  read.tensors.sha256 = json.at("state_sha256").get<std::string>();
  return read;
}

// Throws Error that says in a few words what is not whole.
Checkpoint ReadCheckpoint(const fs::path& place, std::int64_t step) {
  const std::vector<char> text = ReadWhole(place / kFactsFile, 1, kMaxFactsBytes);
  ReadFacts read;
  try {
    read = FactsFromJson(Json::parse(text, kShallowJson));
  } catch (const Json::exception&) {
    throw Error(fmt::format("{} does not hold what it should", kFactsFile));
  }
  if (read.facts.step != step) throw Error(fmt::format("it is that of step {}", read.facts.step));
  if (read.tensors.bytes > kMaxTensorsBytes) {
    throw Error(fmt::format("{} has a size out of range", kFactsFile));
  }
  const std::vector<char> bytes =
      ReadWhole(place / kTensorsFile, read.tensors.bytes, read.tensors.bytes);
  if (DigestOf(bytes).sha256 != read.tensors.sha256) {
    throw Error(fmt::format("{} was changed", kTensorsFile));
  }
  SafetensorsFile file = ParseSafetensors(std::as_bytes(std::span(bytes)), kTensorsFile);
  return {std::move(read.facts), std::move(file.tensors)};
}

void MakeFolder(const fs::path& folder) {
  std::error_code error;
  if (!fs::create_directories(folder, error) && !error) return;
  if (error) FailToWrite(folder, error.message());
  SyncFolder(folder.has_parent_path() ? folder.parent_path() : fs::path("."));
}

}  // namespace

void WriteCheckpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  const CheckpointFacts& facts = checkpoint.facts;
  if (!AreSane(facts)) {
    throw Error(fmt::format(
        "the checkpoint of step {} has a noise of {} and {} seconds; they must be finite and not "
        "negative.",
        facts.step, facts.noise, facts.seconds));
  }
  MakeFolder(folder);
  RemoveDrafts(folder);
  {
    const Draft draft(folder);
    try {
      WriteSafetensors(draft.path() / kTensorsFile, checkpoint.tensors);
    } catch (const Error& error) {
      throw std::runtime_error(error.what());  // the disk's failure, not the user's mistake
    }
    WriteFacts(draft.path(), facts);  // with its sync of the folder, which covers both files
    draft.MoveTo(folder, facts.step);
    SyncFolder(folder);
  }
  // Later ones are damaged, or of a part that was not resumed.
  std::size_t kept = 0;
  for (const std::int64_t step : ContentsOf(folder).steps) {
    if (step > facts.step || ++kept > kKept) Discard(folder, step);
  }
}

std::optional<Checkpoint> ReadNewestCheckpoint(const fs::path& folder) {
  std::string why;
  for (const std::int64_t step : ContentsOf(folder).steps) {
    try {
      return ReadCheckpoint(folder / NameOf(step), step);
    } catch (const Error& error) {
      if (why.empty()) why = fmt::format("{}: {}", NameOf(step), error.what());
    }
  }
  if (why.empty()) return std::nullopt;
  while (why.ends_with('.')) why.pop_back();
  throw Error(
      fmt::format("no checkpoint in '{}' is whole ({}), so there is nothing to resume; start a "
                  "new run, or put a copy of a checkpoint back.",
                  folder.string(), why));
}

void RemoveCheckpoints(const fs::path& folder) {
  std::vector<std::int64_t> steps = ContentsOf(folder).steps;
  std::reverse(steps.begin(), steps.end());  // the newest last
  for (const std::int64_t step : steps) Discard(folder, step);
  RemoveDrafts(folder);
  std::error_code ignored;
  fs::remove(folder, ignored);  // where nothing else is in it
}

}  // namespace sordino
