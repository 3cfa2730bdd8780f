#include "sordino/cli/report_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <list>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/base/shown_text.h"
#include "sordino/base/stop.h"
#include "sordino/random/generator.h"

namespace sordino {
namespace {

constexpr std::size_t kMaxRequest = 8192;
constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kMaxClients = 64;
constexpr int kPollMilliseconds = 200;

using Clock = std::chrono::steady_clock;

// A connection, closed at the end of its scope. Reading takes ten seconds at most, and so does
// writing; the time in which a page is made does not count.
class Client {
 public:
  explicit Client(int connection) : connection_(connection) {}
  ~Client() { close(connection_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The head of a request; what came until then where the client is slow or says too much.
  std::string ReadHead() const {
    std::string head;
    std::array<char, 2048> block{};
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (head.size() < kMaxRequest && head.find("\r\n\r\n") == std::string::npos) {
      if (!Waits(POLLIN, deadline)) break;
      const ssize_t count = recv(connection_, block.data(), block.size(), MSG_DONTWAIT);
      if (count <= 0) break;
      head.append(block.data(), static_cast<std::size_t>(count));
    }
    return head;
  }

  // Nothing more where the client does not read.
  void Send(std::string_view status, std::string_view type, std::string_view body) const {
    const Clock::time_point deadline = Clock::now() + kPatience;
    SendAll(fmt::format("HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n"
                        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
                        status, type, body.size()),
            deadline);
    SendAll(body, deadline);
  }

 private:
  // Whether the connection is ready before its time is over and before a stop is asked for.
  bool Waits(short event, Clock::time_point deadline) const {
    while (Clock::now() < deadline && !StopGuard::Requested()) {
      pollfd waiting{connection_, event, 0};
      const int ready = poll(&waiting, 1, kPollMilliseconds);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  void SendAll(std::string_view text, Clock::time_point deadline) const {
    while (!text.empty() && Waits(POLLOUT, deadline)) {
      const ssize_t count =
          send(connection_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  int connection_;
};

std::string RandomToken() {
  SecureGenerator generator;
  const std::uint64_t high = generator.Next64();
  return fmt::format("{:016x}{:016x}", high, generator.Next64());
}

// Whether two texts are equal, in a time that says nothing about where they differ.
bool IsSameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned char>(a[i]) ^ static_cast<unsigned>(static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace

ReportServer::ReportServer(std::uint16_t port) : path_('/' + RandomToken() + '/') {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(port);
  const int yes = 1;
  socklen_t size = sizeof place;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API
  const bool listens = listener_ >= 0 &&
                       setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       bind(listener_, reinterpret_cast<sockaddr*>(&place), size) == 0 &&
                       listen(listener_, 16) == 0 &&
                       getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &size) == 0;
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  if (!listens) {
    const int error = errno;
    if (listener_ >= 0) close(listener_);
    throw Error(fmt::format("the page cannot be served on port {}: {}; give another --port.", port,
                            std::strerror(error)));
  }
  port_ = ntohs(place.sin_port);
  address_ = fmt::format("http://127.0.0.1:{}{}", port_, path_);
}

ReportServer::~ReportServer() { close(listener_); }

void ReportServer::Answer(int connection, const std::function<std::string()>& page) const {
  const Client client(connection);
  const std::string head = client.ReadHead();
  const std::string_view line = std::string_view(head).substr(0, head.find("\r\n"));
  if (head.find("\r\n\r\n") == std::string::npos) {
    return client.Send("400 Bad Request", "text/plain", "This is not a whole request.\n");
  }
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return client.Send("400 Bad Request", "text/plain", "This is not a request.\n");
  }
  // Whoever does not know the address learns nothing, not even which methods there are.
  if (!IsSameSecret(line.substr(first + 1, second - first - 1), path_)) {
    return client.Send("404 Not Found", "text/plain", "There is nothing here.\n");
  }
  if (line.substr(0, first) != "GET") {
    return client.Send("405 Method Not Allowed", "text/plain", "Only GET is answered.\n");
  }
  std::string content;
  try {
    const std::lock_guard one_at_a_time(page_);
    content = page();
  } catch (const std::exception& error) {
    return client.Send("500 Internal Server Error", "text/plain",
                       fmt::format("{}\n", ShownText(error.what())));
  }
  client.Send("200 OK", "text/html", content);
}

void ReportServer::Serve(const std::function<std::string()>& page) const {
  std::list<std::future<void>> clients;  // whose end is waited for here
  while (!StopGuard::Requested()) {
    // Those that are too many wait until one of the others is dropped.
    pollfd waiting{clients.size() < kMaxClients ? listener_ : -1, POLLIN, 0};
    const bool is_asked = poll(&waiting, 1, kPollMilliseconds) > 0;
    clients.remove_if([](const std::future<void>& client) {
      return client.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    if (!is_asked) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    clients.push_back(
        std::async(std::launch::async, [this, connection, &page] { Answer(connection, page); }));
  }
}

}  // namespace sordino
