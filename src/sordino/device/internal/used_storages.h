// The memory that operations use and did not make themselves.
#ifndef SORDINO_DEVICE_INTERNAL_USED_STORAGES_H_
#define SORDINO_DEVICE_INTERNAL_USED_STORAGES_H_

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/Storage.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace sordino::internal {

// Watches every operation of libtorch in this process, on any thread, from construction on. A
// storage that is an argument of an operation before it was the result of one was made by somebody
// else, and is referred to from then on. One watch at a time.
class UsedStorages {
 public:
  UsedStorages();
  ~UsedStorages();
  UsedStorages(const UsedStorages&) = delete;
  UsedStorages& operator=(const UsedStorages&) = delete;

  // Ends the watch.
  std::vector<c10::Storage> Take();

 private:
  void See(const c10::IValue& value, bool is_result);
  void SeeTensor(const at::Tensor& tensor, bool is_result);
  void Stop();

  static UsedStorages* active_;
  static std::mutex mutex_;
  at::CallbackHandle handle_ = 0;
  bool is_watching_ = false;
  std::unordered_set<const void*> made_;
  std::unordered_map<const void*, c10::Storage> used_;
};

}  // namespace sordino::internal

#endif  // SORDINO_DEVICE_INTERNAL_USED_STORAGES_H_
