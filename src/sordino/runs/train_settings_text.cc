// Settings from flags and from configuration files, and back into one.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <type_traits>

#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"
#include "sordino/base/toml_nesting.h"
#include "sordino/runs/train_settings.h"

namespace sordino {
namespace {

double RealFrom(std::string_view where, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    throw Error(fmt::format("'{}' in {} is not a finite number; give one such as 0.5 or 1e-5.",
                            text, where));
  }
  return number;
}

// Also written as 6e4.
std::int64_t WholeFrom(std::string_view where, std::string_view text) {
  return static_cast<std::int64_t>(ExactCount(RealFrom(where, text), text, where));
}

void CheckChoice(const Setting& setting, std::string_view where, const std::string& given) {
  if (!setting.choices.empty()) IndexOfName(where, given, setting.choices);
}

// One value from text. Numbers keep to the range that a file can hold.
template <typename Value>
Value ValueFrom(std::string_view where, const std::string& text) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return text;
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    throw Error(fmt::format("{} is '{}'; it can be true or false.", where, text));
  } else if constexpr (std::is_same_v<Value, double>) {
    return RealFrom(where, text);
  } else {
    return static_cast<Value>(WholeFrom(where, text));
  }
}

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};
// What a field that may be empty holds.
template <typename T>
struct ValueOf {
  using type = T;
};
template <typename T>
struct ValueOf<std::optional<T>> {
  using type = T;
};

// What a node of a file must be, in words.
template <typename Value>
constexpr std::string_view TypeName() {
  if constexpr (std::is_same_v<Value, std::string>) return "a text in quotes";
  if constexpr (std::is_same_v<Value, bool>) return "true or false";
  if constexpr (std::is_same_v<Value, double>) return "a number";
  return "a whole number of at least 0";
}

template <typename Value>
std::optional<Value> FromNode(const toml::node& node) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return node.value_exact<std::string>();
  } else if constexpr (std::is_same_v<Value, bool>) {
    return node.value_exact<bool>();
  } else if constexpr (std::is_same_v<Value, double>) {
    if (const auto whole = node.value_exact<std::int64_t>()) return static_cast<double>(*whole);
    const auto real = node.value_exact<double>();
    return real && std::isfinite(*real) ? real : std::nullopt;
  } else {
    const auto whole = node.value_exact<std::int64_t>();
    if (!whole || *whole < 0) return std::nullopt;
    return static_cast<Value>(*whole);
  }
}

class FileReader {
 public:
  explicit FileReader(std::string name) : name_(std::move(name)) {}

  TrainConfig Read(const toml::table& file) const {
    TrainConfig config;
    for (const auto& [key, node] : file) {
      const toml::table* section = node.as_table();
      if (section == nullptr) {
        Fail(node, fmt::format("'{}' stands outside of a section; the sections are {}", key.str(),
                               OneOf(Sections())));
      }
      ReadSection(config, key.str(), *section);
    }
    return config;
  }

 private:
  [[noreturn]] void Fail(const toml::node& node, const std::string& what) const {
    throw Error(fmt::format("{}, line {}: {}{}", name_, node.source().begin.line, what,
                            what.ends_with('?') ? "" : "."));
  }

  static std::vector<std::string_view> Sections() {
    std::vector<std::string_view> sections;
    for (const Setting& setting : TrainSettings()) {
      if (sections.empty() || sections.back() != setting.section) {
        sections.push_back(setting.section);
      }
    }
    return sections;
  }

  void ReadSection(TrainConfig& config, std::string_view section, const toml::table& table) const {
    std::vector<std::string_view> keys;
    for (const Setting& setting : TrainSettings()) {
      if (setting.section == section) keys.push_back(setting.key);
    }
    if (keys.empty()) {
      const std::vector<std::string_view> sections = Sections();
      Fail(table, fmt::format("the section [{}] is not known; {}the sections are {}", section,
                              DidYouMean(section, sections), OneOf(sections)));
    }
    for (const auto& [key, node] : table) {
      const std::string_view name = key.str();
      const auto settings = TrainSettings();
      const auto setting =
          std::find_if(settings.begin(), settings.end(), [&](const Setting& candidate) {
            return candidate.section == section && candidate.key == name;
          });
      if (setting == settings.end()) {
        const std::string guess = DidYouMean(name, keys);
        Fail(node, fmt::format("'{}' is not a key of [{}]; {}", name, section,
                               guess.empty() ? fmt::format("its keys are {}", OneOf(keys))
                                             : guess.substr(0, guess.size() - 1)));
      }
      std::visit([&, &value = node](auto* field) { ReadNode(*field, *setting, value); },
                 setting->field(config));
    }
  }

  template <typename Value>
  void ReadNode(Value& field, const Setting& setting, const toml::node& node) const {
    const auto wrong = [&](std::string_view wanted) {
      Fail(node, fmt::format("'{}' in [{}] must be {}", setting.key, setting.section, wanted));
    };
    if constexpr (IsList<Value>::value) {
      using Entry = typename Value::value_type;
      const toml::array* array = node.as_array();
      const std::string wanted = fmt::format("a list of which each is {}", TypeName<Entry>());
      if (array == nullptr) wrong(wanted);
      field.clear();
      for (const toml::node& entry : *array) {
        const std::optional<Entry> value = FromNode<Entry>(entry);
        if (!value) wrong(wanted);
        field.push_back(*value);
      }
    } else {
      using Entry = typename ValueOf<Value>::type;
      const std::optional<Entry> value = FromNode<Entry>(node);
      if (!value) wrong(TypeName<Entry>());
      if constexpr (std::is_same_v<Entry, std::string>) CheckText(*value, setting, node);
      field = *value;
    }
  }

