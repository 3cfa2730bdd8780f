// The datasets that have a name: where their files lie, and what is declared about them.
#ifndef SORDINO_DATA_INTERNAL_KNOWN_DATASETS_H_
#define SORDINO_DATA_INTERNAL_KNOWN_DATASETS_H_

#include <string>

#include "sordino/data/internal/data_source.h"

namespace sordino::internal {

bool IsKnown(const std::string& name);
// Of a known name. Throws Error where its files are not there.
DataSource KnownSource(const std::string& name);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_KNOWN_DATASETS_H_
