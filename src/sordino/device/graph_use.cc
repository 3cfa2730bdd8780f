#include "sordino/base/known_name.h"
#include "sordino/device/recorded_graph.h"

namespace sordino {

GraphUse ParseGraphUse(std::string_view what, std::string_view name) {
  return static_cast<GraphUse>(IndexOfName(what, name, kGraphUseNames));
}

}  // namespace sordino
