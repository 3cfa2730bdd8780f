#include "sordino/base/component.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino {
namespace {

const OptionSpec* FindSpec(std::span<const OptionSpec* const> specs, std::string_view key) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const OptionSpec* spec) { return spec->key == key; });
  return found == specs.end() ? nullptr : *found;
}

std::string Quoted(std::span<const std::string_view> names) {
  std::vector<std::string> quoted;
  for (const std::string_view name : names) quoted.push_back(fmt::format("'{}'", name));
  const std::vector<std::string_view> views(quoted.begin(), quoted.end());
  return OneOf(views);
}

std::string RangeText(const OptionSpec& spec) {
  if (spec.type == OptionType::kSwitch) return "true or false";
  if (spec.type == OptionType::kText) return "a text";
  const std::string low = fmt::format("{}{:g}", spec.low_open ? "(" : "[", spec.low);
  return std::isinf(spec.high)
             ? fmt::format("{}, ∞)", low)
             : fmt::format("{}, {:g}{}", low, spec.high, spec.high_open ? ")" : "]");
}

}  // namespace

bool Component::Has(std::string_view key) const { return FindSpec(row_.options, key) != nullptr; }

ComponentList::ComponentList(std::string_view kind, std::vector<const Component*> components)
    : kind_(kind), components_(std::move(components)) {
  for (const Component* component : components_) {
    SORDINO_CHECK(std::find(names_.begin(), names_.end(), component->name()) == names_.end(),
                  "two components of one kind have the same name");
    names_.push_back(component->name());
    for (const OptionSpec* spec : component->options()) {
      const OptionSpec* const known = FindSpec(options_, spec->key);
      SORDINO_CHECK(known == nullptr || known == spec,
                    "two components have different options of the same key");
      if (known != nullptr) continue;
      CheckSpec(*spec);
      options_.push_back(spec);
    }
  }
}

std::vector<std::string_view> ComponentList::Owners(std::string_view key) const {
  std::vector<std::string_view> owners;
  for (const Component* component : components_) {
    if (component->Has(key)) owners.push_back(component->name());
  }
  return owners;
}

std::string ComponentList::ChoiceHelp() const { return OneOf(names_); }

std::string ComponentList::OptionHelp(const OptionSpec& spec) const {
  const std::vector<std::string_view> owners = Owners(spec.key);
  std::string more;
  if (owners.size() < names_.size()) more = fmt::format("{}", fmt::join(owners, ", "));
  const std::string value = spec.type == OptionType::kSwitch ? "" : OptionText(spec.Default());
  if (!value.empty()) more += (more.empty() ? "" : "; ") + value;
  return more.empty() ? std::string(spec.help) : fmt::format("{} ({})", spec.help, more);
}

std::string ComponentList::Page() const {
  const bool has_options = !options_.empty();
  std::string page = fmt::format("| {} | what it is |{}\n|---|---|{}\n", kind_,
                                 has_options ? " options |" : "", has_options ? "---|" : "");
  for (const Component* component : components_) {
    page += fmt::format("| `{}` | {} |", component->Usage(), component->help());
    if (has_options) {
      std::vector<std::string> keys;
      for (const OptionSpec* spec : component->options()) {
        keys.push_back(fmt::format("`{}`", spec->key));
      }
      page += keys.empty() ? " – |" : fmt::format(" {} |", fmt::join(keys, ", "));
    }
    page += '\n';
  }
  return has_options ? page + OptionsPage() : page;
}

std::string ComponentList::OptionsPage() const {
  std::string page = "\n| option | flag | range | left out | |\n|---|---|---|---|---|\n";
  for (const OptionSpec* spec : options_) {
    const std::string value = OptionText(spec->Default());
    page += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", spec->key, spec->flag, RangeText(*spec),
                        value.empty() ? "–" : value, spec->help);
  }
  return page;
}

std::size_t ComponentList::IndexOf(std::string_view name) const {
  return IndexOfName(fmt::format("the {}", kind_), name, names_);
}

void ComponentList::CheckEach(const Component& component, const OptionValues& options) const {
  for (const std::string_view key : options.Keys()) {
    const OptionSpec* const spec = FindSpec(options_, key);
    if (spec == nullptr) {
      std::vector<std::string_view> known;
      for (const OptionSpec* option : options_) known.push_back(option->key);
      throw Error(fmt::format("'{}' is not an option of the {}; {}its options are {}.", key, kind_,
                              DidYouMean(key, known), OneOf(known)));
    }
    options.Check(*spec);
    if (component.Has(key) || options.IsFallback(*spec)) continue;
    throw Error(fmt::format(
        "{} was given for the {} '{}', which does not have it; use {}, or leave it out.",
        spec->what, kind_, component.name(), Quoted(Owners(key))));
  }
}

void ComponentList::CheckOptions(const Component& component, const OptionValues& options) const {
  CheckEach(component, options);
  component.Check(options);
}

Choice ComponentList::Completed(const Choice& choice) const {
  const Component& component = *components_[IndexOf(choice.name)];
  CheckEach(component, choice.options);
  Choice completed = choice;
  for (const OptionSpec* spec : options_) {
    if (!component.Has(spec->key)) {
      completed.options.Remove(spec->key);
    } else if (!completed.options.Has(spec->key)) {
      completed.options.SetDefault(*spec, spec->Default());
    }
  }
  component.Check(completed.options);
  return completed;
}

}  // namespace sordino
