#include "sordino/ledger/internal/data_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDataFolder = "data";  // below the folder of the state
constexpr const char* kKeyFile = "key";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kLongestNote = 16384;
constexpr std::uintmax_t kEndBytes = std::uintmax_t{1} << 20;  // of the content that are compared

// At most so many bytes of the file from `offset` on.
std::string BytesOf(const fs::path& file, std::uintmax_t offset, std::uintmax_t most) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string bytes(most, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return bytes;
}

// A file that only its owner can read appears whole or not at all. Where another process was faster
// its file stays, if it may.
bool WriteNew(const fs::path& file, const std::string& text, bool replace) {
  fs::path fresh = file;
  fresh += fmt::format(".{}.new", ::getpid());
  const int descriptor =
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return false;
  bool is_written = ::write(descriptor, text.data(), text.size()) == std::ssize(text);
  is_written = ::fsync(descriptor) == 0 && is_written;
  is_written = ::close(descriptor) == 0 && is_written;
  if (is_written) {
    is_written = replace ? ::rename(fresh.c_str(), file.c_str()) == 0
                         : ::link(fresh.c_str(), file.c_str()) == 0;
  }
  ::unlink(fresh.c_str());
  return is_written;
}

std::string KeyIn(const fs::path& folder) {
  std::error_code none;
  const fs::path file = folder / kKeyFile;
  if (!fs::is_regular_file(file, none)) return "";
  std::string key = BytesOf(file, 0, kKeyBytes + 1);
  return key.size() == kKeyBytes ? key : std::string();
}

// Made where there is none.
std::string OwnKey(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  fs::permissions(folder, fs::perms::owner_all, failed);
  if (std::string key = KeyIn(folder); !key.empty()) return key;
  std::array<unsigned char, kKeyBytes> fresh{};
  if (RAND_bytes(fresh.data(), fresh.size()) != 1) return "";
  WriteNew(folder / kKeyFile, std::string(fresh.begin(), fresh.end()), /*replace=*/false);
  return KeyIn(folder);
}

// A file's name that tells nothing without the key.
std::string Keyed(const std::string& key, std::string_view kind, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const std::string message = fmt::format("{}\n{}", kind, text);
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(),
       &size);
  std::string name;
  for (unsigned int i = 0; i < size; ++i) name += fmt::format("{:02x}", digest[i]);
  return name;
}

struct Marks {
  std::string inode;
  std::string content;  // empty for an empty file, which is like any other
};

std::optional<struct stat> RegularFile(const fs::path& data) {
  struct stat status = {};
  if (::stat(data.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status;
}

std::optional<Marks> MarksOf(const fs::path& data, const std::string& key) {
  const std::optional<struct stat> status = RegularFile(data);
  if (!status || key.empty()) return std::nullopt;
  Marks marks;
  marks.inode = Keyed(key, "inode", fmt::format("{} {}", status->st_dev, status->st_ino));
  const auto size = static_cast<std::uintmax_t>(status->st_size);
  if (size == 0) return marks;
  const std::uintmax_t tail = size > kEndBytes ? size - kEndBytes : 0;
  marks.content = Keyed(
      key, "content",
      fmt::format("{}\n", size) + BytesOf(data, 0, kEndBytes) + BytesOf(data, tail, kEndBytes));
  return marks;
}

struct Note {
  fs::path data;
  fs::path description;
};

std::optional<Note> NoteIn(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return std::nullopt;
  const nlohmann::json note =
      nlohmann::json::parse(BytesOf(file, 0, kLongestNote), nullptr, /*allow_exceptions=*/false);
  if (!note.is_object() || !note.contains("data") || !note.contains("description") ||
      !note["data"].is_string() || !note["description"].is_string()) {
    return std::nullopt;
  }
  Note found{note["data"].get<std::string>(), note["description"].get<std::string>()};
  if (fs::symlink_status(found.description, none).type() == fs::file_type::not_found) {
    return std::nullopt;
  }
  return found;
}

// A number that was given to another file after the data were removed is not theirs.
bool IsStillThere(const Note& note, const fs::path& data) {
  std::error_code none;
  return fs::equivalent(note.data, data, none) && !none;
}

}  // namespace

DataMemory::DataMemory(const fs::path& state) {
  if (!state.empty()) folder_ = state / kDataFolder;
}

void DataMemory::Remember(const fs::path& data, const fs::path& description) const {
  if (folder_.empty()) return;
  try {
    if (!RegularFile(data)) return;
    const std::optional<Marks> marks = MarksOf(data, OwnKey(folder_));
    if (!marks) return;
    const std::string note = nlohmann::json{{"data", fs::canonical(data).string()},
                                            {"description", fs::absolute(description).string()}}
                                 .dump() +
                             "\n";
    for (const std::string& name : {marks->inode, marks->content}) {
      if (!name.empty()) WriteNew(folder_ / name, note, /*replace=*/true);
    }
  } catch (const std::exception&) {
    return;  // what cannot be written is not remembered
  }
}

std::optional<fs::path> DataMemory::DescriptionOf(const fs::path& data) const {
  if (folder_.empty()) return std::nullopt;
  try {
    const std::optional<Marks> marks = MarksOf(data, KeyIn(folder_));
    if (!marks) return std::nullopt;
    if (const auto note = NoteIn(folder_ / marks->inode); note && IsStillThere(*note, data)) {
      return note->description;
    }
    if (marks->content.empty()) return std::nullopt;
    const std::optional<Note> note = NoteIn(folder_ / marks->content);
    return note ? std::optional(note->description) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace sordino
