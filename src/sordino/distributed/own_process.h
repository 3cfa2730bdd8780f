// What a process that starts itself again, or is one of several, has to know and do about itself.
#ifndef SORDINO_DISTRIBUTED_OWN_PROCESS_H_
#define SORDINO_DISTRIBUTED_OWN_PROCESS_H_

#include <string>
#include <vector>

namespace sordino {

// The file of the program that runs, and the words after its name.
std::string OwnProgram();
std::vector<std::string> OwnWords();

// What this process writes to standard output goes nowhere from now on: the ranks of a launcher
// share one, and rank 0 speaks for all.
void CloseStandardOutput();

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_OWN_PROCESS_H_
