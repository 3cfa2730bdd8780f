// Names that people type, among those that are known.
#ifndef SORDINO_BASE_KNOWN_NAME_H_
#define SORDINO_BASE_KNOWN_NAME_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sordino {

// "did you mean 'digits'? ": by meaning or letters (known_meaning.h), or nothing.
std::string DidYouMean(std::string_view given, std::span<const std::string_view> known);

// "poisson, fixed or full"
std::string OneOf(std::span<const std::string_view> names);

// "the key 'nois' in [privacy] is not known; did you mean 'noise'? it can be epsilon or noise."
std::string UnknownKey(std::string_view key, std::string_view where,
                       std::span<const std::string_view> known);

// The place of `given` among the known names. Throws Error otherwise: "<what> is 'posson', which is
// not known; did you mean 'poisson'? it can be poisson, fixed or full."
std::size_t IndexOfName(std::string_view what, std::string_view given,
                        std::span<const std::string_view> known);

}  // namespace sordino

#endif  // SORDINO_BASE_KNOWN_NAME_H_
