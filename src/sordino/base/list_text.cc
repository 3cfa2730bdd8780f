#include "sordino/base/list_text.h"

#include <fmt/format.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::string_view WithoutBlanks(std::string_view rest, char separator) {
  while (!rest.empty() && IsBlank(rest.front()) && rest.front() != separator) rest.remove_prefix(1);
  return rest;
}

// Takes a value in quotes from the front of `rest`; nothing where they do not close.
std::optional<std::string> TakeQuoted(std::string_view& rest) {
  std::string value;
  for (rest.remove_prefix(1); !rest.empty(); rest.remove_prefix(1)) {
    if (rest.front() == '"') {
      rest.remove_prefix(1);
      if (!rest.starts_with('"')) return value;
    }
    value += rest.front();
  }
  return std::nullopt;
}

// Reads one value from the front of `rest`, which is left at the separator after it or empty.
std::string TakeValue(std::string_view whole, std::string_view& rest, char separator) {
  rest = WithoutBlanks(rest, separator);
  if (!rest.starts_with('"')) {
    const std::size_t end = rest.find(separator);
    std::string value(Trimmed(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
    return value;
  }
  const std::optional<std::string> value = TakeQuoted(rest);
  rest = WithoutBlanks(rest, separator);
  if (!value || (!rest.empty() && rest.front() != separator)) {
    throw Error(
        fmt::format("the list {} has {}; write a value as \"a, b\" and a quote in it twice.", whole,
                    value ? "text behind a closing quote" : "quotes that do not close"));
  }
  return std::string(Trimmed(*value));
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> values;
  std::string_view rest = text;
  while (true) {
    const char* const begin = rest.data();
    values.push_back(TakeValue(text, rest, separator));
    const std::string_view written(begin, static_cast<std::size_t>(rest.data() - begin));
    if (Trimmed(written).empty()) {
      throw Error(fmt::format(
          "the list '{}' has a value that is empty; leave it out, or write \"\" for the empty "
          "value.",
          text));
    }
    if (rest.empty()) return values;
    rest.remove_prefix(1);
  }
}

std::optional<std::pair<std::string, std::string_view>> SplitName(std::string_view text,
                                                                  char separator) {
  std::string_view rest = WithoutBlanks(text, separator);
  if (rest.starts_with('"')) {
    const std::optional<std::string> name = TakeQuoted(rest);
    rest = WithoutBlanks(rest, separator);
    if (!name || !rest.starts_with(separator)) return std::nullopt;
    return std::pair(std::string(Trimmed(*name)), rest.substr(1));
  }
  const std::size_t end = rest.find(separator);
  if (end == std::string_view::npos) return std::nullopt;
  return std::pair(std::string(Trimmed(rest.substr(0, end))), rest.substr(end + 1));
}

std::string ListValue(std::string_view value, std::string_view special) {
  const bool plain = !value.empty() && value.front() != '"' && Trimmed(value) == value &&
                     value.find_first_of(special) == std::string_view::npos;
  if (plain) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace sordino
