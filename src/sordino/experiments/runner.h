// Runs the cells of an experiment that have not finished yet.
#ifndef SORDINO_EXPERIMENTS_RUNNER_H_
#define SORDINO_EXPERIMENTS_RUNNER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "sordino/base/progress.h"
#include "sordino/experiments/experiment.h"
#include "sordino/experiments/grid.h"
#include "sordino/experiments/measured_value.h"
#include "sordino/experiments/results_folder.h"

namespace sordino {

inline constexpr int kMaxJobs = 256;

struct CellResult {
  Cell cell;
  std::string failure;  // the sentence of a cell that failed; empty: it finished
  FinishedCell finished;
  std::vector<MeasuredValue> values;  // of the measures of its part; empty where it failed
  std::filesystem::path folder = {};  // with the files that its command wrote
};

struct RunRequest {
  std::filesystem::path program;
  int jobs = 1;
  std::string data;  // the folder of SORDINO_DATA; empty: not set
  Progress::Style progress = Progress::Style::kSilent;
};

// A cell that fails does not stop the others. Throws Stopped, with the finished cells kept, once a
// StopGuard asks for it, and Error where a measure is not in the output of the first cell that it
// is asked of.
std::vector<CellResult> RunCells(const Experiment& experiment, const std::vector<Cell>& cells,
                                 const ResultsFolder& folder, const RunRequest& request);

// Runs one more command of the program and waits for it; its output goes to files of the folder
// with this name. Returns its exit code.
int RunCommandIn(const ResultsFolder& folder, const std::filesystem::path& program,
                 const std::vector<std::string>& words, const std::string& name);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_RUNNER_H_
