// Which datasets are neighbours is named, never numbered.
// expect: cannot convert|invalid conversion|cannot initialize
#include "sordino/base/quantity.h"

sordino::Adjacency Use() {
#ifdef MISTAKE
  const sordino::Adjacency adjacency = 1;
#else
  const sordino::Adjacency adjacency = sordino::Adjacency::kReplaceOne;
#endif
  return adjacency;
}
