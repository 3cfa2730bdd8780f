// Rules of recurrent layers and cells in an isolated pass.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_RECURRENCE_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_RECURRENCE_H_

#include <torch/library.h>

namespace sordino {

void RegisterRecurrentOperations(torch::Library& rules);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_RECURRENCE_H_
