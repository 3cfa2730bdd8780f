// The ledger that belongs to a dataset.
//
// A dataset at P (a file or a folder) may have a description: the file P.sordino.toml beside it, or
// sordino.toml in the folder that P lies in, which holds for all data in that folder. It names the
// ledger, relative to itself:
//
//   ledger = "visits-ledger.db"
//
// Then nothing is released from the data without that ledger. A folder's descriptions hold for the
// files that lie in it and the other way round: naming the folder instead of its files, or one file
// instead of the folder, does not avoid them.
//
// Data are recognised under other names too. Standard input ("-") that is a file is that file. Hard
// links, copies and data that were moved are those whose description was followed before on this
// machine (internal/data_memory.h). A file of which nobody knows whether it is a second name of
// described data (it has several hard links, and no description) is not released without a ledger.
// What comes out of a pipe has no description.
#ifndef SORDINO_LEDGER_DATA_DESCRIPTION_H_
#define SORDINO_LEDGER_DATA_DESCRIPTION_H_

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace sordino {

// Looks beside the path as it was given and where links lead to, and then for the same data under
// another name. Throws Error for a description that cannot be read or names no ledger, for an
// unknown key, and where two descriptions name different ledgers.
std::optional<std::filesystem::path> LedgerOfData(const std::filesystem::path& data);

// Which ledger a release from these private files is charged to: the one that was asked for, the
// one that a description names, or none. Throws Error where they are not the same one, and where
// none was asked for and one of the files may be a second name of described data. Remembers data
// with a description.
std::optional<std::filesystem::path> ChooseLedger(const std::string& asked_for,
                                                  std::span<const std::filesystem::path> data);

}  // namespace sordino

#endif  // SORDINO_LEDGER_DATA_DESCRIPTION_H_
