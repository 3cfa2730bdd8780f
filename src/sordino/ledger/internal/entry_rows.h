// Entries as rows of the database.
#ifndef SORDINO_LEDGER_INTERNAL_ENTRY_ROWS_H_
#define SORDINO_LEDGER_INTERNAL_ENTRY_ROWS_H_

#include <cstdint>
#include <string>

#include "sordino/ledger/entry.h"
#include "sordino/ledger/internal/database.h"

namespace sordino::internal {

// Entries that meet a condition, in the order of their numbers.
class EntryRows {
 public:
  // `rest` is what follows "SELECT ... FROM entries", with places for the values below.
  EntryRows(Database& database, const std::string& rest);
  void Bind(int place, std::int64_t value) { rows_.Bind(place, value); }
  void Bind(int place, const std::string& value) { rows_.Bind(place, value); }

  // False when there is no further one.
  bool Step() { return rows_.Step(); }
  std::int64_t Number() { return rows_.Integer(0); }
  // Throws Error where the entry is not what its hash says, and WrongType.
  Entry Read();

 private:
  Statement rows_;
};

// Into the table and its head. False where the database did not take it.
bool InsertEntry(Database& database, const Entry& entry);

}  // namespace sordino::internal

#endif  // SORDINO_LEDGER_INTERNAL_ENTRY_ROWS_H_
