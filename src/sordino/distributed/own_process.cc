#include "sordino/distributed/own_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sordino {

std::string OwnProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::vector<std::string> OwnWords() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.empty()) throw std::runtime_error("the command line of this process cannot be read.");
  words.erase(words.begin());
  return words;
}

void CloseStandardOutput() {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || ::dup2(nowhere, STDOUT_FILENO) < 0) {
    throw std::runtime_error("standard output cannot be closed.");
  }
  ::close(nowhere);
}

}  // namespace sordino
