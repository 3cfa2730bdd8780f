#include "sordino/distributed/internal/group_store.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "sordino/distributed/communicator.h"

C10_DECLARE_int(caffe2_log_level);

namespace sordino::internal {
namespace {

// c10d logs pages of addresses for what is told here in a sentence. They are there for who asks.
void SilenceLogs() {
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
}

// A peer that has closed its connection is an error of the write, not the end of this process.
void IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }

// The HMAC is of the whole name.
StorePointer Authenticated(const StorePointer& store, const std::string& secret,
                           const std::string& place, int restart) {
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("sordino/{}", restart),
      c10::make_intrusive<AuthenticatedStore>(store, secret, place));
}

}  // namespace

StorePointer OpenGroupStore(const LaunchEnvironment& environment, const std::string& secret,
                            std::chrono::milliseconds timeout) {
  SilenceLogs();
  IgnoreBrokenPipes();
  c10d::TCPStoreOptions options;
  options.port = environment.port;
  options.waitWorkers = false;
  options.timeout = timeout / 2;  // it is tried twice
  options.isServer = environment.rank == 0 && !environment.is_hosted;
  std::optional<ListeningSocket> socket;
  if (options.isServer) {
    socket.emplace(environment.address, environment.port);
    options.masterListenFd = socket->Release();
  }
  try {
    return Authenticated(c10::make_intrusive<c10d::TCPStore>(environment.address, options), secret,
                         fmt::format("{}:{}", environment.address, environment.port),
                         environment.restart);
  } catch (const c10::Error&) {
    throw CommunicationError(fmt::format(
        "rank {} of {} could not reach rank 0 at {}:{} within {} s; look whether rank 0 runs, and "
        "whether MASTER_ADDR and MASTER_PORT are the same for all ranks.",
        environment.rank, environment.size, environment.address, environment.port,
        timeout.count() / 1000));
  }
}

StorePointer HostGroupStore(ListeningSocket& socket, const std::string& secret) {
  SilenceLogs();
  IgnoreBrokenPipes();
  c10d::TCPStoreOptions options;
  options.port = socket.port();
  options.waitWorkers = false;
  options.isServer = true;
  options.masterListenFd = socket.Release();
  return Authenticated(c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options), secret,
                       fmt::format("127.0.0.1:{}", options.port), 0);
}

StorePointer StoreOfGroup(const StorePointer& store, const std::string& nonce) {
  return c10::make_intrusive<c10d::PrefixStore>(nonce, store);
}

std::string BeatKey(int rank) { return fmt::format("beat/{}", rank); }

std::string SetFirst(c10d::Store& store, const std::string& key, const std::string& text) {
  return store.compareSet(key, std::string(), text);
}

}  // namespace sordino::internal
