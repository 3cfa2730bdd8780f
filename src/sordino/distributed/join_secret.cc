#include "sordino/distributed/join_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/distributed/internal/message_seal.h"

namespace sordino {
namespace {

std::string_view VariableText(const ReadVariable& read, const char* name) {
  const char* value = read(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// From its beginning: ranks that inherit one descriptor share its position.
std::string ReadDescriptor(int descriptor, std::string_view what) {
  std::string text(kLongestJoinSecret + 2, '\0');
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  if (got < 0) {
    throw Error(
        fmt::format("the join secret cannot be read from {}: {}.", what, std::strerror(errno)));
  }
  text.resize(static_cast<std::size_t>(got));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

std::string ReadInherited(std::string_view number) {
  int descriptor = -1;
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), descriptor);
  if (problem != std::errc() || end != number.data() + number.size() || descriptor < 0) {
    throw Error(fmt::format("{} is not a descriptor; --processes sets it, so unset it elsewhere.",
                            kJoinDescriptor));
  }
  // What this process starts is not a rank.
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return ReadDescriptor(descriptor, kJoinDescriptor);
}

std::string ReadSecretFile(const std::string& name) {
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) {
    throw Error(fmt::format("the file '{}' of {} cannot be opened: {}.", name, kJoinSecretFile,
                            std::strerror(errno)));
  }
  struct stat facts = {};
  const bool is_known = ::fstat(descriptor, &facts) == 0;
  std::string text;
  const bool is_private = is_known && S_ISREG(facts.st_mode) && (facts.st_mode & 077) == 0;
  if (is_private) text = ReadDescriptor(descriptor, name);
  ::close(descriptor);
  if (is_private) return text;
  throw Error(
      fmt::format("the file '{}' of {} must be a regular file that only its owner can read; 'chmod "
                  "600' it.",
                  name, kJoinSecretFile));
}

std::string ReadAny(const ReadVariable& read) {
  const std::string_view descriptor = VariableText(read, kJoinDescriptor);
  if (!descriptor.empty()) return ReadInherited(descriptor);
  const std::string_view secret = VariableText(read, kJoinSecret);
  const std::string_view file = VariableText(read, kJoinSecretFile);
  if (!secret.empty() && !file.empty()) {
    throw Error(fmt::format("{} and {} are both set in the environment; unset one of them.",
                            kJoinSecret, kJoinSecretFile));
  }
  if (!file.empty()) return ReadSecretFile(std::string(file));
  if (!secret.empty()) return std::string(secret);
  throw Error(fmt::format(
      "{} is not set in the environment, and without a secret ranks cannot tell each other from "
      "other programs; set it to the same on all ranks, as by 'export {}=$(openssl rand -hex 32)' "
      "before the launch, or name a file by {}.",
      kJoinSecret, kJoinSecret, kJoinSecretFile));
}

}  // namespace

std::string NewJoinSecret() { return internal::RandomHex(); }

std::string ReadJoinSecret(const ReadVariable& read) {
  std::string secret = ReadAny(read);
  if (secret.size() < kShortestJoinSecret || secret.size() > kLongestJoinSecret) {
    throw Error(fmt::format(
        "the join secret has {} characters; give one of {} to {} that nobody can guess, "
        "as 'openssl rand -hex 32' makes it.",
        secret.size(), kShortestJoinSecret, kLongestJoinSecret));
  }
  return secret;
}

std::string ReadJoinSecret() {
  return ReadJoinSecret([](const char* name) { return std::getenv(name); });
}

}  // namespace sordino
