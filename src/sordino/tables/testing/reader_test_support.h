// What the tests of the readers share: bytes, files of their own, and the sentences of errors.
#ifndef SORDINO_TABLES_TESTING_READER_TEST_SUPPORT_H_
#define SORDINO_TABLES_TESTING_READER_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/tables/data_error.h"

namespace sordino {

using Bytes = std::vector<std::byte>;

inline Bytes ToBytes(std::string_view text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline Bytes ToBytes(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

inline Bytes Joined(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The sentence of an Error, and in parentheses the detail of a DataError.
inline std::string WithDetail(const Error& error) {
  const auto* const about_data = dynamic_cast<const DataError*>(&error);
  return about_data == nullptr ? std::string(error.what())
                               : std::string(error.what()) + " (" + about_data->detail() + ")";
}

// WithDetail of the Error that `action` throws; "no error" when it throws none. Any other
// exception fails the test by itself.
template <typename Action>
std::string SentenceOf(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return WithDetail(error);
  }
  return "no error";
}

// Runs `parse` on copies of every proper prefix from `shortest` bytes on. A copy of its own lets
// the address sanitizer see a read past the end.
template <typename Parse>
void ExpectEveryPrefixIsRefused(const Bytes& whole, std::size_t shortest, const Parse& parse) {
  ASSERT_NO_THROW(parse(whole));
  for (std::size_t size = shortest; size < whole.size(); ++size) {
    const Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse(prefix), Error) << "the first " << size << " of " << whole.size();
  }
}

// A file or a folder of the real datasets, where there is one.
inline std::optional<std::filesystem::path> RealData(const char* name) {
  const char* const folder = std::getenv("SORDINO_DATA");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  std::filesystem::path path = std::filesystem::path(folder) / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

}  // namespace sordino

#endif  // SORDINO_TABLES_TESTING_READER_TEST_SUPPORT_H_
