// Options of a component: what each is called, which values it takes, and the values that were
// given.
//
// An OptionSpec is a constant in the file of the component that has the option (or, where several
// have it, in a header that they share). Flags, keys of configuration files, help texts, checks
// and error sentences are made from it and stand nowhere else.
#ifndef SORDINO_BASE_OPTIONS_H_
#define SORDINO_BASE_OPTIONS_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {

enum class OptionType : std::uint8_t { kNumber, kWhole, kSwitch, kText };

// A value in a constant; empty: there is none.
using OptionDefault = std::variant<std::monostate, double, std::int64_t, bool, std::string_view>;

struct OptionSpec {
  std::string_view key;              // in OptionValues and in a file: "weight-decay"
  std::string_view flag;             // "--weight-decay"
  std::string_view value_name = {};  // in the help: "X"; empty for a switch
  std::string_view help;
  std::string_view what;  // in a sentence: "the weight decay"
  OptionType type = OptionType::kNumber;
  // Where it is left out.
  OptionDefault fallback = {};
  // What `sordino train` takes instead, where that differs; empty: the fallback.
  OptionDefault recipe = {};
  // The range of a number.
  double low = 0;
  bool low_open = false;
  double high = kInfinity;
  bool high_open = true;

  // The recipe, or the fallback.
  const OptionDefault& Default() const;
};

// Stops the program for a spec that lacks a word or whose own values are not in its range.
void CheckSpec(const OptionSpec& spec);

using OptionValue = std::variant<double, std::int64_t, bool, std::string>;

// "0.9", "true", "text"; empty where there is no value.
std::string OptionText(const OptionDefault& value);

// Options that were given, by key.
class OptionValues {
 public:
  // A place for a value, by the type of its option.
  using Slot = std::variant<std::optional<double>, std::optional<std::int64_t>, std::optional<bool>,
                            std::optional<std::string>>;

  OptionValues() = default;
  // {{"momentum", 0.9}, {"nesterov", true}}
  OptionValues(std::initializer_list<std::pair<std::string_view, OptionValue>> values);

  void Set(std::string_view key, OptionValue value);
  void SetDefault(const OptionSpec& spec, const OptionDefault& value);
  void Remove(std::string_view key);
  bool Has(std::string_view key) const;
  std::vector<std::string_view> Keys() const;

  // The value that was given, or the fallback. Asking for another type than the spec's, or for an
  // option that has neither, stops the program: CheckOptions comes first.
  double Number(const OptionSpec& spec) const;
  std::int64_t Whole(const OptionSpec& spec) const;
  bool Switch(const OptionSpec& spec) const;
  std::string Text(const OptionSpec& spec) const;

  // Where a reader of flags or files puts the value; it is empty until then.
  Slot& SlotOf(const OptionSpec& spec);

  // Throws Error where the value is not of the option's type or outside its range.
  void Check(const OptionSpec& spec) const;
  // Whether the value that was given is the fallback.
  bool IsFallback(const OptionSpec& spec) const;

  // Empty places do not count.
  friend bool operator==(const OptionValues& a, const OptionValues& b);

 private:
  std::map<std::string, Slot, std::less<>> slots_;
};

}  // namespace sordino

#endif  // SORDINO_BASE_OPTIONS_H_
