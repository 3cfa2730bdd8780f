#include "sordino/ledger/testing/faulty_disk.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sordino/ledger/testing/faulty_disk_calls.h"

namespace sordino {
namespace {

constexpr std::size_t kSector = 512;

int CodeOf(DiskOperation operation) {
  switch (operation) {
    case DiskOperation::kMake:
      return SQLITE_CANTOPEN;
    case DiskOperation::kWrite:
      return SQLITE_IOERR_WRITE;
    case DiskOperation::kTruncate:
      return SQLITE_IOERR_TRUNCATE;
    case DiskOperation::kDelete:
      return SQLITE_IOERR_DELETE;
    case DiskOperation::kSync:
      return SQLITE_IOERR_FSYNC;
    case DiskOperation::kSyncFolder:
      return SQLITE_IOERR_DIR_FSYNC;
  }
  return SQLITE_IOERR;
}

int CodeOf(DiskFault fault, DiskOperation operation) {
  if (fault == DiskFault::kFull || fault == DiskFault::kShortWrite) return SQLITE_FULL;
  // What SQLite's own file system says where a folder does not let a journal be made.
  if (fault == DiskFault::kReadOnly && operation == DiskOperation::kMake) {
    return SQLITE_READONLY_DIRECTORY;
  }
  return CodeOf(operation);
}

bool IsOfAName(DiskOperation operation) {
  return operation == DiskOperation::kMake || operation == DiskOperation::kDelete;
}

}  // namespace

bool Applies(DiskFault fault, DiskOperation operation) {
  switch (fault) {
    case DiskFault::kNone:
      return false;
    case DiskFault::kPowerLoss:
      return true;
    case DiskFault::kWriteError:
      return operation == DiskOperation::kWrite || operation == DiskOperation::kTruncate;
    case DiskFault::kShortWrite:
      return operation == DiskOperation::kWrite;
    case DiskFault::kFull:
      return operation == DiskOperation::kWrite || operation == DiskOperation::kMake;
    case DiskFault::kSyncError:
      return operation == DiskOperation::kSync || operation == DiskOperation::kSyncFolder;
    case DiskFault::kDeleteError:
      return operation == DiskOperation::kDelete;
    case DiskFault::kReadOnly:
      return operation != DiskOperation::kSync && operation != DiskOperation::kSyncFolder;
  }
  return false;
}

FaultyDisk::FaultyDisk(const std::string& name) : name_(name), vfs_{} {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(FaultyDiskCalls::Handle);
  vfs_.mxPathname = 1024;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = FaultyDiskCalls::Open;
  vfs_.xDelete = FaultyDiskCalls::Delete;
  vfs_.xAccess = FaultyDiskCalls::Access;
  vfs_.xFullPathname = FaultyDiskCalls::FullPathname;
  vfs_.xRandomness = FaultyDiskCalls::Randomness;
  vfs_.xSleep = FaultyDiskCalls::Sleep;
  vfs_.xCurrentTime = FaultyDiskCalls::CurrentTime;
  if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) {
    throw std::runtime_error("SQLite does not take another file system.");
  }
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(&vfs_); }

void FaultyDisk::FailAt(std::int64_t number, DiskFault fault, bool lasts) {
  fail_at_ = number;
  fault_ = fault;
  fault_lasts_ = lasts;
}

void FaultyDisk::FailReadsFrom(std::int64_t number, bool lasts) {
  fail_reads_from_ = number;
  read_fault_lasts_ = lasts;
}

void FaultyDisk::Heal() {
  fault_ = DiskFault::kNone;
  fail_at_ = -1;
  fail_reads_from_ = -1;
}

void FaultyDisk::PowerOff() { has_power_ = false; }

int FaultyDisk::Next(DiskOperation operation) {
  if (!has_power_) return CodeOf(operation);
  const auto number = static_cast<std::int64_t>(operations_.size());
  operations_.push_back(operation);
  const bool is_due = fail_at_ >= 0 && (number == fail_at_ || (fault_lasts_ && number > fail_at_));
  if (!is_due || !Applies(fault_, operation)) return SQLITE_OK;
  has_failed_ = true;
  if (fault_ == DiskFault::kPowerLoss) has_power_ = false;
  return CodeOf(fault_, operation);
}

int FaultyDisk::NextRead() {
  if (!has_power_) return SQLITE_IOERR_READ;
  const std::int64_t number = reads_++;
  const bool is_due = fail_reads_from_ >= 0 && (number == fail_reads_from_ ||
                                                (read_fault_lasts_ && number > fail_reads_from_));
  has_failed_ = has_failed_ || is_due;
  return is_due ? SQLITE_IOERR_READ : SQLITE_OK;
}

FaultyDisk::FilePointer FaultyDisk::Find(const std::string& path) const {
  const auto entry = names_.find(path);
  return entry == names_.end() ? nullptr : entry->second;
}

// Without power: the change was on its way, and may survive.
int FaultyDisk::Make(const std::string& path, FilePointer* made) {
  const int code = Next(DiskOperation::kMake);
  if (code != SQLITE_OK && has_power_) return code;
  *made = std::make_shared<File>();
  changes_.push_back({.operation = DiskOperation::kMake, .file = *made, .path = path, .bytes = {}});
  if (code == SQLITE_OK) names_[path] = *made;
  return code;
}

