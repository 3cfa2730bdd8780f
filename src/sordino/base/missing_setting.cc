#include "sordino/base/missing_setting.h"

#include <fmt/format.h>

namespace sordino {

std::string MissingSentence(const std::vector<MissingSetting>& missing, std::string_view line) {
  std::string list;
  std::string command(line);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const MissingSetting& setting = missing[i];
    if (i > 0) list += i + 1 == missing.size() ? ", and " : ", ";
    list += fmt::format("{} ({}{}{})", setting.what, setting.give.substr(0, setting.give.find(' ')),
                        setting.note.empty() ? "" : ": ", setting.note);
    command += ' ' + setting.give;
  }
  return fmt::format(
      "{} missing: {}. With values of your own this would work: {}",
      missing.size() == 1 ? "a setting is" : fmt::format("{} settings are", missing.size()), list,
      command);
}

}  // namespace sordino
