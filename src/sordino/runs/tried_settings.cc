#include "sordino/runs/tried_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"
#include "sordino/optimizers/optimizer_component.h"

namespace sordino {
namespace {

// Beside the options of the optimizers.
constexpr std::array<std::string_view, 5> kTriedFlags = {"--clip", "--lr", "--lr-schedule",
                                                         "--projection-radius", "--average-decay"};

bool CanBeTried(const Setting& setting) {
  if (std::find(kTriedFlags.begin(), kTriedFlags.end(), setting.flag) != kTriedFlags.end()) {
    return true;
  }
  const std::vector<const OptionSpec*>& options = Optimizers().options();
  return setting.section == "training" &&
         std::any_of(options.begin(), options.end(),
                     [&](const OptionSpec* option) { return option->flag == setting.flag; });
}

std::string_view NameOf(const Setting& setting) { return setting.flag.substr(2); }

const Setting& SettingNamed(const std::string& name) {
  for (const Setting& setting : TrainSettings()) {
    if (NameOf(setting) != name) continue;
    if (CanBeTried(setting)) return setting;
    throw Error(fmt::format(
        "--try {} is not possible: all tries must cost the same and take the same time, and the "
        "privacy, the model or the time of a run may depend on it; give --{} a single value, and "
        "try {}.",
        name, name, fmt::join(TriedSettingNames(), ", ")));
  }
  const std::vector<std::string> names = TriedSettingNames();
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw Error(UnknownKey(name, "--try", known));
}

std::optional<double> NumberIn(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool IsReal(const Setting& setting) {
  TrainConfig config;
  const SettingField field = setting.field(config);
  return std::holds_alternative<double*>(field) ||
         std::holds_alternative<std::optional<double>*>(field);
}

// Nothing where the text is a value and no range.
std::optional<TriedSetting::Range> RangeIn(const Setting& setting, std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  TriedSetting::Range range;
  std::string_view rest = text.substr(dots + 2);
  constexpr std::string_view kLog = ":log";
  if (rest.ends_with(kLog)) {
    range.is_log = true;
    rest.remove_suffix(kLog.size());
  }
  const std::optional<double> low = NumberIn(text.substr(0, dots));
  const std::optional<double> high = NumberIn(rest);
  if (!low || !high || !IsReal(setting)) {
    throw Error(fmt::format(
        "'{}' in --try is not a range of numbers for {}; give one such as 0.1..4, 0.1..4:log, or a "
        "list of values.",
        text, NameOf(setting)));
  }
  range.low = *low;
  range.high = *high;
  if (!(range.low < range.high) || (range.is_log && range.low <= 0)) {
    throw Error(fmt::format("'{}' in --try is an empty range; {}.", text,
                            range.is_log ? "give two numbers above 0, the smaller one first"
                                         : "give the smaller number first"));
  }
  return range;
}

void AddValue(TriedSetting& tried, const std::string& text) {
  const std::optional<TriedSetting::Range> range = RangeIn(*tried.setting, text);
  if (tried.range || (range && !tried.values.empty())) {
    throw Error(fmt::format("--try {} has a range and other values; give one range or a list.",
                            tried.name()));
  }
  if (range) {
    tried.range = range;
  } else if (std::find(tried.values.begin(), tried.values.end(), text) != tried.values.end()) {
    throw Error(
        fmt::format("--try {} has the value '{}' twice; give it once.", tried.name(), text));
  } else {
    tried.values.push_back(text);
  }
}

}  // namespace

std::string TriedSetting::name() const { return std::string(NameOf(*setting)); }

std::string TriedSetting::Text() const {
  if (!range) return fmt::format("{}={}", name(), fmt::join(values, ","));
  return fmt::format("{}={}..{}{}", name(), range->low, range->high, range->is_log ? ":log" : "");
}

std::vector<std::string> TriedSettingNames() {
  std::vector<std::string> names;
  for (const Setting& setting : TrainSettings()) {
    if (CanBeTried(setting)) names.emplace_back(NameOf(setting));
  }
  return names;
}

std::vector<TriedSetting> ParseTriedSettings(const std::vector<std::string>& texts) {
  std::vector<TriedSetting> all;
  for (const std::string& text : texts) {
    bool is_first = true;
    for (std::string value : SplitList(text)) {
      const std::size_t sign = value.find('=');
      if (sign != std::string::npos) {
        const Setting& setting = SettingNamed(value.substr(0, sign));
        for (const TriedSetting& other : all) {
          if (other.setting != &setting) continue;
          throw Error(
              fmt::format("--try has {} twice; give all of its values once.", other.name()));
        }
        all.push_back({.setting = &setting});
        value.erase(0, sign + 1);
      } else if (is_first) {
        throw Error(fmt::format(
            "--try begins with '{}', which names no setting; give one such as lr=0.1..4:log.",
            value));
      }
      is_first = false;
      AddValue(all.back(), value);
    }
  }
  if (all.empty()) {
    throw Error(
        "there is nothing to try; give --try with settings and their values, such as --try "
        "lr=0.1..4:log,clip=0.1,1.");
  }
  return all;
}

std::vector<std::string> TriedSetting::Extremes() const {
  if (!range) return values;
  return {fmt::format("{}", range->low), fmt::format("{}", range->high)};
}

TryValues FirstValues(const std::vector<TriedSetting>& tried) {
  TryValues values;
  for (const TriedSetting& one : tried) values.push_back(one.Extremes().front());
  return values;
}

// Numbers have six digits: it is no matter of privacy where they lie, only that they are drawn
// without the data.
TryValues DrawValues(const std::vector<TriedSetting>& tried, Generator& generator) {
  TryValues values;
  for (const TriedSetting& one : tried) {
    const std::uint64_t bits = generator.Next64();
    if (!one.range) {
      values.push_back(one.values[bits % one.values.size()]);
      continue;
    }
    const TriedSetting::Range& range = *one.range;
    const double share = static_cast<double>(bits >> 11U) * 0x1p-53;
    const double drawn = range.is_log ? range.low * std::pow(range.high / range.low, share)
                                      : range.low + share * (range.high - range.low);
    values.push_back(fmt::format("{:.6g}", std::clamp(drawn, range.low, range.high)));
  }
  return values;
}

TrainConfig WithValues(TrainConfig config, const std::vector<TriedSetting>& tried,
                       const TryValues& values) {
  std::vector<GivenFlag> flags;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    flags.push_back({tried[i].setting, {values[i]}});
  }
  SetFromFlags(config, flags);
  return config;
}

}  // namespace sordino
