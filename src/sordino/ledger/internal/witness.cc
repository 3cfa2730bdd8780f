#include "sordino/ledger/internal/witness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr const char* kHeads = "ledgers";  // the folder of the files
constexpr const char* kWhyAndWhatToDo =
    "so an older copy of it could be spent again; set SORDINO_STATE to a folder of yours that can "
    "be written to, the same for every command";
constexpr std::size_t kLongestFile = 1024;
constexpr int kTriesToLock = 20;
constexpr std::chrono::milliseconds kBetweenTries{1};

bool IsHex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::filesystem::path FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
}

// Holds a folder for one process at a time, so that of two heads the later one stays. A holder that
// is killed lets go of it; one that was stopped in there is not waited for.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    for (int i = 0; descriptor_ >= 0 && !is_held_ && i < kTriesToLock; ++i) {
      if (i > 0) std::this_thread::sleep_for(kBetweenTries);
      is_held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    }
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  int descriptor_;
  bool is_held_ = false;
};

// No sync: after a loss of power the file may be an old one or none, which refuses nothing.
void Replace(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::path fresh = file;
  fresh += ".new";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code ignored;
  if (out) {
    std::filesystem::rename(fresh, file, ignored);
  } else {
    std::filesystem::remove(fresh, ignored);
  }
}

// A full disk shows only when bytes are written. As many as a head has.
std::error_code TryToWrite(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / fmt::format(".try-{}", ::getpid());
  const auto failure = [] { return std::error_code(errno, std::generic_category()); };
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return failure();
  const std::array<char, 128> bytes{};
  std::error_code error;
  if (::write(descriptor, bytes.data(), bytes.size()) != std::ssize(bytes)) error = failure();
  if (::close(descriptor) != 0 && !error) error = failure();
  ::unlink(file.c_str());
  return error;
}

}  // namespace

std::filesystem::path DefaultWitnessFolder() {
  if (std::filesystem::path named = FromEnvironment("SORDINO_STATE"); !named.empty()) return named;
  // A relative one is to be ignored, says the specification of these folders.
  if (const auto state = FromEnvironment("XDG_STATE_HOME"); state.is_absolute()) {
    return state / "sordino";
  }
  if (const auto home = FromEnvironment("HOME"); home.is_absolute()) {
    return home / ".local" / "state" / "sordino";
  }
  return {};
}

void CheckWitnessFolder(const std::filesystem::path& folder) {
  if (folder.empty()) {
    throw Error(fmt::format("there is no folder to remember in how far a ledger is spent, {}.",
                            kWhyAndWhatToDo));
  }
  const std::filesystem::path heads = folder / kHeads;
  std::error_code error;
  std::filesystem::create_directories(heads, error);
  if (!error && ::access(heads.c_str(), R_OK | W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) error = TryToWrite(heads);
  if (!error) return;
  ThrowFileError(error.value(), fmt::format("how far a ledger is spent cannot be remembered in the "
                                            "folder '{}' ({}), {}.",
                                            heads.string(), error.message(), kWhyAndWhatToDo));
}

void Witness::CheckFile() const {
  std::error_code error;
  if (file_.empty() || !std::filesystem::exists(file_, error)) return;
  if (std::filesystem::is_regular_file(file_, error) && ::access(file_.c_str(), R_OK) == 0) return;
  throw Error(
      fmt::format("the file '{}' remembers how far a ledger is spent and cannot be read, {}.",
                  file_.string(), kWhyAndWhatToDo));
}

// The identity comes out of the ledger's file, so it is looked at before it becomes a file's name.
Witness::Witness(std::filesystem::path folder, const std::string& ledger) {
  if (folder.empty() || !IsHex(ledger, 32)) return;
  file_ = std::move(folder);
  file_ /= kHeads;
  file_ /= ledger;
}

std::optional<Sighting> Witness::Last() const {
  if (file_.empty()) return std::nullopt;
  try {
    // Anything but a file (a pipe, say) might never answer.
    if (!std::filesystem::is_regular_file(file_)) return std::nullopt;
    std::ifstream in(file_, std::ios::binary);
    std::string text(kLongestFile, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    const nlohmann::json seen = nlohmann::json::parse(text, nullptr, false);
    if (!seen.is_object() || !seen.contains("number") || !seen.contains("hash")) {
      return std::nullopt;
    }
    if (!seen["number"].is_number_integer() || !seen["hash"].is_string()) return std::nullopt;
    Sighting last{.number = seen["number"].get<std::int64_t>(),
                  .hash = seen["hash"].get<std::string>()};
    if (last.number < 0 || !IsHex(last.hash, 64)) return std::nullopt;
    return last;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Witness::Remember(const Sighting& seen) {
  if (file_.empty() || seen.number < 0 || !IsHex(seen.hash, 64)) return;
  try {
    std::error_code failed;
    std::filesystem::create_directories(file_.parent_path(), failed);
    const FolderLock lock(file_.parent_path());
    if (!lock.is_held()) return;
    if (const auto last = Last(); last && last->number >= seen.number) return;
    Replace(file_, nlohmann::json{{"number", seen.number}, {"hash", seen.hash}}.dump() + "\n");
  } catch (const std::exception&) {
    return;  // what cannot be written is not remembered
  }
}

}  // namespace sordino
