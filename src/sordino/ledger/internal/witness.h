// What this machine last saw of a ledger, kept apart from it.
//
// A ledger that is copied back from a backup is whole and too short: nothing inside it shows what
// is missing. So whoever charges a ledger leaves its number and hash in a small file of a folder of
// the user's, under the identity of the ledger; a ledger that no longer holds that entry is
// refused. A memory that cannot be read, locked or written refuses the charge.
//
// The order, under one lock for all copies of a ledger: the memory is compared with the ledger; the
// new sighting is written beside the old one and synced (Prepare); the ledger commits; the sighting
// takes its place and the folder is synced (Confirm); the charge is reported. A crash between the
// last two leaves a ledger that is one charge ahead of the memory, and nobody was told of that
// charge, so nothing was released for it: the ledger can be used further, and a copy without the
// charge lacks nothing. The memory is never ahead of the ledger.
#ifndef SORDINO_LEDGER_INTERNAL_WITNESS_H_
#define SORDINO_LEDGER_INTERNAL_WITNESS_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sordino {

// $SORDINO_STATE, or $XDG_STATE_HOME/sordino, or ~/.local/state/sordino; empty without any. Throws
// Error for a relative $SORDINO_STATE: it would be another folder for a command that is run
// elsewhere.
std::filesystem::path DefaultWitnessFolder();

// Makes the folder, closes it to others and tries to write there. Throws Error, with what to set,
// where heads cannot be remembered in it or others could write to it, and std::runtime_error where
// the disk is full.
void CheckWitnessFolder(const std::filesystem::path& folder);

struct Sighting {
  std::int64_t number = 0;
  std::string hash;
  friend bool operator==(const Sighting&, const Sighting&) = default;
};

// Held while it lives. A process that is killed lets go of it.
class WitnessLock {
 public:
  // Throws Error where another process does not let go of it.
  WitnessLock(const std::filesystem::path& file, std::chrono::milliseconds patience);
  ~WitnessLock();
  WitnessLock(const WitnessLock&) = delete;
  WitnessLock& operator=(const WitnessLock&) = delete;

 private:
  int descriptor_;
};

class Witness {
 public:
  // Throws Error for what is not the identity of a ledger.
  Witness(const std::filesystem::path& folder, const std::string& ledger);

  // None: this machine has never seen the ledger. Throws Error where something is in the place of
  // the file that cannot be read.
  std::optional<Sighting> Last() const;

  // The rest is for whoever holds the lock of this file.
  const std::filesystem::path& lock_file() const { return lock_file_; }
  // Before the ledger commits: what could go wrong later goes wrong here. Throws Error, or
  // std::runtime_error where the disk fails.
  void Prepare(const Sighting& seen) const;
  // After it has: durable when it returns. Throws std::runtime_error.
  void Confirm() const;

 private:
  std::filesystem::path file_;
  std::filesystem::path draft_;
  std::filesystem::path lock_file_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_INTERNAL_WITNESS_H_
