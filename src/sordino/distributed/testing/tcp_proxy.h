// A network between ranks that can fail, for tests: passes on what comes to its port to another one
// of this machine, until it is told to drop everything.
#ifndef SORDINO_DISTRIBUTED_TESTING_TCP_PROXY_H_
#define SORDINO_DISTRIBUTED_TESTING_TCP_PROXY_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/distributed/internal/listening_socket.h"

namespace sordino {

enum class NetworkFailure { kNone, kDrops, kCloses };

class TcpProxy {
 public:
  explicit TcpProxy(std::uint16_t target)
      : target_(target),
        socket_("127.0.0.1", 0),
        port_(socket_.port()),
        listening_(socket_.Release()),
        thread_([this] { Run(); }) {}
  ~TcpProxy() {
    has_ended_ = true;
    thread_.join();
    Close();
    ::close(listening_);
  }
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::uint16_t port() const { return port_; }
  // Nothing is passed on from now on; connections stay as they are, or are closed.
  void Fail(NetworkFailure how) { failure_ = how; }

 private:
  void Accept() {
    const int client = ::accept(listening_, nullptr, nullptr);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(target_);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    pairs_.emplace_back(client, server);
    pairs_.emplace_back(server, client);
  }

  void Pass(int from, int to) {
    std::array<char, 65536> bytes{};
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more =
          ::send(to, bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (more <= 0) return;
      sent += more;
    }
    if (got == 0) ::shutdown(to, SHUT_WR);
  }

  void Run() {
    while (!has_ended_) {
      if (failure_ != NetworkFailure::kNone) {
        if (failure_ == NetworkFailure::kCloses) Close();
        ::usleep(10'000);
        continue;
      }
      std::vector<pollfd> waiting = {{listening_, POLLIN, 0}};
      for (const auto& [from, to] : pairs_) waiting.push_back({from, POLLIN, 0});
      if (::poll(waiting.data(), waiting.size(), 20) <= 0) continue;
      for (std::size_t i = 1; i < waiting.size(); ++i) {
        if (waiting[i].revents != 0) Pass(pairs_[i - 1].first, pairs_[i - 1].second);
      }
      if (waiting[0].revents != 0) Accept();
    }
  }

  void Close() {
    // Each connection stands there in both directions.
    for (std::size_t i = 0; i < pairs_.size(); i += 2) {
      ::close(pairs_[i].first);
      ::close(pairs_[i].second);
    }
    pairs_.clear();
  }

  std::uint16_t target_;
  internal::ListeningSocket socket_;
  std::uint16_t port_;
  int listening_;
  std::vector<std::pair<int, int>> pairs_;
  std::atomic<NetworkFailure> failure_ = NetworkFailure::kNone;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_TESTING_TCP_PROXY_H_
