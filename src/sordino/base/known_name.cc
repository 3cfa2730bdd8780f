#include "sordino/base/known_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "sordino/base/error.h"
#include "sordino/base/known_meaning.h"

namespace sordino {
namespace {

// Of a name that is shown back: a sentence stays one, whatever was typed.
constexpr std::size_t kLongestShown = 40;

}  // namespace

std::string DidYouMean(std::string_view given, std::span<const std::string_view> known) {
  const std::string likely = LikelyName(given.substr(0, kLongestShown), known);
  return likely.empty() ? "" : fmt::format("did you mean '{}'? ", likely);
}

std::string OneOf(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

std::string UnknownKey(std::string_view key, std::string_view where,
                       std::span<const std::string_view> known) {
  return fmt::format("the key '{}' in {} is not known; {}it can be {}.",
                     key.substr(0, kLongestShown), where, DidYouMean(key, known), OneOf(known));
}

std::size_t IndexOfName(std::string_view what, std::string_view given,
                        std::span<const std::string_view> known) {
  const auto found = std::find(known.begin(), known.end(), given);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw Error(fmt::format("{} is '{}', which is not known; {}it can be {}.", what,
                          given.substr(0, kLongestShown), DidYouMean(given, known), OneOf(known)));
}

}  // namespace sordino
