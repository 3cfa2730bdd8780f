#include "sordino/ledger/internal/witness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr const char* kHeads = "ledgers";  // the folder of the files
constexpr const char* kWhyAndWhatToDo =
    "so an older copy of it could be spent again; set SORDINO_STATE to a folder of yours that can "
    "be written to, the same for every command";
constexpr std::size_t kLongestFile = 1024;
constexpr std::chrono::milliseconds kBetweenTries{1};
constexpr mode_t kOfOthers = 077;
constexpr mode_t kWritableByOthers = 022;

bool IsHex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::filesystem::path FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
}

std::error_code LastError() { return {errno, std::generic_category()}; }

[[noreturn]] void CannotRemember(const std::filesystem::path& place, const std::error_code& error) {
  ThrowFileError(error.value(), fmt::format("how far a ledger is spent cannot be remembered in "
                                            "'{}' ({}), {}.",
                                            place.string(), error.message(), kWhyAndWhatToDo));
}

// A file of its own, and closed again.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, int flags)
      : value_(::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }
  int Release() { return std::exchange(value_, -1); }
  bool Close() { return value_ < 0 || ::close(Release()) == 0; }

 private:
  int value_;
};

std::error_code WriteSynced(const std::filesystem::path& file, std::string_view text) {
  Descriptor out(file, O_WRONLY | O_CREAT | O_TRUNC);
  if (out.value() < 0) return LastError();
  while (!text.empty()) {
    const ssize_t count = ::write(out.value(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return LastError();
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(out.value()) != 0 || !out.Close()) return LastError();
  return {};
}

// A full disk shows only when bytes are written. As many as a head has.
std::error_code TryToWrite(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / fmt::format(".try-{}", ::getpid());
  Descriptor out(file, O_WRONLY | O_CREAT | O_TRUNC);
  if (out.value() < 0) return LastError();
  const std::array<char, 128> bytes{};
  std::error_code error;
  if (::write(out.value(), bytes.data(), bytes.size()) != std::ssize(bytes)) error = LastError();
  if (!out.Close() && !error) error = LastError();
  ::unlink(file.c_str());
  return error;
}

// And those above it, each durable.
std::error_code MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return {};
  if (const auto above = folder.parent_path(); above != folder && !above.empty()) {
    if (const std::error_code failed = MakeFolder(above)) return failed;
  }
  if (::mkdir(folder.c_str(), 0700) == 0) {
    SyncFolder(folder.parent_path());
    return {};
  }
  error = LastError();
  return std::filesystem::is_directory(folder) ? std::error_code() : error;
}

// Others must not be able to exchange what is in the folder, nor to hold its locks. `denied` is
// taken from them where the folder is ours.
void CloseToOthers(const std::filesystem::path& folder, mode_t denied, bool may_be_of_root) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) CannotRemember(folder, LastError());
  const bool is_ours = facts.st_uid == ::geteuid();
  if (!is_ours && !(may_be_of_root && facts.st_uid == 0)) {
    throw Error(
        fmt::format("the folder '{}', which remembers how far ledgers are spent, belongs "
                    "to another user, {}.",
                    folder.string(), kWhyAndWhatToDo));
  }
  // In a sticky folder (/tmp) nobody can move what belongs to others.
  if ((facts.st_mode & denied) == 0 || (may_be_of_root && (facts.st_mode & S_ISVTX) != 0)) return;
  if (is_ours && ::chmod(folder.c_str(), facts.st_mode & 07777 & ~denied) == 0) return;
  throw Error(
      fmt::format("the folder '{}', which remembers how far ledgers are spent, is open to "
                  "other users, {}.",
                  folder.string(), kWhyAndWhatToDo));
}

}  // namespace

