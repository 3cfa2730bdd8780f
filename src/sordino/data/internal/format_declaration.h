// What the formats have in common when they look at a request.
#ifndef SORDINO_DATA_INTERNAL_FORMAT_DECLARATION_H_
#define SORDINO_DATA_INTERNAL_FORMAT_DECLARATION_H_

#include <filesystem>
#include <string_view>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"

namespace sordino::internal {

// Throws Error unless `what` was declared.
void Need(bool declared, std::string_view what, std::string_view flag);
// Shape and kind: channels, height and width, or where `features` one number of features.
void DeclareShape(const DataRequest& request, bool features, DatasetDeclaration& declaration);
// `path` as it is, or compressed; empty where neither is there.
std::filesystem::path Stored(const std::filesystem::path& path);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_FORMAT_DECLARATION_H_
