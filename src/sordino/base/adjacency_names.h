// What adjacencies are called, for flags, files and texts.
#ifndef SORDINO_BASE_ADJACENCY_NAMES_H_
#define SORDINO_BASE_ADJACENCY_NAMES_H_

#include <array>
#include <string_view>

namespace sordino {

// In the order of Adjacency (quantity.h).
inline constexpr std::array<std::string_view, 3> kAdjacencyNames = {"add-remove", "replace-one",
                                                                    "zero-out"};

}  // namespace sordino

#endif  // SORDINO_BASE_ADJACENCY_NAMES_H_
