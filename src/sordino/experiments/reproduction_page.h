// The results of several experiments as one page for a browser: for each, what the document says,
// what was measured, and why both differ.
//
// One HTML file with the pictures in it, which loads nothing and runs nothing.
#ifndef SORDINO_EXPERIMENTS_REPRODUCTION_PAGE_H_
#define SORDINO_EXPERIMENTS_REPRODUCTION_PAGE_H_

#include <span>
#include <string>
#include <vector>

#include "sordino/base/output_file.h"
#include "sordino/experiments/experiment.h"
#include "sordino/experiments/runner.h"

namespace sordino {

inline constexpr OutputKind kReproductionFile = {"an HTML page", ".html", "<!DOCTYPE html>"};

struct ReproducedExperiment {
  Experiment experiment;
  std::vector<CellResult> results;
  std::string command;  // that made them
  std::string refusal;  // why nothing was run; empty: it ran
};

// In the order that is given.
std::string ReproductionPage(std::span<const ReproducedExperiment> experiments);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_REPRODUCTION_PAGE_H_
