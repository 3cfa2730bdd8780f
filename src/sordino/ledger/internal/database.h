// The few things that a ledger asks of SQLite.
//
// Every call checks its result. What SQLite reports becomes one sentence: Error for a file that is
// damaged, is not a database or may not be written, std::runtime_error for a disk that fails, is
// full, or stays locked.
#ifndef SORDINO_LEDGER_INTERNAL_DATABASE_H_
#define SORDINO_LEDGER_INTERNAL_DATABASE_H_

#include <cstdint>
#include <filesystem>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace sordino::internal {

// A column has another type than was written: only damage makes it so.
struct WrongType {};

class Database {
 public:
  // Also those who only look open for writing where they may: a journal that a crash left behind
  // has to be played back first.
  enum class Mode : std::uint8_t { kOpen, kCreate };
  Database(const std::filesystem::path& file, Mode mode, const std::string& vfs, int patience_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void Execute(const char* sql);
  // The first column of the first row.
  std::int64_t Number(const char* sql);
  std::string Text(const char* sql);
  // Whether the path leads to another file now, or to none.
  bool HasMoved();
  // What was read before is read again: a file that was written over from outside may look
  // unchanged to SQLite.
  void Forget();

  const std::filesystem::path& file() const { return file_; }
  sqlite3* handle() const { return handle_; }
  // Throws what the result code means.
  [[noreturn]] void Fail(int code) const;

 private:
  std::filesystem::path file_;
  sqlite3* handle_ = nullptr;
};

// A prepared statement; values are bound from 1, columns read from 0.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Bind(int place, std::int64_t value);
  void Bind(int place, double value);
  void Bind(int place, const std::string& value);
  // False when there is no further row.
  bool Step();
  // Throw WrongType.
  std::int64_t Integer(int column);
  double Real(int column);
  std::string Text(int column);

 private:
  void CheckType(int column, int type);

  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

// Rolls back unless it was committed. BEGIN IMMEDIATE: nobody else writes until it ends.
class Transaction {
 public:
  enum class Kind : std::uint8_t { kRead, kWrite };
  Transaction(Database& database, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Durable when it returns.
  void Commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace sordino::internal

#endif  // SORDINO_LEDGER_INTERNAL_DATABASE_H_
