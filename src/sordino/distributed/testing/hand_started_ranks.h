// Ranks that a test starts one by one, as a launcher would. What they do is in rank_program.cc.
#ifndef SORDINO_DISTRIBUTED_TESTING_HAND_STARTED_RANKS_H_
#define SORDINO_DISTRIBUTED_TESTING_HAND_STARTED_RANKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/distributed/testing/rank_processes.h"

namespace sordino {

using RankVariables = std::map<std::string, std::string>;

class Ranks {
 public:
  // By hand: rank 0 listens.
  Ranks(int size, std::vector<std::string> words,
        const std::map<int, RankVariables>& variables = {})
      : port_(FreePort()) {
    words.insert(words.begin(), SORDINO_RANK_PROGRAM);
    for (int rank = 0; rank < size; ++rank) {
      RankVariables mine = {{"RANK", std::to_string(rank)},
                            {"WORLD_SIZE", std::to_string(size)},
                            {"MASTER_ADDR", "127.0.0.1"},
                            {"MASTER_PORT", std::to_string(port_)},
                            {"SORDINO_JOIN_SECRET", "the secret of the ranks that tests start"}};
      const auto more = variables.find(rank);
      if (more != variables.end()) {
        for (const auto& [name, value] : more->second) mine[name] = value;
      }
      if (mine.contains("NOT_STARTED")) continue;
      processes_.push_back(
          std::make_unique<TestProcess>(words, mine, folder_.path() / std::to_string(rank)));
    }
  }

  TestProcess& process(std::size_t i) { return *processes_[i]; }
  std::vector<ProcessEnd> Wait() {
    std::vector<ProcessEnd> ends;
    for (const auto& process : processes_) ends.push_back(process->Wait());
    return ends;
  }

  std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_;
  TestFolder folder_;
  std::vector<std::unique_ptr<TestProcess>> processes_;
};

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_TESTING_HAND_STARTED_RANKS_H_
