// A store whose values only processes with the secret can write.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_AUTHENTICATED_STORE_H_
#define SORDINO_DISTRIBUTED_INTERNAL_AUTHENTICATED_STORE_H_

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sordino/distributed/communicator.h"

namespace sordino::internal {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

// What was read is not of a rank of this launch; one sentence, without a word of what it was.
class ForeignWords : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

// Anybody who reaches the port can read, write and delete in the inner store. A value stands there
// after its HMAC, of the whole name of its key and of itself; one that does not fit is not
// returned: ForeignWords is thrown. Whether a key is there, and what a counter says, is not
// authenticated: they may decide how long something is waited for, and nothing else.
class AuthenticatedStore : public c10d::Store {
 public:
  // `place` is the address of the inner store, for the sentence.
  AuthenticatedStore(StorePointer inner, std::string secret, std::string place);

  StorePointer clone() override;

  using c10d::Store::compareSet;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  // `expected` is empty: the value is set where the key is not there.
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<std::uint8_t>>& values) override;

  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  const std::chrono::milliseconds& getTimeout() const noexcept override;
  void setTimeout(const std::chrono::milliseconds& timeout) override;
  // What is appended has no HMAC of its own.
  bool hasExtendedApi() const override { return false; }

 private:
  std::vector<std::uint8_t> Signed(const std::string& key,
                                   const std::vector<std::uint8_t>& value) const;
  std::vector<std::uint8_t> Checked(const std::string& key,
                                    const std::vector<std::uint8_t>& found) const;

  StorePointer inner_;
  std::string secret_;
  std::string place_;
};

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_AUTHENTICATED_STORE_H_
