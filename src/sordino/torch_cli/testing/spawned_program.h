// The program as a process that a test can kill.
#ifndef SORDINO_TORCH_CLI_TESTING_SPAWNED_PROGRAM_H_
#define SORDINO_TORCH_CLI_TESTING_SPAWNED_PROGRAM_H_

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace sordino {

// Its process, or -1. What it prints is thrown away.
inline pid_t SpawnProgram(std::vector<std::string> words) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<char*> arguments = {const_cast<char*>(SORDINO_PROGRAM)};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(99);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(99);
  execv(SORDINO_PROGRAM, arguments.data());
  _exit(98);
}

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TESTING_SPAWNED_PROGRAM_H_
