// What somebody may do to the rows of a ledger with SQL, and what the refusal names.
#ifndef SORDINO_LEDGER_TESTING_LEDGER_EDITS_H_
#define SORDINO_LEDGER_TESTING_LEDGER_EDITS_H_

namespace sordino {

struct LedgerEdit {
  const char* name;
  const char* sql;
  const char* why;  // a part of the sentence
};

// Of a ledger with the entries 0 to 23: the budget, a run, twenty charges, a return and a note.
inline constexpr LedgerEdit kLedgerEdits[] = {

    {"Event", "UPDATE entries SET event = 'add-remove: pure(0.0125)' WHERE number = 5", "entry 5"},
    {"EventGone", "UPDATE entries SET event = '' WHERE number = 5", "entry 5"},
    {"Plan", "UPDATE entries SET event = 'add-remove: pure(0.125)' WHERE number = 1", "entry 1"},
    {"Budget", "UPDATE entries SET detail = replace(detail, '8', '9') WHERE number = 0", "entry 0"},
    {"Kind", "UPDATE entries SET kind = 'return' WHERE number = 5", "entry 5"},
    {"UnknownKind", "UPDATE entries SET kind = 'gift' WHERE number = 5", "entry 5"},
    {"Time", "UPDATE entries SET time = time + 1 WHERE number = 5", "entry 5"},
    {"Run", "UPDATE entries SET run = replace(run, 'a', 'b') || ' ' WHERE number = 5", "entry 5"},
    {"Failure", "UPDATE entries SET failure = 1e-300 WHERE number = 5", "entry 5"},
    {"FailureIsInfinite", "UPDATE entries SET failure = 9e999 WHERE number = 5", "entry 5"},
    {"Words", "UPDATE entries SET detail = replace(detail, 's', 'S') WHERE number = 5", "entry 5"},
    {"Hash", "UPDATE entries SET hash = previous WHERE number = 5", "entry 5"},
    {"Previous", "UPDATE entries SET previous = hash WHERE number = 5", "entry 5"},
    {"BytesForText", "UPDATE entries SET event = CAST(event AS BLOB) WHERE number = 5",
     "ledger.db"},
    {"TextForTime", "UPDATE entries SET time = 'noon' WHERE number = 5", "ledger.db"},
    {"ChargeTakenOut", "DELETE FROM entries WHERE number = 5", "entry 5"},
    {"ChargeTakenOutAndClosedUp",
     "DELETE FROM entries WHERE number = 5; UPDATE entries SET number = -number WHERE "
     "number > 5; UPDATE entries SET number = -number - 1 WHERE number < 0",
     "entry 5"},
    {"FirstTakenOut", "DELETE FROM entries WHERE number = 0", "entry 0"},
    {"LastTakenOut", "DELETE FROM entries WHERE number = 23", "missing"},
    {"LastTakenOutWithTheNumberOfTheHead",
     "DELETE FROM entries WHERE number = 23; UPDATE head SET number = 22", "head"},
    {"AllTakenOut", "DELETE FROM entries", "no entries"},
    {"Swapped",
     "UPDATE entries SET number = -1 WHERE number = 5; UPDATE entries SET number = 5 WHERE "
     "number = 6; UPDATE entries SET number = 6 WHERE number = -1",
     "entry 5"},
    {"Doubled",
     "INSERT INTO entries SELECT 24, kind, time, run, event, failure, detail, previous, "
     "hash FROM entries WHERE number = 23",
     "entry 24"},
    {"NumberBelowZero",
     "INSERT INTO entries SELECT -1, kind, time, run, event, failure, detail, previous, "
     "hash FROM entries WHERE number = 5",
     "ledger.db"},
    {"HeadNumber", "UPDATE head SET number = 22", "head"},
    {"HeadHash", "UPDATE head SET hash = replace(hash, 'a', 'b') || '0'", "head"},
    {"HeadGone", "DELETE FROM head", "head"},
    {"TableGone", "DROP TABLE head", "ledger"},
    {"ColumnGone", "ALTER TABLE entries RENAME COLUMN failure TO success", "ledger"}};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_LEDGER_EDITS_H_
