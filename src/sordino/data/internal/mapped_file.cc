#include "sordino/data/internal/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>

#include "sordino/base/shown_text.h"

namespace sordino::internal {
namespace {

// Empty where there is nothing to map.
std::span<const std::byte> MapWhole(int file) {
  struct stat facts = {};
  if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0) return {};
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size > std::numeric_limits<std::size_t>::max()) return {};
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (begin == MAP_FAILED) return {};
  return {static_cast<const std::byte*>(begin), static_cast<std::size_t>(size)};
}

constexpr int kUnreadable = 2;  // the exit code of a user's mistake
constexpr std::size_t kMaxFiles = 64;

// What the handler may look at: it runs between any two instructions of any thread.
std::array<std::atomic<const MappedFile*>, kMaxFiles> mapped_files;
static_assert(std::atomic<const MappedFile*>::is_always_lock_free);

struct sigaction action_before;

void OnUnreadablePage(int signal, siginfo_t* facts, void* /*context*/) {
  const auto* const address = static_cast<const std::byte*>(facts->si_addr);
  for (const auto& entry : mapped_files) {
    const MappedFile* const file = entry.load();
    // Signals that a process sends have no address.
    if (facts->si_code <= 0 || file == nullptr || !file->Holds(address)) continue;
    const std::string_view sentence = file->sentence();
    // Nothing can be done where it cannot be written.
    static_cast<void>(!::write(STDERR_FILENO, sentence.data(), sentence.size()));
    ::_exit(kUnreadable);
  }
  // The instruction is tried again, and the signal goes to whoever had it before.
  ::sigaction(signal, &action_before, nullptr);
}

void WatchForUnreadablePages() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = &OnUnreadablePage;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &action_before);
  });
}

// Whether there was a place for it.
bool Register(const MappedFile* file) {
  for (auto& entry : mapped_files) {
    const MappedFile* none = nullptr;
    if (entry.compare_exchange_strong(none, file)) return true;
  }
  return false;
}

}  // namespace

MappedFile::MappedFile(std::span<const std::byte> bytes, std::string sentence)
    : bytes_(bytes), sentence_(std::move(sentence)) {}

bool MappedFile::Holds(const std::byte* address) const {
  const std::less<> before;
  return !before(address, bytes_.data()) && before(address, bytes_.data() + bytes_.size());
}

std::shared_ptr<const MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  const std::span<const std::byte> bytes = MapWhole(file);
  ::close(file);  // the mapping stays
  if (bytes.empty()) return nullptr;
  WatchForUnreadablePages();
  std::shared_ptr<const MappedFile> mapped(new MappedFile(
      bytes, "sordino: the file '" + ShownText(path.string()) +
                 "' was cut, or its disk cannot be read, while its records were used; put it back "
                 "and start again, or resume the run.\n"));
  return Register(mapped.get()) ? mapped : nullptr;
}

MappedFile::~MappedFile() {
  for (auto& entry : mapped_files) {
    const MappedFile* self = this;
    entry.compare_exchange_strong(self, nullptr);
  }
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT
}

}  // namespace sordino::internal
