#include "sordino/ledger/internal/entry_rows.h"

#include "sordino/base/error.h"

namespace sordino::internal {

EntryRows::EntryRows(Database& database, const std::string& rest)
    : rows_(database, ("SELECT number, kind, time, run, event, failure, detail, previous, hash "
                       "FROM entries " +
                       rest)
                          .c_str()) {}

Entry EntryRows::Read() {
  Entry entry;
  entry.number = rows_.Integer(0);
  entry.kind = ParseEntryKind(rows_.Text(1));
  entry.time = rows_.Integer(2);
  entry.run = rows_.Text(3);
  entry.event = rows_.Text(4);
  entry.failure = rows_.Real(5);
  entry.detail = rows_.Text(6);
  entry.previous = rows_.Text(7);
  entry.hash = rows_.Text(8);
  if (entry.hash != EntryHash(entry)) throw Error("it was changed");
  return entry;
}

bool InsertEntry(Database& database, const Entry& entry) {
  Statement insert(database, "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.Bind(1, entry.number);
  insert.Bind(2, std::string(EntryKindName(entry.kind)));
  insert.Bind(3, entry.time);
  insert.Bind(4, entry.run);
  insert.Bind(5, entry.event);
  insert.Bind(6, entry.failure);
  insert.Bind(7, entry.detail);
  insert.Bind(8, entry.previous);
  insert.Bind(9, entry.hash);
  insert.Step();
  // A trigger that somebody added could swallow it.
  if (database.Number("SELECT changes()") != 1) return false;
  Statement head(database, "INSERT OR REPLACE INTO head VALUES (1, ?, ?)");
  head.Bind(1, entry.number);
  head.Bind(2, entry.hash);
  head.Step();
  return true;
}

}  // namespace sordino::internal
