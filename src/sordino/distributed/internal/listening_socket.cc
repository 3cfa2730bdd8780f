#include "sordino/distributed/internal/listening_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

constexpr int kWaitingConnections = 4096;

bool IsLoopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// -1 where it cannot be; errno says why.
int ListenAt(const sockaddr* address, socklen_t length) {
  const int descriptor = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const int yes = 1;
  const int no = 0;
  // A port of a run that has just ended can be used at once.
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address->sa_family == AF_INET6) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (::bind(descriptor, address, length) == 0 && ::listen(descriptor, kWaitingConnections) == 0) {
    return descriptor;
  }
  const int why = errno;
  ::close(descriptor);
  errno = why;
  return -1;
}

int ListenV4(in_addr_t host, std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(host);
  return ListenAt(reinterpret_cast<const sockaddr*>(&place), sizeof place);
}

int ListenV6(const in6_addr& host, std::uint16_t port) {
  sockaddr_in6 place{};
  place.sin6_family = AF_INET6;
  place.sin6_port = htons(port);
  place.sin6_addr = host;
  return ListenAt(reinterpret_cast<const sockaddr*>(&place), sizeof place);
}

int Listen(const std::string& address, std::uint16_t port) {
  if (address == "::1") return ListenV6(in6addr_loopback, port);
  if (IsLoopback(address)) return ListenV4(INADDR_LOOPBACK, port);
  const int both = ListenV6(in6addr_any, port);
  // A machine without IPv6.
  if (both < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
    return ListenV4(INADDR_ANY, port);
  }
  return both;
}

std::uint16_t PortOf(int descriptor) {
  sockaddr_storage place{};
  socklen_t length = sizeof place;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&place), &length) != 0) return 0;
  return ntohs(place.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&place)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&place)->sin_port);
}

}  // namespace

ListeningSocket::ListeningSocket(const std::string& address, std::uint16_t port)
    : descriptor_(Listen(address, port)) {
  if (descriptor_ < 0 && errno == EADDRINUSE) {
    throw Error(fmt::format(
        "port {} of this machine, where rank 0 meets the others, is in use by another program; set "
        "MASTER_PORT to a free one for all ranks.",
        port));
  }
  if (descriptor_ < 0) {
    throw std::runtime_error(
        fmt::format("rank 0 cannot listen on port {}: {}.", port, std::strerror(errno)));
  }
  port_ = PortOf(descriptor_);
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int ListeningSocket::Release() { return std::exchange(descriptor_, -1); }

}  // namespace sordino::internal
