#include "sordino/data/internal/data_format.h"

namespace sordino::internal {

#define SORDINO_COMPONENT(function, file) const DataFormat& function();
#include "sordino/data/format_list.inc"
#undef SORDINO_COMPONENT

std::span<const DataFormat* const> DataFormats() {
  static const DataFormat* const formats[] = {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/data/format_list.inc"
#undef SORDINO_COMPONENT
  };
  return formats;
}

}  // namespace sordino::internal
