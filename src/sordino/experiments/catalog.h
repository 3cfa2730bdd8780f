// The experiments that come with the program: the files of catalog/, compiled in.
#ifndef SORDINO_EXPERIMENTS_CATALOG_H_
#define SORDINO_EXPERIMENTS_CATALOG_H_

#include <span>
#include <string>
#include <string_view>

#include "sordino/experiments/experiment.h"

namespace sordino {

struct CatalogEntry {
  std::string_view name;
  std::string_view text;  // TOML
};
std::span<const CatalogEntry> ExperimentCatalog();

// By its name in the catalogue, or from a file: what ends in .toml or holds a slash. Throws Error
// where neither is there.
Experiment FindExperiment(const std::string& name, bool quick);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_CATALOG_H_
