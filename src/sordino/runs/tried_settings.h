// Which settings the tries of a tuning differ in, and how each try takes its own.
//
//   lr=0.1..4:log,clip=0.1,1
//
// A setting is named by its flag. It has a list of values, of which each try takes one with equal
// chances, or a range of numbers, in which each try takes one uniformly, or uniformly in its
// logarithm.
//
// Every try has to be a run of the same mechanism: its settings are drawn, and it is trained by
// them (runs/tuned_training.h). So a setting may be tried if neither the event of a run nor, to
// speak of, the time that a step takes depends on it: whoever saw how long each try took would
// otherwise learn what was tried, which is not part of the release.
#ifndef SORDINO_RUNS_TRIED_SETTINGS_H_
#define SORDINO_RUNS_TRIED_SETTINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "sordino/random/generator.h"
#include "sordino/runs/train_config.h"
#include "sordino/runs/train_settings.h"

namespace sordino {

struct TriedSetting {
  struct Range {
    double low = 0;
    double high = 0;
    bool is_log = false;
  };

  const Setting* setting = nullptr;
  std::vector<std::string> values = {};  // of a list
  std::optional<Range> range = {};

  std::string name() const;  // "lr"
  std::string Text() const;  // "lr=0.1..4:log"
  // The values that are looked at whatever is drawn: all of a list, both ends of a range.
  std::vector<std::string> Extremes() const;
};

// The names of the settings that can be tried.
std::vector<std::string> TriedSettingNames();

// Of what was given, each a list of settings as above. Throws Error for nothing, for a setting that
// is unknown, cannot be tried or stands there twice, and for an empty range.
std::vector<TriedSetting> ParseTriedSettings(const std::vector<std::string>& texts);

// The value of each, in their order.
using TryValues = std::vector<std::string>;
// The first value of a list, the low end of a range: to plan with.
TryValues FirstValues(const std::vector<TriedSetting>& tried);
TryValues DrawValues(const std::vector<TriedSetting>& tried, Generator& generator);

// Throws Error as a flag with this value would.
TrainConfig WithValues(TrainConfig config, const std::vector<TriedSetting>& tried,
                       const TryValues& values);

}  // namespace sordino

#endif  // SORDINO_RUNS_TRIED_SETTINGS_H_