int FaultyDisk::Write(const FilePointer& file, std::size_t offset, const std::string& bytes) {
  const bool had_power = has_power_;
  const int code = Next(DiskOperation::kWrite);
  std::string written = bytes;
  if (code != SQLITE_OK && has_power_) {
    if (fault_ != DiskFault::kShortWrite) return code;
    written.resize(bytes.size() / 2);
  }
  if (had_power) {
    Put(file->now, offset, written);
    changes_.push_back({.operation = DiskOperation::kWrite,
                        .file = file,
                        .path = {},
                        .offset = offset,
                        .bytes = std::move(written)});
  }
  return code;
}

int FaultyDisk::Truncate(const FilePointer& file, std::size_t size) {
  const bool had_power = has_power_;
  const int code = Next(DiskOperation::kTruncate);
  if (code != SQLITE_OK && has_power_) return code;
  if (had_power) {
    file->now.resize(size);
    changes_.push_back({.operation = DiskOperation::kTruncate,
                        .file = file,
                        .path = {},
                        .offset = size,
                        .bytes = {}});
  }
  return code;
}

int FaultyDisk::Sync(const FilePointer& file) {
  const int code = Next(DiskOperation::kSync);
  if (!has_power_) return code;
  std::erase_if(changes_, [&](const Change& change) {
    if (IsOfAName(change.operation) || change.file != file) return false;
    if (code == SQLITE_OK) Apply(change, file->durable);
    return true;
  });
  return code;
}

int FaultyDisk::SyncFolder() {
  const int code = Next(DiskOperation::kSyncFolder);
  if (!has_power_) return code;
  std::erase_if(changes_, [&](const Change& change) {
    if (!IsOfAName(change.operation)) return false;
    if (code == SQLITE_OK) Apply(change, durable_names_);
    return true;
  });
  return code;
}

int FaultyDisk::Delete(const std::string& path) {
  const bool had_power = has_power_;
  const int code = Next(DiskOperation::kDelete);
  if (code != SQLITE_OK && has_power_) return code;
  if (had_power) {
    names_.erase(path);
    changes_.push_back(
        {.operation = DiskOperation::kDelete, .file = nullptr, .path = path, .bytes = {}});
  }
  return code;
}

void FaultyDisk::Put(std::string& content, std::size_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  content.replace(offset, bytes.size(), bytes);
}

void FaultyDisk::Apply(const Change& change, std::string& content) {
  if (change.operation == DiskOperation::kWrite) Put(content, change.offset, change.bytes);
  if (change.operation == DiskOperation::kTruncate) content.resize(change.offset);
}

void FaultyDisk::Apply(const Change& change, Names& names) {
  if (change.operation == DiskOperation::kMake) names[change.path] = change.file;
  if (change.operation == DiskOperation::kDelete) names.erase(change.path);
}

// What is left of a write that did not survive whole.
void FaultyDisk::Tear(const Change& change, bool is_lost, std::string& content,
                      std::mt19937_64& random) {
  const std::size_t end = change.offset + change.bytes.size();
  // The size of a file may be durable before its bytes are.
  if (end > content.size() && random() % 4 == 0) {
    const bool is_zero = random() % 2 == 0;
    while (content.size() < end) content += is_zero ? '\0' : static_cast<char>(random());
  }
  for (std::size_t at = change.offset; at < end && !is_lost;) {
    const std::size_t next = std::min(end, (at / kSector + 1) * kSector);
    if (random() % 2 == 0) {
      Put(content, at, std::string_view(change.bytes).substr(at - change.offset, next - at));
    }
    at = next;
  }
}

DiskImage FaultyDisk::Survivors(std::uint64_t seed) const {
  enum Fate : std::uint8_t { kKept, kTorn, kLost };
  std::mt19937_64 random(seed);
  // The ends of the scale, one change against all others, and chance.
  const std::uint64_t way = seed % 6;
  const std::size_t chosen = changes_.empty() ? 0 : random() % changes_.size();
  Names names = durable_names_;
  std::map<const File*, std::string> contents;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    Fate fate = kKept;
    if (way == 0) fate = kLost;
    if (way == 2) fate = i == chosen ? kLost : kKept;
    if (way == 3) fate = i == chosen ? kKept : kLost;
    if (way >= 4) fate = static_cast<Fate>(random() % 3);
    if (fate == kTorn && change.operation != DiskOperation::kWrite) fate = kLost;
    if (IsOfAName(change.operation)) {
      if (fate == kKept) Apply(change, names);
      continue;
    }
    const File* const file = change.file.get();
    std::string& content = contents.try_emplace(file, file->durable).first->second;
    if (fate == kKept) Apply(change, content);
    if (fate != kKept && change.operation == DiskOperation::kWrite) {
      Tear(change, fate == kLost, content, random);
    }
  }
  DiskImage image;
  for (const auto& [path, file] : names) {
    const auto entry = contents.find(file.get());
    image[path] = entry == contents.end() ? file->durable : entry->second;
  }
  return image;
}

void FaultyDisk::Restore(const DiskImage& image) {
  names_.clear();
  for (const auto& [path, content] : image) {
    names_[path] = std::make_shared<File>();
    names_[path]->now = content;
    names_[path]->durable = content;
  }
  durable_names_ = names_;
  changes_.clear();
  operations_.clear();
  reads_ = 0;
  has_power_ = true;
  has_failed_ = false;
  Heal();
}

}  // namespace sordino
