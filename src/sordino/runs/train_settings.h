// The settings of a training run as users write them: one table that gives each its flag, its key
// in a configuration file, and its help.
//
//   sordino train --data mnist --lr 0.5        flag        --lr
//   [training]                                 section     training
//   learning-rate = 0.5                        key         learning-rate
//
// The command line, the reader and the writer of config.toml all walk this table, so they cannot
// drift apart. Rows of components and of their options come from the registries
// (base/component.h).
#ifndef SORDINO_RUNS_TRAIN_SETTINGS_H_
#define SORDINO_RUNS_TRAIN_SETTINGS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sordino/runs/train_config.h"

namespace sordino {

// Where the value of a setting lives.
using SettingField =
    std::variant<std::string*, bool*, double*, std::int64_t*, std::uint64_t*,
                 std::optional<std::string>*, std::optional<bool>*, std::optional<double>*,
                 std::optional<std::int64_t>*, std::optional<std::uint64_t>*,
                 std::vector<std::string>*, std::vector<double>*, std::vector<std::int64_t>*>;

struct Setting {
  std::string_view section;          // "data", "model", "privacy", "training", "run"
  std::string_view key;              // in the file
  std::string_view flag;             // "--lr"
  std::string_view value_name = {};  // in the help; empty for a switch
  std::string help = {};
  std::function<SettingField(TrainConfig&)> field;
  std::span<const std::string_view> choices = {};  // of a name; empty: any text
  // Entries of the list may hold commas: each is a word of its own on the command line.
  bool repeats = false;
  // Whole numbers from 1 on the command line, where 0 is not another word for leaving it out.
  bool positive = false;
  // Not part of what a run is: left out of the file that is written.
  bool of_this_run = false;
  // The key, in the same section, of the setting that says the same in another way.
  std::string_view rival = {};

  bool IsSwitch() const { return value_name.empty(); }
};

std::span<const Setting> TrainSettings();
// The heading of a section in the help.
std::string_view SectionTitle(std::string_view section);

// The default in a help text; empty where there is none to tell.
std::string DefaultText(const Setting& setting);

// A flag and what it was given, one text for each time.
struct GivenFlag {
  const Setting* setting;
  std::vector<std::string> texts;
};

// Flags win over what is there, and over what says the same in another way: --steps takes the place
// of epochs. Throws Error that names the flag.
void SetFromFlags(TrainConfig& config, std::span<const GivenFlag> flags);

// Whether a file holds settings and not data: its name ends in ".toml", or its first line that is
// neither blank nor a comment is the name of a section, such as [data].
bool IsTrainConfig(const std::filesystem::path& file);
// Throws Error with the name of the file, the line, and the nearest known key where one is unknown.
TrainConfig ReadTrainConfig(const std::filesystem::path& file);
TrainConfig ParseTrainConfig(std::string_view text, const std::string& name);

// Every setting with its value and what it means; what is left out stands there as a comment.
// ParseTrainConfig reads it back to the same settings.
std::string WriteTrainConfig(const TrainConfig& config);

}  // namespace sordino

#endif  // SORDINO_RUNS_TRAIN_SETTINGS_H_
