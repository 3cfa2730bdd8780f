#include "sordino/ledger/internal/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <stdexcept>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

std::string Quoted(const std::filesystem::path& file) {
  return fmt::format("the ledger '{}'", file.string());
}

}  // namespace

Database::Database(const std::filesystem::path& file, Mode mode, const std::string& vfs,
                   int patience_ms)
    : file_(file) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  // An absolute path is never taken for a URI ("file:...") or for a database in memory
  // (":memory:", ""), and does not follow the process to another folder.
  const int code = sqlite3_open_v2(std::filesystem::absolute(file).c_str(), &handle_, flags,
                                   vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) {
    sqlite3_close_v2(handle_);
    handle_ = nullptr;
    Fail(code);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, patience_ms);
  // A file that was made to hurt must not run anything.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::Fail(int code) const {
  const std::string name = Quoted(file_);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:  // the statements are ours, so it is the tables that are wrong
      throw Error(fmt::format(
          "{} is damaged ({}); put back the newest copy that 'sordino ledger verify' accepts, and "
          "count everything that was released since as spent.",
          name, sqlite3_errstr(code)));
    case SQLITE_NOTADB:
      throw Error(fmt::format("{} is not a ledger; make one with 'sordino ledger init'.", name));
    case SQLITE_CANTOPEN:
      throw Error(fmt::format(
          "{} cannot be opened; give the path of a ledger in a folder that can be written, or make "
          "one with 'sordino ledger init'.",
          name));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error(fmt::format(
          "{} cannot be written, so nothing can be charged to it and nothing was released; allow "
          "writing to the file and to its folder.",
          name));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw std::runtime_error(
          fmt::format("{} is locked by another program and stayed so; nothing was charged.", name));
    case SQLITE_FULL:
      throw std::runtime_error(
          fmt::format("the disk of {} is full; nothing more is released.", name));
    default:
      break;
  }
  throw std::runtime_error(
      fmt::format("{} cannot be read or written safely ({}); nothing more is "
                  "released.",
                  name, sqlite3_errstr(code)));
}

void Database::Execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(code);
}

std::int64_t Database::Number(const char* sql) {
  Statement statement(*this, sql);
  return statement.Step() ? statement.Integer(0) : 0;
}

std::string Database::Text(const char* sql) {
  Statement statement(*this, sql);
  return statement.Step() ? statement.Text(0) : "";
}

bool Database::HasMoved() {
  int moved = 0;
  const int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  // A file system without an answer has no files that could move.
  return code == SQLITE_OK && moved != 0;
}

void Database::Forget() { sqlite3_db_release_memory(handle_); }

Statement::Statement(Database& database, const char* sql) : database_(database) {
  const int code = sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr);
  if (code == SQLITE_ERROR) {
    // A table or a column is not there: some other database.
    throw Error(
        fmt::format("{} is not a ledger, or its tables were changed; make one with "
                    "'sordino ledger init'.",
                    Quoted(database.file())));
  }
  if (code != SQLITE_OK) database.Fail(code);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::Bind(int place, std::int64_t value) {
  const int code = sqlite3_bind_int64(statement_, place, value);
  if (code != SQLITE_OK) database_.Fail(code);
}

void Statement::Bind(int place, double value) {
  const int code = sqlite3_bind_double(statement_, place, value);
  if (code != SQLITE_OK) database_.Fail(code);
}

void Statement::Bind(int place, const std::string& value) {
  const int code = sqlite3_bind_text64(statement_, place, value.data(), value.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) database_.Fail(code);
}

bool Statement::Step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.Fail(code);
  return false;
}

void Statement::CheckType(int column, int type) {
  if (sqlite3_column_type(statement_, column) != type) throw WrongType();
}

std::int64_t Statement::Integer(int column) {
  CheckType(column, SQLITE_INTEGER);
  return sqlite3_column_int64(statement_, column);
}

double Statement::Real(int column) {
  CheckType(column, SQLITE_FLOAT);
  return sqlite3_column_double(statement_, column);
}

std::string Statement::Text(int column) {
  CheckType(column, SQLITE_TEXT);
  const unsigned char* const text = sqlite3_column_text(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  database_.Execute(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // An error may have rolled it back already; a rollback that fails leaves a journal, which the
  // next one who opens the file plays back.
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::Commit() {
  database_.Execute("COMMIT");
  open_ = false;
}

}  // namespace sordino::internal
