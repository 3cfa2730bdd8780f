#include "sordino/distributed/internal/authenticated_store.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/distributed/internal/message_seal.h"

namespace sordino::internal {
namespace {

using StoredBytes = std::vector<std::uint8_t>;

std::string_view ViewOf(const StoredBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string MacOfValue(const std::string& secret, const std::string& key, std::string_view value) {
  return Mac(secret, {"value", key, value});
}

}  // namespace

AuthenticatedStore::AuthenticatedStore(StorePointer inner, std::string secret, std::string place)
    : inner_(std::move(inner)), secret_(std::move(secret)), place_(std::move(place)) {}

StorePointer AuthenticatedStore::clone() {
  return c10::make_intrusive<AuthenticatedStore>(inner_->clone(), secret_, place_);
}

StoredBytes AuthenticatedStore::Signed(const std::string& key, const StoredBytes& value) const {
  const std::string mac = MacOfValue(secret_, key, ViewOf(value));
  StoredBytes whole(mac.begin(), mac.end());
  whole.insert(whole.end(), value.begin(), value.end());
  return whole;
}

StoredBytes AuthenticatedStore::Checked(const std::string& key, const StoredBytes& found) const {
  const std::string_view whole = ViewOf(found);
  if (whole.size() >= kMacBytes) {
    const std::string_view value = whole.substr(kMacBytes);
    if (IsSameMac(whole.substr(0, kMacBytes), MacOfValue(secret_, key, value))) {
      return {value.begin(), value.end()};
    }
  }
  throw ForeignWords(fmt::format(
      "what stands at {}, where the ranks meet, was not written with the join secret of this rank, "
      "and nothing of it was used; give all ranks the same secret, and look for another program "
      "that writes there.",
      place_));
}

void AuthenticatedStore::set(const std::string& key, const StoredBytes& value) {
  inner_->set(key, Signed(key, value));
}

StoredBytes AuthenticatedStore::compareSet(const std::string& key, const StoredBytes& expected,
                                           const StoredBytes& desired) {
  SORDINO_CHECK(expected.empty(), "a value of the store is set once");
  const StoredBytes wanted = Signed(key, desired);
  const StoredBytes found = inner_->compareSet(key, expected, wanted);
  return Checked(key, found);
}

StoredBytes AuthenticatedStore::get(const std::string& key) {
  return Checked(key, inner_->get(key));
}

std::vector<StoredBytes> AuthenticatedStore::multiGet(const std::vector<std::string>& keys) {
  std::vector<StoredBytes> values = inner_->multiGet(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) values[i] = Checked(keys[i], values[i]);
  return values;
}

void AuthenticatedStore::multiSet(const std::vector<std::string>& keys,
                                  const std::vector<StoredBytes>& values) {
  std::vector<StoredBytes> wanted;
  wanted.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) wanted.push_back(Signed(keys[i], values[i]));
  inner_->multiSet(keys, wanted);
}

std::int64_t AuthenticatedStore::add(const std::string& key, std::int64_t value) {
  return inner_->add(key, value);
}
bool AuthenticatedStore::deleteKey(const std::string& key) { return inner_->deleteKey(key); }
bool AuthenticatedStore::check(const std::vector<std::string>& keys) { return inner_->check(keys); }
std::int64_t AuthenticatedStore::getNumKeys() { return inner_->getNumKeys(); }
void AuthenticatedStore::wait(const std::vector<std::string>& keys) { inner_->wait(keys); }
void AuthenticatedStore::wait(const std::vector<std::string>& keys,
                              const std::chrono::milliseconds& timeout) {
  inner_->wait(keys, timeout);
}
const std::chrono::milliseconds& AuthenticatedStore::getTimeout() const noexcept {
  return inner_->getTimeout();
}
void AuthenticatedStore::setTimeout(const std::chrono::milliseconds& timeout) {
  inner_->setTimeout(timeout);
}

}  // namespace sordino::internal
