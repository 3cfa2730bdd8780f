#include "sordino/device/internal/used_storages.h"

#include <ATen/core/Tensor.h>
#include <ATen/functorch/BatchedTensorImpl.h>

#include <memory>
#include <utility>

#include "sordino/base/check.h"

namespace sordino::internal {

UsedStorages* UsedStorages::active_ = nullptr;
std::mutex UsedStorages::mutex_;

UsedStorages::UsedStorages() {
  const std::lock_guard<std::mutex> lock(mutex_);
  SORDINO_CHECK(active_ == nullptr, "the storages of two recordings are watched at once");
  active_ = this;
  is_watching_ = true;
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
            const std::lock_guard<std::mutex> seen(mutex_);
            if (active_ == nullptr) return nullptr;
            for (const c10::IValue& input : call.inputs()) active_->See(input, false);
            return nullptr;
          },
          [](const at::RecordFunction& call, at::ObserverContext* /*context*/) {
            const std::lock_guard<std::mutex> seen(mutex_);
            if (active_ == nullptr) return;
            for (const c10::IValue& output : call.outputs()) active_->See(output, true);
          })
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

UsedStorages::~UsedStorages() { Stop(); }

void UsedStorages::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_watching_) return;
    is_watching_ = false;
    active_ = nullptr;
  }
  at::removeCallback(handle_);
}

void UsedStorages::See(const c10::IValue& value, bool is_result) {
  if (value.isTensor()) {
    SeeTensor(value.toTensor(), is_result);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) SeeTensor(tensor, is_result);
  } else if (value.isList()) {
    for (const c10::IValue& entry : value.toListRef()) See(entry, is_result);
  } else if (value.isTuple()) {
    for (const c10::IValue& entry : value.toTupleRef().elements()) See(entry, is_result);
  }
}

void UsedStorages::SeeTensor(const at::Tensor& tensor, bool is_result) {
  if (!tensor.defined()) return;
  if (const auto* wrapped = at::functorch::maybeGetBatchedImpl(tensor)) {
    SeeTensor(wrapped->value(), is_result);
    return;
  }
  if (!tensor.has_storage()) return;
  const void* const storage = tensor.storage().unsafeGetStorageImpl();
  if (made_.contains(storage)) return;
  if (used_.contains(storage)) return;
  if (is_result) {
    made_.insert(storage);
  } else {
    used_.emplace(storage, tensor.storage());
  }
}

std::vector<c10::Storage> UsedStorages::Take() {
  Stop();
  std::vector<c10::Storage> storages;
  storages.reserve(used_.size());
  for (auto& [address, storage] : used_) storages.push_back(std::move(storage));
  used_.clear();
  return storages;
}

}  // namespace sordino::internal
