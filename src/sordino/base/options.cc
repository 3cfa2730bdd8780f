#include "sordino/base/options.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"

namespace sordino {
namespace {

OptionValues::Slot EmptySlot(OptionType type) {
  switch (type) {
    case OptionType::kNumber:
      return std::optional<double>();
    case OptionType::kWhole:
      return std::optional<std::int64_t>();
    case OptionType::kSwitch:
      return std::optional<bool>();
    case OptionType::kText:
      break;
  }
  return std::optional<std::string>();
}

bool IsEmpty(const OptionValues::Slot& slot) {
  return std::visit([](const auto& value) { return !value.has_value(); }, slot);
}

// The value as type T, where it is one; a whole number is a number too.
template <typename T>
std::optional<T> As(const OptionValues::Slot& slot) {
  if (const auto* const value = std::get_if<std::optional<T>>(&slot)) return *value;
  if constexpr (std::is_same_v<T, double>) {
    const auto* const whole = std::get_if<std::optional<std::int64_t>>(&slot);
    if (whole != nullptr && whole->has_value()) return static_cast<double>(**whole);
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> As(const OptionDefault& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    const auto* const text = std::get_if<std::string_view>(&value);
    return text == nullptr ? std::nullopt : std::optional<std::string>(*text);
  } else {
    const auto* const found = std::get_if<T>(&value);
    return found == nullptr ? std::nullopt : std::optional<T>(*found);
  }
}

std::string_view TypeWords(OptionType type) {
  switch (type) {
    case OptionType::kNumber:
      return "a number";
    case OptionType::kWhole:
      return "a whole number";
    case OptionType::kSwitch:
      return "true or false";
    case OptionType::kText:
      break;
  }
  return "a text";
}

bool HasType(const OptionValues::Slot& slot, OptionType type) {
  switch (type) {
    case OptionType::kNumber:
      return As<double>(slot).has_value();
    case OptionType::kWhole:
      return As<std::int64_t>(slot).has_value();
    case OptionType::kSwitch:
      return As<bool>(slot).has_value();
    case OptionType::kText:
      break;
  }
  return As<std::string>(slot).has_value();
}

void CheckNumber(const OptionSpec& spec, double value) {
  CheckRange(spec.what, value, spec.low, spec.low_open, spec.high, spec.high_open);
}

}  // namespace

const OptionDefault& OptionSpec::Default() const {
  return std::holds_alternative<std::monostate>(recipe) ? fallback : recipe;
}

void CheckSpec(const OptionSpec& spec) {
  SORDINO_CHECK(
      !spec.key.empty() && spec.flag.starts_with("--") && !spec.help.empty() && !spec.what.empty(),
      "an option lacks its key, flag, help or words");
  SORDINO_CHECK(spec.value_name.empty() == (spec.type == OptionType::kSwitch),
                "an option has a value name exactly where it is not a switch");
  for (const OptionDefault& value : {spec.fallback, spec.recipe}) {
    OptionValues given;
    given.SetDefault(spec, value);
    given.Check(spec);
  }
}

std::string OptionText(const OptionDefault& value) {
  return std::visit(
      [](const auto& typed) -> std::string {
        using Value = std::decay_t<decltype(typed)>;
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return "";
        } else if constexpr (std::is_same_v<Value, bool>) {
          return typed ? "true" : "false";
        } else {
          return fmt::format("{}", typed);
        }
      },
      value);
}

OptionValues::OptionValues(std::initializer_list<std::pair<std::string_view, OptionValue>> values) {
  for (const auto& [key, value] : values) Set(key, value);
}

void OptionValues::Set(std::string_view key, OptionValue value) {
  slots_.insert_or_assign(
      std::string(key),
      std::visit(
          [](auto& typed) {
            return Slot(std::optional<std::decay_t<decltype(typed)>>(std::move(typed)));
          },
          value));
}

void OptionValues::SetDefault(const OptionSpec& spec, const OptionDefault& value) {
  std::visit(
      [&](const auto& typed) {
        using Value = std::decay_t<decltype(typed)>;
        if constexpr (std::is_same_v<Value, std::string_view>) {
          Set(spec.key, std::string(typed));
        } else if constexpr (!std::is_same_v<Value, std::monostate>) {
          Set(spec.key, typed);
        }
      },
      value);
}

void OptionValues::Remove(std::string_view key) {
  const auto found = slots_.find(key);
  if (found != slots_.end()) slots_.erase(found);
}

bool OptionValues::Has(std::string_view key) const {
  const auto found = slots_.find(key);
  return found != slots_.end() && !IsEmpty(found->second);
}

std::vector<std::string_view> OptionValues::Keys() const {
  std::vector<std::string_view> keys;
  for (const auto& [key, slot] : slots_) {
    if (!IsEmpty(slot)) keys.emplace_back(key);
  }
  return keys;
}

namespace {

template <typename T, typename Slots>
T ValueOf(const Slots& slots, const OptionSpec& spec) {
  std::optional<T> value;
  const auto found = slots.find(spec.key);
  if (found != slots.end()) value = As<T>(found->second);
  if (!value && (found == slots.end() || IsEmpty(found->second))) value = As<T>(spec.fallback);
  SORDINO_CHECK(value.has_value(), "an option was read that has no value of its type");
  return *std::move(value);
}

}  // namespace

double OptionValues::Number(const OptionSpec& spec) const { return ValueOf<double>(slots_, spec); }

std::int64_t OptionValues::Whole(const OptionSpec& spec) const {
  return ValueOf<std::int64_t>(slots_, spec);
}

bool OptionValues::Switch(const OptionSpec& spec) const { return ValueOf<bool>(slots_, spec); }

std::string OptionValues::Text(const OptionSpec& spec) const {
  return ValueOf<std::string>(slots_, spec);
}

OptionValues::Slot& OptionValues::SlotOf(const OptionSpec& spec) {
  Slot& slot = slots_.try_emplace(std::string(spec.key), EmptySlot(spec.type)).first->second;
  // A whole number that was given for a number.
  if (spec.type == OptionType::kNumber &&
      std::holds_alternative<std::optional<std::int64_t>>(slot)) {
    slot = As<double>(slot);
  }
  return slot;
}

void OptionValues::Check(const OptionSpec& spec) const {
  const auto found = slots_.find(spec.key);
  if (found == slots_.end() || IsEmpty(found->second)) return;
  if (!HasType(found->second, spec.type)) {
    throw Error(fmt::format("{} must be {}.", spec.what, TypeWords(spec.type)));
  }
  if (spec.type == OptionType::kNumber) CheckNumber(spec, *As<double>(found->second));
  if (spec.type == OptionType::kWhole) {
    const std::int64_t whole = *As<std::int64_t>(found->second);
    const auto limit = static_cast<double>(kMaxExactCount);
    CheckRange(spec.what, static_cast<double>(whole), -limit, false, limit, false);
    CheckNumber(spec, static_cast<double>(whole));
  }
}

bool OptionValues::IsFallback(const OptionSpec& spec) const {
  const auto found = slots_.find(spec.key);
  if (found == slots_.end()) return false;
  const auto same = [&](auto type) {
    using T = decltype(type);
    const std::optional<T> given = As<T>(found->second);
    return given.has_value() && given == As<T>(spec.fallback);
  };
  return same(double{}) || same(std::int64_t{}) || same(bool{}) || same(std::string{});
}

bool operator==(const OptionValues& a, const OptionValues& b) {
  const auto given = [](const OptionValues& values) {
    auto slots = values.slots_;
    std::erase_if(slots, [](const auto& entry) { return IsEmpty(entry.second); });
    return slots;
  };
  return given(a) == given(b);
}

}  // namespace sordino
