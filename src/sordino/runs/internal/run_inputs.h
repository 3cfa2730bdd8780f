// The files beside the weights that decide what a model predicts.
//
//   config.toml      the settings; files that they name have absolute paths
//   script/NAME      a copy of --script, up to 64 MiB; a larger one stays where it is
//   schedules/*.csv  copies of the files that schedules name
//   vocabulary.txt   the words of a model of text, one a line, in the order of their ids
//   SHA256SUMS       the hash of each of these, as sha256sum(1) writes and checks them
//
// They are written before the first step. Whoever applies the model or resumes the run checks
// them first, so a file that was exchanged does not change predictions without a word, and uses the
// copies, so the folder can be moved. Private data are neither copied nor hashed: a hash tells
// whether somebody guessed them right.
#ifndef SORDINO_RUNS_INTERNAL_RUN_INPUTS_H_
#define SORDINO_RUNS_INTERNAL_RUN_INPUTS_H_

#include <filesystem>
#include <string>

#include "sordino/runs/train_config.h"

namespace sordino {

// Writes the files above into a folder that exists. Returns the hash of SHA256SUMS, which stands
// for all of them.
std::string KeepInputs(const std::filesystem::path& folder, const TrainConfig& config);

// Checks them and returns the same. Throws Error that names the file which was changed or is gone.
std::string CheckInputs(const std::filesystem::path& folder);

// The configuration of the run in this folder, with script and vocabulary from the folder. They are
// not checked.
TrainConfig KeptConfig(const std::filesystem::path& folder);

}  // namespace sordino

#endif  // SORDINO_RUNS_INTERNAL_RUN_INPUTS_H_