  void CheckText(const std::string& text, const Setting& setting, const toml::node& node) const {
    if (text.empty()) {
      Fail(node, fmt::format("'{}' in [{}] is empty; give a value, or leave the key out",
                             setting.key, setting.section));
    }
    CheckChoice(setting,
                fmt::format("{}, line {}: '{}'", name_, node.source().begin.line, setting.key),
                text);
  }

  std::string name_;
};

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (code < 0x20 || code == 0x7f) {
      quoted += fmt::format("\\u{:04x}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string Written(const std::string& value) { return Quoted(value); }
std::string Written(bool value) { return value ? "true" : "false"; }
std::string Written(double value) { return fmt::format("{}", value); }
std::string Written(std::int64_t value) { return fmt::format("{}", value); }
std::string Written(std::uint64_t value) { return fmt::format("{}", value); }

template <typename Value>
std::string Written(const std::vector<Value>& values) {
  std::string list = "[";
  for (const Value& value : values) {
    if (list.size() > 1) list += ", ";
    list += Written(value);
  }
  return list + "]";
}

template <typename Value>
std::string Written(const std::optional<Value>& value) {
  return value ? Written(*value) : "";
}

template <typename Value>
Value SettingValue(const Setting& setting, const std::string& text) {
  Value value = ValueFrom<Value>(setting.flag, text);
  if constexpr (std::is_same_v<Value, std::int64_t>) {
    if (setting.positive && value == 0) {
      throw Error(fmt::format("{} is {}; give a whole number from 1.", setting.flag, text));
    }
  }
  return value;
}

void SetFromText(TrainConfig& config, const Setting& setting,
                 const std::vector<std::string>& texts) {
  const std::string where(setting.flag);
  std::visit(
      [&](auto* field) {
        using Value = std::remove_pointer_t<decltype(field)>;
        if constexpr (IsList<Value>::value) {
          field->clear();
          for (const std::string& text : texts) {
            if (setting.repeats) {
              field->push_back(SettingValue<typename Value::value_type>(setting, text));
              continue;
            }
            for (const std::string& part : SplitList(text)) {
              field->push_back(SettingValue<typename Value::value_type>(setting, part));
            }
          }
        } else {
          if (texts.size() != 1) {
            throw Error(fmt::format("{} is given {} times; give it once.", where, texts.size()));
          }
          *field = SettingValue<typename ValueOf<Value>::type>(setting, texts.front());
          if constexpr (std::is_same_v<Value, std::string>) CheckChoice(setting, where, *field);
        }
      },
      setting.field(config));
}

void Clear(TrainConfig& config, const Setting& setting) {
  TrainConfig defaults;
  const SettingField from = setting.field(defaults);
  std::visit([&](auto* field) { *field = *std::get<decltype(field)>(from); },
             setting.field(config));
}

}  // namespace

void SetFromFlags(TrainConfig& config, std::span<const GivenFlag> flags) {
  for (const GivenFlag& flag : flags) {
    for (const Setting& other : TrainSettings()) {
      if (other.section == flag.setting->section && other.key == flag.setting->rival) {
        Clear(config, other);
      }
    }
  }
  for (const GivenFlag& flag : flags) SetFromText(config, *flag.setting, flag.texts);
}

TrainConfig ParseTrainConfig(std::string_view text, const std::string& name) {
  CheckTomlNesting(text, name);
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw Error(
        fmt::format("{}, line {}: this is not TOML: {}.", name, error.source().begin.line, what));
  }
  return FileReader(name).Read(table);
}

bool IsTrainConfig(const std::filesystem::path& file) {
  if (file.extension() == ".toml") return true;
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) return false;
  constexpr std::size_t kLongestStart = 4096;
  std::string start(kLongestStart, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  std::istringstream lines(start);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    const auto settings = TrainSettings();
    return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
      return line == fmt::format("[{}]", setting.section);
    });
  }
  return false;
}

TrainConfig ReadTrainConfig(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) {
    throw Error(
        fmt::format("the configuration '{}' cannot be read: {}.", file.string(), error.message()));
  }
  if (size > kMaxBytes) {
    throw Error(
        fmt::format("the configuration '{}' has {} bytes; at most {} are read, so this is "
                    "probably another file.",
                    file.string(), size, kMaxBytes));
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in) throw Error(fmt::format("the configuration '{}' cannot be read.", file.string()));
  return ParseTrainConfig(content.str(), file.string());
}

std::string WriteTrainConfig(const TrainConfig& config) {
  TrainConfig copy = config;  // fields are reached through a mutable one
  std::string text;
  std::string_view section;
  for (const Setting& setting : TrainSettings()) {
    if (setting.of_this_run) continue;
    if (setting.section != section) {
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", setting.section);
      section = setting.section;
    }
    const std::string value =
        std::visit([](const auto* field) { return Written(*field); }, setting.field(copy));
    const bool left_out = value.empty() || value == "\"\"" || value == "[]";
    text += left_out ? fmt::format("# {} is left out: {}\n", setting.key, setting.help)
                     : fmt::format("{} = {}  # {}\n", setting.key, value, setting.help);
  }
  return text;
}

}  // namespace sordino
