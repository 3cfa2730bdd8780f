// The tables of a ledger, and nothing beside them.
//
// A trigger or a view that somebody added could change or swallow what is written, and a table
// could hold anything, so a file with an object that is not ours, or without one that is, is
// refused.
#ifndef SORDINO_LEDGER_INTERNAL_SCHEMA_H_
#define SORDINO_LEDGER_INTERNAL_SCHEMA_H_

#include <string>

#include "sordino/ledger/internal/database.h"

namespace sordino::internal {

void MakeSchema(Database& database);

// What is wrong, as a clause without a full stop; empty: nothing.
std::string WrongSchema(Database& database);

}  // namespace sordino::internal

#endif  // SORDINO_LEDGER_INTERNAL_SCHEMA_H_
