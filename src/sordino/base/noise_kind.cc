#include "sordino/base/noise_kind.h"

#include <cstddef>

#include "sordino/base/known_name.h"

namespace sordino {

std::string_view NoiseKindName(NoiseKind kind) {
  return kNoiseKindNames[static_cast<std::size_t>(kind)];
}

NoiseKind ParseNoiseKind(std::string_view name) {
  return static_cast<NoiseKind>(IndexOfName("the kind of noise", name, kNoiseKindNames));
}

}  // namespace sordino
