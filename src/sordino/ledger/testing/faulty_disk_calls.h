// The functions of faulty_disk.h that SQLite calls. For faulty_disk.cc alone.
#ifndef SORDINO_LEDGER_TESTING_FAULTY_DISK_CALLS_H_
#define SORDINO_LEDGER_TESTING_FAULTY_DISK_CALLS_H_

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "sordino/ledger/testing/faulty_disk.h"

namespace sordino {

struct FaultyDiskCalls {
  struct Handle {
    sqlite3_file base;
    FaultyDisk* disk;
    FaultyDisk::FilePointer* file;  // SQLite frees the handle's memory without a destructor
    int lock;
    bool folder_to_sync;  // a journal that was made: its first sync is the folder's too
    bool is_temporary;    // has no name, and no power loss to survive
  };
  static Handle& Of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
  static FaultyDisk& Of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* base, int flags, int* out) {
    FaultyDisk& disk = Of(vfs);
    Handle& handle = Of(base);
    handle = Handle{};
    if (!disk.has_power_) return SQLITE_CANTOPEN;
    FaultyDisk::FilePointer file;
    if (path == nullptr) {
      handle.is_temporary = true;
      file = std::make_shared<FaultyDisk::File>();
    } else {
      file = disk.Find(path);
      if (file != nullptr && (flags & SQLITE_OPEN_EXCLUSIVE) != 0) return SQLITE_CANTOPEN;
      if (file == nullptr) {
        if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
        const int code = disk.Make(path, &file);
        if (code != SQLITE_OK) return code;
        handle.folder_to_sync = (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0;
      }
    }
    handle.disk = &disk;
    handle.file = new FaultyDisk::FilePointer(std::move(file));
    handle.base.pMethods = Methods();
    if (out != nullptr) *out = flags;
    return SQLITE_OK;
  }

  static int Close(sqlite3_file* base) {
    Handle& handle = Of(base);
    Unlock(base, SQLITE_LOCK_NONE);
    delete handle.file;
    handle.file = nullptr;
    return SQLITE_OK;
  }

  static int Read(sqlite3_file* base, void* to, int count, sqlite3_int64 offset) {
    Handle& handle = Of(base);
    const int code = handle.is_temporary ? SQLITE_OK : handle.disk->NextRead();
    if (code != SQLITE_OK) return code;
    const std::string& content = (*handle.file)->now;
    const auto begin = std::min(static_cast<std::size_t>(offset), content.size());
    const auto there = std::min(static_cast<std::size_t>(count), content.size() - begin);
    std::memcpy(to, content.data() + begin, there);
    if (there == static_cast<std::size_t>(count)) return SQLITE_OK;
    std::memset(static_cast<char*>(to) + there, 0, static_cast<std::size_t>(count) - there);
    return SQLITE_IOERR_SHORT_READ;
  }

  static int Write(sqlite3_file* base, const void* from, int count, sqlite3_int64 offset) {
    Handle& handle = Of(base);
    const std::string bytes(static_cast<const char*>(from), static_cast<std::size_t>(count));
    if (handle.is_temporary) {
      FaultyDisk::Put((*handle.file)->now, static_cast<std::size_t>(offset), bytes);
      return SQLITE_OK;
    }
    return handle.disk->Write(*handle.file, static_cast<std::size_t>(offset), bytes);
  }

  static int Truncate(sqlite3_file* base, sqlite3_int64 size) {
    Handle& handle = Of(base);
    if (handle.is_temporary) {
      (*handle.file)->now.resize(static_cast<std::size_t>(size));
      return SQLITE_OK;
    }
    return handle.disk->Truncate(*handle.file, static_cast<std::size_t>(size));
  }

  static int Sync(sqlite3_file* base, int /*flags*/) {
    Handle& handle = Of(base);
    if (handle.is_temporary) return SQLITE_OK;
    const int code = handle.disk->Sync(*handle.file);
    if (code != SQLITE_OK || !handle.folder_to_sync) return code;
    handle.folder_to_sync = false;
    // SQLite's own file system does not look at whether this one failed; without power nothing
    // goes on.
    handle.disk->SyncFolder();
    return handle.disk->has_power_ ? SQLITE_OK : SQLITE_IOERR_FSYNC;
  }

  static int FileSize(sqlite3_file* base, sqlite3_int64* size) {
    if (!Of(base).disk->has_power_) return SQLITE_IOERR_FSTAT;
    *size = static_cast<sqlite3_int64>((*Of(base).file)->now.size());
    return SQLITE_OK;
  }

  static int Lock(sqlite3_file* base, int level) {
    Handle& handle = Of(base);
    FaultyDisk::File& file = **handle.file;
    if (handle.lock >= level) return SQLITE_OK;
    const auto others = [&](const void* holder) { return holder != nullptr && holder != base; };
    if (others(file.exclusive)) return SQLITE_BUSY;
    if (level == SQLITE_LOCK_SHARED) {
      if (others(file.pending)) return SQLITE_BUSY;
      ++file.shared;
    } else if (level == SQLITE_LOCK_RESERVED) {
      if (others(file.reserved) || others(file.pending)) return SQLITE_BUSY;
      file.reserved = base;
    } else {
      if (others(file.reserved) || others(file.pending)) return SQLITE_BUSY;
      file.pending = base;  // stays while readers are waited for, as SQLite's own does
      if (file.shared > 1) {
        handle.lock = std::max(handle.lock, SQLITE_LOCK_PENDING);
        return SQLITE_BUSY;
      }
      file.exclusive = base;
    }
    handle.lock = level;
    return SQLITE_OK;
  }

  static int Unlock(sqlite3_file* base, int level) {
    Handle& handle = Of(base);
    FaultyDisk::File& file = **handle.file;
    if (handle.lock <= level) return SQLITE_OK;
    for (const void** holder : {&file.reserved, &file.pending, &file.exclusive}) {
      if (*holder == base) *holder = nullptr;
    }
    handle.lock = level;
    if (level != SQLITE_LOCK_NONE) return SQLITE_OK;
    --file.shared;
    if (const auto act = std::exchange(handle.disk->after_unlock_, nullptr)) {
      act();
      handle.disk->after_unlock_ = act;
    }
    return SQLITE_OK;
  }

  static int CheckReservedLock(sqlite3_file* base, int* is_reserved) {
    const FaultyDisk::File& file = **Of(base).file;
    *is_reserved = file.reserved != nullptr || file.pending != nullptr || file.exclusive != nullptr;
    return SQLITE_OK;
  }

  static int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int SectorSize(sqlite3_file*) { return 512; }
  // What SQLite's own file system promises: bytes beside a write stay as they are.
  static int DeviceCharacteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  static const sqlite3_io_methods* Methods() {
    static const sqlite3_io_methods kMethods = [] {
      sqlite3_io_methods methods{};
      methods.iVersion = 1;
      methods.xClose = Close;
      methods.xRead = Read;
      methods.xWrite = Write;
      methods.xTruncate = Truncate;
      methods.xSync = Sync;
      methods.xFileSize = FileSize;
      methods.xLock = Lock;
      methods.xUnlock = Unlock;
      methods.xCheckReservedLock = CheckReservedLock;
      methods.xFileControl = FileControl;
      methods.xSectorSize = SectorSize;
      methods.xDeviceCharacteristics = DeviceCharacteristics;
      return methods;
    }();
    return &kMethods;
  }

  static int Delete(sqlite3_vfs* vfs, const char* path, int sync_folder) {
    FaultyDisk& disk = Of(vfs);
    if (disk.has_power_ && disk.Find(path) == nullptr) return SQLITE_IOERR_DELETE_NOENT;
    const int code = disk.Delete(path);
    return code != SQLITE_OK || sync_folder == 0 ? code : disk.SyncFolder();
  }

  static int Access(sqlite3_vfs* vfs, const char* path, int flags, int* is_there) {
    FaultyDisk& disk = Of(vfs);
    if (!disk.has_power_) return SQLITE_IOERR_ACCESS;
    const FaultyDisk::FilePointer file = disk.Find(path);
    // As SQLite's own file system: an empty file does not exist.
    *is_there = file != nullptr && (flags != SQLITE_ACCESS_EXISTS || !file->now.empty());
    return SQLITE_OK;
  }

  static int FullPathname(sqlite3_vfs*, const char* path, int size, char* to) {
    sqlite3_snprintf(size, to, "%s", path);
    return SQLITE_OK;
  }
  static int Randomness(sqlite3_vfs*, int size, char* to) {
    sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
    return system->xRandomness(system, size, to);
  }
  // Nobody else runs, so waiting would change nothing.
  static int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
  static int CurrentTime(sqlite3_vfs*, double* days) {
    sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
    return system->xCurrentTime(system, days);
  }
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_FAULTY_DISK_CALLS_H_
