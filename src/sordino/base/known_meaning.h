// Names that other libraries and habits use for what is called otherwise here: the one table of
// them.
//
// A flag, a key of a configuration, a command or a value that is not known is looked for here
// before the nearest name by its letters (error.h) is taken: '--eps' is '--epsilon', '--model
// logreg' is 'logistic'. What is suggested is always a name that is known where the other was
// typed.
#ifndef SORDINO_BASE_KNOWN_MEANING_H_
#define SORDINO_BASE_KNOWN_MEANING_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sordino {

// The first of the known names that means what was given, or an empty string. Leading dashes are
// those of the known names; '_' is '-', and case does not count.
std::string NameByMeaning(std::string_view given, std::span<const std::string_view> known);

// By meaning, else by letters (NearestName); empty where neither finds one.
std::string LikelyName(std::string_view given, std::span<const std::string_view> known);

// What other words the table has for a name that is known here, for its test.
std::vector<std::string_view> NamesOfMeanings();

}  // namespace sordino

#endif  // SORDINO_BASE_KNOWN_MEANING_H_
