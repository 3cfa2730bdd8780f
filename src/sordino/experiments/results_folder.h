// The folder of an experiment on a disk. Finished cells stay in it, so that an experiment that was
// stopped continues where it was.
//
//   experiment.json    whose folder this is
//   experiment.toml    the file as it was run last
//   cells/ID/          output.json and messages.txt of the command, its run folder, and cell.json,
//                      which is written last and makes the cell a finished one
//   tables/            rows that were drawn
//
// What is measured is read from the outputs each time, so measures and pictures of an experiment
// can be changed without running anything again.
#ifndef SORDINO_EXPERIMENTS_RESULTS_FOLDER_H_
#define SORDINO_EXPERIMENTS_RESULTS_FOLDER_H_

#include <filesystem>
#include <optional>
#include <string>

#include "sordino/experiments/experiment.h"
#include "sordino/experiments/grid.h"

namespace sordino {

struct FinishedCell {
  double seconds = 0;
  double memory_mb = 0;
};

class ResultsFolder {
 public:
  // Makes the folder, or opens one of the same experiment in the same form. Throws Error for any
  // other folder, and for one that another process works in.
  ResultsFolder(std::filesystem::path folder, const Experiment& experiment);
  ~ResultsFolder();
  ResultsFolder(const ResultsFolder&) = delete;
  ResultsFolder& operator=(const ResultsFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path Tables() const { return folder_ / "tables"; }
  std::filesystem::path Of(const Cell& cell) const { return folder_ / "cells" / cell.id; }
  std::filesystem::path RunOf(const Cell& cell) const { return Of(cell) / "run"; }
  std::filesystem::path OutputOf(const Cell& cell) const { return Of(cell) / "output.json"; }
  std::filesystem::path MessagesOf(const Cell& cell) const { return Of(cell) / "messages.txt"; }

  // Nothing where the cell has not finished. Throws Error where its files are not those that were
  // written when it did.
  std::optional<FinishedCell> Find(const Cell& cell) const;
  // Removes what an earlier attempt left.
  void Begin(const Cell& cell) const;
  void Finish(const Cell& cell, const FinishedCell& finished) const;

 private:
  void Claim(const Experiment& experiment);
  void Lock();

  std::filesystem::path folder_;
  int lock_ = -1;
};

// The whole file, where it has at most `most` bytes; nothing where it is not there. Throws Error
// where it is larger or not a file.
std::optional<std::string> ReadSmallFile(const std::filesystem::path& file, std::uintmax_t most);

inline constexpr std::uintmax_t kMaxOutputBytes = std::uintmax_t{64} << 20;

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_RESULTS_FOLDER_H_
