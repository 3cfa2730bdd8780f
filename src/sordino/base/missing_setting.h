// What has to be given and was not: told all at once, with a command line that would work.
#ifndef SORDINO_BASE_MISSING_SETTING_H_
#define SORDINO_BASE_MISSING_SETTING_H_

#include <string>
#include <string_view>
#include <vector>

namespace sordino {

struct MissingSetting {
  std::string what;       // "the shape of an example"
  std::string give;       // flags that would do: "--shape 3,64,64"
  std::string note = {};  // what else would do, or where it comes from
};

// "2 settings are missing: the budget (--epsilon), and delta (--delta). With values of your own
// this would work: sordino train ..."; `line` is the command line as it was given, to which the
// rest is added.
std::string MissingSentence(const std::vector<MissingSetting>& missing, std::string_view line);

}  // namespace sordino

#endif  // SORDINO_BASE_MISSING_SETTING_H_