std::filesystem::path DefaultWitnessFolder() {
  if (std::filesystem::path named = FromEnvironment("SORDINO_STATE"); !named.empty()) {
    if (named.is_absolute()) return named;
    throw Error(fmt::format(
        "SORDINO_STATE is '{}', which is another folder for a command that is run elsewhere; give "
        "a path that begins with '/'.",
        named.string()));
  }
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
  std::error_code error = MakeFolder(heads);
  if (error) CannotRemember(heads, error);
  CloseToOthers(folder, kWritableByOthers, true);
  CloseToOthers(heads, kOfOthers, false);
  if (::access(heads.c_str(), R_OK | W_OK | X_OK) != 0) error = LastError();
  if (!error) error = TryToWrite(heads);
  if (error) CannotRemember(heads, error);
}

WitnessLock::WitnessLock(const std::filesystem::path& file, std::chrono::milliseconds patience)
    : descriptor_(-1) {
  Descriptor held(file, O_RDWR | O_CREAT);
  if (held.value() < 0) CannotRemember(file, LastError());
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(held.value(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) CannotRemember(file, LastError());
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(fmt::format(
          "another program holds '{}', which guards the memory of how far the ledger is spent, so "
          "nothing was charged; end that program, or wait until it is done.",
          file.string()));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  descriptor_ = held.Release();
}

WitnessLock::~WitnessLock() { ::close(descriptor_); }

// The identity comes out of the ledger's file, so it is looked at before it becomes a file's name.
Witness::Witness(const std::filesystem::path& folder, const std::string& ledger) {
  if (!IsHex(ledger, 32)) {
    throw Error(
        "the ledger's identity is not 32 hex digits, so it was not written by this program.");
  }
  file_ = folder / kHeads / ledger;
  draft_ = folder / kHeads / (ledger + ".new");
  lock_file_ = folder / kHeads / (ledger + ".lock");
}

std::optional<Sighting> Witness::Last() const {
  const auto refuse = [this](const char* why) {
    throw Error(fmt::format(
        "the file '{}' remembers how far the ledger is spent and {}, so an older copy of the "
        "ledger could be spent again; make sure that the ledger is the newest copy, then remove "
        "that file.",
        file_.string(), why));
  };
  // Without waiting: a pipe might never answer.
  const Descriptor in(file_, O_RDONLY | O_NONBLOCK);
  if (in.value() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    refuse("cannot be read");
  }
  struct stat facts {};
  if (::fstat(in.value(), &facts) != 0 || !S_ISREG(facts.st_mode)) refuse("is not a file");
  std::string text(kLongestFile, '\0');
  const ssize_t size = ::read(in.value(), text.data(), text.size());
  if (size < 0) refuse("cannot be read");
  text.resize(static_cast<std::size_t>(size));
  const nlohmann::json seen = nlohmann::json::parse(text, nullptr, false);
  const bool is_sighting = seen.is_object() && seen.contains("number") && seen.contains("hash") &&
                           seen["number"].is_number_integer() && seen["hash"].is_string();
  if (!is_sighting) refuse("is damaged");
  Sighting last{.number = seen["number"].get<std::int64_t>(),
                .hash = seen["hash"].get<std::string>()};
  if (last.number < 0 || !IsHex(last.hash, 64)) refuse("is damaged");
  return last;
}

void Witness::Prepare(const Sighting& seen) const {
  // Also of a file that is there and must not be changed (an immutable one).
  if (::access(file_.c_str(), W_OK) != 0 && errno != ENOENT) CannotRemember(file_, LastError());
  const std::string text = nlohmann::json{{"number", seen.number}, {"hash", seen.hash}}.dump();
  if (const std::error_code error = WriteSynced(draft_, text + '\n')) {
    CannotRemember(draft_, error);
  }
}

void Witness::Confirm() const {
  if (::rename(draft_.c_str(), file_.c_str()) != 0) {
    throw std::runtime_error(fmt::format(
        "the ledger took the charge, and how far it is spent cannot be remembered in '{}' ({}), so "
        "nothing is released for it.",
        file_.string(), LastError().message()));
  }
  SyncFolder(file_.parent_path());
}

}  // namespace sordino
