#include "sordino/torch_cli/train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/cli/command_tree.h"
#include "sordino/data/catalog.h"
#include "sordino/models/model.h"

namespace sordino {
namespace {

std::string Help(const Setting& setting) {
  std::string help(setting.help);
  if (setting.flag == "--data") help += fmt::format(": {}", fmt::join(DatasetNames(), ", "));
  if (setting.flag == "--model") help += fmt::format(": {}", fmt::join(ModelNames(), ", "));
  const std::string value = DefaultText(setting);
  return value.empty() || setting.IsSwitch() ? help : fmt::format("{} ({})", help, value);
}

// What a run without privacy does not use, with the reason and the way out. A file may have both:
// it is a private run that is repeated without privacy, or a finished run.
struct UnusedFlag {
  std::string_view flag;
  std::string_view reason;
  std::string_view advice;
};
constexpr UnusedFlag kUnusedWithoutPrivacy[] = {
    {"--epsilon", "spends nothing", "leave one of them out"},
    {"--noise", "adds no noise", "leave one of them out"},
    {"--clip", "does not clip", "give --noise 0 to clip without noise, or leave it out"},
};

void CheckUnusedFlags(const TrainConfig& config, const std::vector<GivenFlag>& flags) {
  if (!config.run.non_private) return;
  for (const UnusedFlag& unused : kUnusedWithoutPrivacy) {
    for (const GivenFlag& flag : flags) {
      if (flag.setting->flag != unused.flag) continue;
      throw Error(fmt::format("--non-private {}, so {} {} has no meaning beside it; {}.",
                              unused.reason, unused.flag, flag.texts.front(), unused.advice));
    }
  }
}

}  // namespace

void TrainFlags::AddTo(CLI::App& command, const std::function<bool(const Setting&)>& wanted) {
  for (const Setting& setting : TrainSettings()) {
    if (!wanted(setting)) continue;
    const std::string flag(setting.flag);
    const std::string help = Help(setting);
    CLI::Option* option = nullptr;
    if (setting.IsSwitch()) {
      option = command.add_flag(flag, help);
    } else {
      // Texts, not numbers: their mistakes are told by us, also that of a flag given twice.
      option = command.add_option(flag, help)
                   ->type_name(std::string(setting.value_name))
                   ->type_size(1)
                   ->expected(1, setting.repeats ? CLI::detail::expected_max_vector_size : 1)
                   ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                   ->allow_extra_args(setting.repeats);
    }
    option->group(std::string(SectionTitle(setting.section)));
    if (setting.flag == "--model") {
      SetChoices(*option, ModelNames());
    } else if (!setting.choices.empty()) {
      SetChoices(*option, setting.choices);
    }
    flags_.push_back({&setting, option});
  }
}

std::vector<GivenFlag> TrainFlags::Given() const {
  std::vector<GivenFlag> given;
  for (const Flag& flag : flags_) {
    if (flag.option->count() > 0) given.push_back({flag.setting, flag.option->results()});
  }
  return given;
}

std::vector<GivenFlag> WithSource(std::vector<GivenFlag> given, const std::string& source) {
  if (source.empty()) return given;
  const auto settings = TrainSettings();
  const auto data = std::find_if(settings.begin(), settings.end(),
                                 [](const Setting& setting) { return setting.flag == "--data"; });
  bool has_format = false;
  for (const GivenFlag& flag : given) {
    if (flag.setting == &*data) {
      throw Error(fmt::format("both '{}' and --data were given; name the data once.", source));
    }
    has_format = has_format || flag.setting->flag == "--format";
  }
  if (!has_format && !IsDatasetName(source) && IsTrainConfig(source)) {
    throw Error(fmt::format(
        "'{}' holds settings of 'sordino train' and no data; give a file of data, a folder or a "
        "dataset by name.",
        source));
  }
  given.push_back({&*data, {source}});
  return given;
}

bool SourceIsConfig(const std::string& source, const std::string& config, const TrainFlags& flags) {
  if (!config.empty() || source.empty() || IsDatasetName(source)) return false;
  for (const GivenFlag& flag : flags.Given()) {
    if (flag.setting->flag == "--format") return false;
  }
  return IsTrainConfig(source);
}

TrainConfig ConfigOf(const std::string& source, const std::string& config,
                     const TrainFlags& flags) {
  const bool is_config = SourceIsConfig(source, config, flags);
  const std::string& file = is_config ? source : config;
  TrainConfig read = file.empty() ? TrainConfig() : ReadTrainConfig(file);
  const std::vector<GivenFlag> given = flags.Given();
  SetFromFlags(read, WithSource(given, is_config ? "" : source));
  CheckUnusedFlags(read, given);
  return read;
}

}  // namespace sordino
