#include "sordino/ledger/internal/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sordino::internal {
namespace {

struct SchemaObject {
  const char* type;
  const char* name;
  const char* sql;  // as SQLite keeps it
};

constexpr std::array<SchemaObject, 4> kObjects = {{
    {"table", "entries", R"sql(CREATE TABLE entries(
  number INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  time INTEGER NOT NULL,
  run TEXT NOT NULL,
  event TEXT NOT NULL,
  failure REAL NOT NULL,
  detail TEXT NOT NULL,
  previous TEXT NOT NULL,
  hash TEXT NOT NULL))sql"},
    {"table", "head",
     R"sql(CREATE TABLE head(id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL,
  hash TEXT NOT NULL))sql"},
    {"trigger", "entries_stay_as_they_are",
     R"sql(CREATE TRIGGER entries_stay_as_they_are BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END)sql"},
    {"trigger", "entries_stay",
     R"sql(CREATE TRIGGER entries_stay BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never removed'); END)sql"},
}};
// "Sord", so that `file` and others can tell what the database is.
constexpr const char* kApplication = "PRAGMA application_id = 0x536f7264";

// Somebody else chose the name, and it may speak to a terminal.
std::string Escaped(std::string_view name) {
  constexpr std::size_t kLongestName = 80;
  std::string text;
  for (const char c : name.substr(0, kLongestName)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\';
    text += is_plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text;
}

}  // namespace

void MakeSchema(Database& database) {
  database.Execute(kApplication);
  for (const SchemaObject& object : kObjects) database.Execute(object.sql);
}

std::string WrongSchema(Database& database) {
  std::size_t known = 0;
  Statement rows(database, "SELECT type, name, coalesce(sql, '') FROM sqlite_master");
  while (rows.Step()) {
    const std::string type = rows.Text(0);
    const std::string name = rows.Text(1);
    const auto* const ours = std::find_if(
        kObjects.begin(), kObjects.end(),
        [&](const SchemaObject& object) { return type == object.type && name == object.name; });
    if (ours == kObjects.end()) {
      return fmt::format("it holds the {} '{}', which is not part of a ledger", Escaped(type),
                         Escaped(name));
    }
    if (rows.Text(2) != ours->sql) return fmt::format("its {} {} was changed", type, name);
    ++known;
  }
  return known == kObjects.size() ? "" : "one of its tables or triggers is missing";
}

}  // namespace sordino::internal
