// A TCP socket that listens for the ranks of a group.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_LISTENING_SOCKET_H_
#define SORDINO_DISTRIBUTED_INTERNAL_LISTENING_SOCKET_H_

#include <cstdint>
#include <string>

namespace sordino::internal {

class ListeningSocket {
 public:
  // On loopback where `address` is a name of it, else on all interfaces: the name by which others
  // know this machine may not be one of its own addresses. Port 0 is one that is free. Throws Error
  // where the port is in use.
  ListeningSocket(const std::string& address, std::uint16_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  std::uint16_t port() const { return port_; }
  // The descriptor, which is the caller's from now on.
  int Release();

 private:
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_LISTENING_SOCKET_H_
