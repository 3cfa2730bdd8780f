// A page for the user who started the program, on this machine only: `sordino report RUN --watch`.
//
// The server listens on 127.0.0.1 only. The page has one address, with 128 random bits in it;
// everything else is answered with 404, and other methods than GET with 405. Each client has a
// thread of its own, so that one that is slow to ask or to read delays nobody else; it is
// dropped after ten seconds.
#ifndef SORDINO_CLI_REPORT_SERVER_H_
#define SORDINO_CLI_REPORT_SERVER_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace sordino {

class ReportServer {
 public:
  // Listens; port 0 takes one that is free. Throws Error where the port is taken.
  explicit ReportServer(std::uint16_t port);
  ~ReportServer();
  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;

  // "http://127.0.0.1:40123/5f0c.../"
  const std::string& address() const { return address_; }

  // Answers requests until a stop is asked for (base/stop.h). `page` is called by one thread at a
  // time; what it throws is answered with 500 and its sentence, and asked for again the next time.
  void Serve(const std::function<std::string()>& page) const;

 private:
  void Answer(int connection, const std::function<std::string()>& page) const;

  mutable std::mutex page_;  // held while the page is made
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::string path_;
  std::string address_;
};

}  // namespace sordino

#endif  // SORDINO_CLI_REPORT_SERVER_H_
