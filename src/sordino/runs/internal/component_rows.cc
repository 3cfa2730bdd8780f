#include "sordino/runs/internal/component_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sordino/optimizers/optimizer_component.h"

namespace sordino::internal {

std::vector<Setting> ComponentRows(std::string_view section, std::string_view key,
                                   std::string_view flag, const ComponentList& components,
                                   Choice& (*choice)(TrainConfig&)) {
  std::vector<Setting> rows = {
      {.section = section,
       .key = key,
       .flag = flag,
       .value_name = "NAME",
       .help = components.ChoiceHelp(),
       .field = [choice](TrainConfig& config) -> SettingField { return &choice(config).name; },
       .choices = components.names()}};
  for (const OptionSpec* spec : components.options()) {
    rows.push_back({.section = section,
                    .key = spec->key,
                    .flag = spec->flag,
                    .value_name = spec->value_name,
                    .help = components.OptionHelp(*spec),
                    .field = [spec, choice](TrainConfig& config) -> SettingField {
                      return std::visit([](auto& slot) -> SettingField { return &slot; },
                                        choice(config).options.SlotOf(*spec));
                    }});
  }
  return rows;
}

std::string LearningRateHelp() {
  std::vector<std::pair<double, std::vector<std::string_view>>> rates;
  for (const OptimizerComponent* optimizer : Optimizers().all()) {
    const auto known = std::find_if(rates.begin(), rates.end(), [&](const auto& rate) {
      return rate.first == optimizer->LearningRate();
    });
    if (known == rates.end()) {
      rates.emplace_back(optimizer->LearningRate(), std::vector{optimizer->name()});
    } else {
      known->second.push_back(optimizer->name());
    }
  }
  std::vector<std::string> texts;
  texts.reserve(rates.size());
  for (const auto& [rate, names] : rates) {
    texts.push_back(fmt::format("{} for {}", rate, fmt::join(names, " and ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace sordino::internal
