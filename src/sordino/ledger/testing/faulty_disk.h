// A disk for tests that fails when it is told to: a file system of SQLite in memory.
//
// Every change (a file made, a write, a truncation, a deletion, a sync) has a number, from 0. At a
// chosen one the power fails or an error comes back. What a sync has not made durable when the
// power fails survives by chance: each change whole, torn at sectors of 512 bytes or not at all,
// whatever the order they were made in, and a file that was growing may have grown with garbage in
// it. The name of a file is durable once its folder was synced, which SQLite asks for when it makes
// a journal and, at synchronous = EXTRA, when it deletes one. A sync that fails forgets what it was
// to make durable, as Linux does: the next one succeeds and has not written it either.
//
// Handles of one process lock each other out as processes would. All of it belongs to one thread.
#ifndef SORDINO_LEDGER_TESTING_FAULTY_DISK_H_
#define SORDINO_LEDGER_TESTING_FAULTY_DISK_H_

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sordino {

enum class DiskOperation : std::uint8_t { kMake, kWrite, kTruncate, kDelete, kSync, kSyncFolder };

enum class DiskFault : std::uint8_t {
  kNone,
  kPowerLoss,    // any operation: nothing works from here on
  kWriteError,   // kWrite, kTruncate: nothing is written
  kShortWrite,   // kWrite: the first half is written, and the disk is full
  kFull,         // kMake, kWrite: nothing is written, and the disk is full
  kSyncError,    // kSync, kSyncFolder
  kDeleteError,  // kDelete
  kReadOnly,     // kMake, kWrite, kTruncate, kDelete: the folder lets nobody write
};
bool Applies(DiskFault fault, DiskOperation operation);

using DiskImage = std::map<std::string, std::string>;  // the content of files by their path

class FaultyDisk {
 public:
  // Registered with SQLite under the name for as long as it lives.
  explicit FaultyDisk(const std::string& name);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // At the operation of this number, if the fault applies to it, once; or at it and at every later
  // one that the fault applies to.
  void FailAt(std::int64_t number, DiskFault fault, bool lasts = false);
  // Every read from the one of this number on; reads are counted apart. Negative: none.
  void FailReadsFrom(std::int64_t number, bool lasts);
  void Heal();  // no further faults; what was lost is lost
  void PowerOff();
  // What would be on the disk if the power failed now, or did. The seed decides it: a multiple of 6
  // loses every change, one more than that keeps every one, two more loses one of them, three more
  // keeps one, and the others are chance.
  DiskImage Survivors(std::uint64_t seed) const;
  // The disk holds this, has power, has no faults and counts from 0. Handles must be closed.
  void Restore(const DiskImage& image);

  // Runs whenever a handle lets go of a file: what another process may do at that moment. It is not
  // called for what it does itself.
  void AfterUnlock(std::function<void()> act) { after_unlock_ = std::move(act); }

  bool HasFailed() const { return has_failed_; }
  bool has_power() const { return has_power_; }
  std::int64_t reads() const { return reads_; }
  const std::vector<DiskOperation>& operations() const { return operations_; }
  bool Exists(const std::string& path) const { return names_.count(path) != 0; }
  const std::string& name() const { return name_; }

 private:
  friend struct FaultyDiskCalls;

  struct File {
    std::string now;
    std::string durable;
    int shared = 0;  // handles at SHARED or above
    const void* reserved = nullptr;
    const void* pending = nullptr;
    const void* exclusive = nullptr;
  };
  using FilePointer = std::shared_ptr<File>;
  using Names = std::map<std::string, FilePointer>;
  // One change that no sync has made durable. A name that is made has a file; one that is deleted
  // has none.
  struct Change {
    DiskOperation operation = DiskOperation::kWrite;
    FilePointer file;
    std::string path;
    std::size_t offset = 0;  // of a write; the new size of a truncation
    std::string bytes;
  };
  // What becomes of the next operation: SQLITE_OK, or the code that SQLite gets.
  int Next(DiskOperation operation);
  int NextRead();

  FilePointer Find(const std::string& path) const;
  int Make(const std::string& path, FilePointer* made);
  int Write(const FilePointer& file, std::size_t offset, const std::string& bytes);
  int Truncate(const FilePointer& file, std::size_t size);
  int Sync(const FilePointer& file);
  int SyncFolder();
  int Delete(const std::string& path);

  static void Put(std::string& content, std::size_t offset, std::string_view bytes);
  static void Apply(const Change& change, std::string& content);
  static void Apply(const Change& change, Names& names);
  static void Tear(const Change& change, bool is_lost, std::string& content,
                   std::mt19937_64& random);

  std::string name_;
  sqlite3_vfs vfs_;
  Names names_;
  Names durable_names_;
  std::vector<Change> changes_;
  std::vector<DiskOperation> operations_;
  std::int64_t reads_ = 0;
  bool has_power_ = true;
  bool has_failed_ = false;
  DiskFault fault_ = DiskFault::kNone;
  std::int64_t fail_at_ = -1;
  bool fault_lasts_ = false;
  std::int64_t fail_reads_from_ = -1;
  bool read_fault_lasts_ = false;
  std::function<void()> after_unlock_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_FAULTY_DISK_H_
