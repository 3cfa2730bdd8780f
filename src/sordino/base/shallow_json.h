// A limit on the depth of JSON that others wrote, for nlohmann::json::parse.
//
// The parser and the destructor use no recursion, but copies do, and an object that grows is
// copied. So what lies deeper is left out while it is parsed. `false`: no exceptions.
//
//   const auto json = nlohmann::ordered_json::parse(text, kShallowJson, false);
#ifndef SORDINO_BASE_SHALLOW_JSON_H_
#define SORDINO_BASE_SHALLOW_JSON_H_

namespace sordino {

// No file of this program is nested half as deep.
inline constexpr int kMaxJsonNesting = 64;

// Whether the parser keeps a value.
inline constexpr auto kShallowJson = [](int depth, auto /*event*/, auto& /*value*/) {
  return depth <= kMaxJsonNesting;
};

}  // namespace sordino

#endif  // SORDINO_BASE_SHALLOW_JSON_H_
