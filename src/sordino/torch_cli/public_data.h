// Data whose records are public.
#ifndef SORDINO_TORCH_CLI_PUBLIC_DATA_H_
#define SORDINO_TORCH_CLI_PUBLIC_DATA_H_

#include <string_view>

#include "sordino/data/catalog.h"

namespace sordino {

// Throws Error for private data that have a ledger, and for files that nobody declared public.
// `what` is computed of the records without noise: "a tangent kernel is".
void CheckPublicData(const DataRequest& data, bool declared_public, std::string_view what);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_PUBLIC_DATA_H_
