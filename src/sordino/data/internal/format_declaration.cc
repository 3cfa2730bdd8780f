#include "sordino/data/internal/format_declaration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "sordino/base/error.h"

namespace sordino::internal {

namespace fs = std::filesystem;

void Need(bool declared, std::string_view what, std::string_view flag) {
  if (!declared) {
    throw Error(
        fmt::format("the {} must be declared before the data are read; give {}.", what, flag));
  }
}

void DeclareShape(const DataRequest& request, bool features, DatasetDeclaration& declaration) {
  Need(!request.shape.empty(), "shape of an example",
       features ? "--shape, such as 1,28,28 for images or 13 for features"
                : "--shape, such as 3,32,32");
  const std::size_t dimensions = request.shape.size();
  if (dimensions != 3 && !(features && dimensions == 1)) {
    throw Error(fmt::format("the shape of an example is {}; give channels, height and width{}.",
                            fmt::join(request.shape, ","),
                            features ? ", or one number of features" : ""));
  }
  declaration.shape = request.shape;
  declaration.kind = dimensions == 3 ? InputKind::kImage : InputKind::kFeatures;
}

fs::path Stored(const fs::path& path) {
  for (const char* ending : {"", ".gz", ".xz"}) {
    fs::path candidate = path;
    candidate += ending;
    std::error_code error;
    if (fs::exists(candidate, error)) return candidate;
  }
  return {};
}

}  // namespace sordino::internal
