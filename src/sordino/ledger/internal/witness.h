// What this machine last saw of a ledger, kept apart from it.
//
// A ledger that is copied back from a backup is whole and too short: nothing inside it shows what
// is missing. So whoever writes or checks a ledger leaves its number and hash in a small file of a
// folder of the user's, under the identity of the ledger; a ledger that no longer holds that entry
// is refused. Where the folder cannot be written, nothing is charged. The file is written after the
// ledger's own sync and never says more than the ledger does.
#ifndef SORDINO_LEDGER_INTERNAL_WITNESS_H_
#define SORDINO_LEDGER_INTERNAL_WITNESS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sordino {

// $SORDINO_STATE, or $XDG_STATE_HOME/sordino, or ~/.local/state/sordino; empty without any.
std::filesystem::path DefaultWitnessFolder();

// Makes the folder and tries to write there. Throws Error, with what to set, where heads cannot be
// remembered in it, and std::runtime_error where the disk is full.
void CheckWitnessFolder(const std::filesystem::path& folder);

struct Sighting {
  std::int64_t number = 0;
  std::string hash;
};

class Witness {
 public:
  Witness(std::filesystem::path folder, const std::string& ledger);

  // Throws Error where something is in the place of the file that cannot be read or replaced.
  void CheckFile() const;
  std::optional<Sighting> Last() const;
  // Never throws, and never goes back.
  void Remember(const Sighting& seen);

 private:
  std::filesystem::path file_;  // empty: there is no folder
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_INTERNAL_WITNESS_H_
