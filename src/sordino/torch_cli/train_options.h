// The flags of a training run, straight from the table of runs/train_settings.h.
#ifndef SORDINO_TORCH_CLI_TRAIN_OPTIONS_H_
#define SORDINO_TORCH_CLI_TRAIN_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "sordino/runs/train_settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sordino {

class TrainFlags {
 public:
  // Adds the flag of every setting that `wanted` says yes to.
  void AddTo(CLI::App& command, const std::function<bool(const Setting&)>& wanted);
  // Those that were given, once the command line was parsed.
  std::vector<GivenFlag> Given() const;

 private:
  struct Flag {
    const Setting* setting;
    CLI::Option* option;
  };
  std::vector<Flag> flags_;
};

// The flags with the data that stand on the line without one, as if they were after --data. Throws
// Error where both are there, and for a file that holds settings.
std::vector<GivenFlag> WithSource(std::vector<GivenFlag> given, const std::string& source);

// Whether the word without a flag is a configuration: it holds one, and there is neither --config
// (`config`) nor --format.
bool SourceIsConfig(const std::string& source, const std::string& config, const TrainFlags& flags);
// What all of them say together; flags win over a file.
TrainConfig ConfigOf(const std::string& source, const std::string& config, const TrainFlags& flags);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TRAIN_OPTIONS_H_
