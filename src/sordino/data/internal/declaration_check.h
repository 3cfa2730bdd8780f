// What must hold of a declaration before any record is read.
#ifndef SORDINO_DATA_INTERNAL_DECLARATION_CHECK_H_
#define SORDINO_DATA_INTERNAL_DECLARATION_CHECK_H_

#include "sordino/data/dataset.h"

namespace sordino::internal {

// Throws Error unless shape, classes, names, vocabulary and the constants of normalisation fit each
// other.
void CheckItself(const DatasetDeclaration& declaration);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_DECLARATION_CHECK_H_
