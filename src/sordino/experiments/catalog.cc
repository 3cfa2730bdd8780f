#include "sordino/experiments/catalog.h"

#include <fmt/format.h>

#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino {

Experiment FindExperiment(const std::string& name, bool quick) {
  if (name.ends_with(".toml") || name.find('/') != std::string::npos) {
    return ReadExperiment(name, quick);
  }
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : ExperimentCatalog()) names.push_back(entry.name);
  const CatalogEntry& entry = ExperimentCatalog()[IndexOfName("the experiment", name, names)];
  return ParseExperiment(entry.text, std::string(entry.name), quick);
}

}  // namespace sordino
