#include "sordino/tables/cell_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 6> kRuleNames = {"unit",     "decimal",      "thousands",
                                                        "censored", "not-a-number", "format"};
constexpr std::array<std::string_view, 2> kCensoredNames = {"limit", "half"};
constexpr std::array<std::string_view, 5> kNoWords = {"0", "no", "n", "false", "f"};
constexpr std::array<std::string_view, 5> kYesWords = {"1", "yes", "y", "true", "t"};
constexpr std::string_view kBlank = "blank";
constexpr char kFactor = '*';
constexpr double kSecondsOfADay = 86400;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool SameLetters(std::string_view cell, std::string_view word) {
  return cell.size() == word.size() &&
         std::equal(cell.begin(), cell.end(), word.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

NumberError ReadBoolean(const CellRules& rules, std::string_view cell, double* number) {
  *number = 0;
  if (!rules.words.empty()) {
    const auto found = std::find(rules.words.begin(), rules.words.end(), cell);
    if (found == rules.words.end()) return NumberError::kNotABoolean;
    *number = found == rules.words.begin() ? 0 : 1;
    return NumberError::kNone;
  }
  const auto is_one_of = [cell](std::span<const std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [cell](std::string_view word) { return SameLetters(cell, word); });
  };
  if (is_one_of(kNoWords)) return NumberError::kNone;
  *number = 1;
  return is_one_of(kYesWords) ? NumberError::kNone : NumberError::kNotABoolean;
}

// The parts of a format that stand for digits, in the order of DateParts.
constexpr std::array<std::string_view, 6> kDateTokens = {"YYYY", "MM", "DD", "hh", "mm", "ss"};
using DateParts = std::array<int, 6>;

// The token at the beginning of a format; kDateTokens.size() for none.
std::size_t TokenAt(std::string_view format) {
  const auto* const found =
      std::find_if(kDateTokens.begin(), kDateTokens.end(),
                   [format](std::string_view token) { return format.starts_with(token); });
  return static_cast<std::size_t>(found - kDateTokens.begin());
}

// Takes as many digits as the token has letters from the front of the cell; where no other digits
// follow, one is enough for two.
bool TakeDigits(std::string_view& cell, std::size_t most, bool may_be_short, int* number) {
  std::size_t count = 0;
  *number = 0;
  while (count < most && count < cell.size() && IsDigit(cell[count])) {
    *number = 10 * *number + (cell[count++] - '0');
  }
  cell.remove_prefix(count);
  return count == most || (may_be_short && most == 2 && count == 1);
}

bool TakeDate(std::string_view format, std::string_view cell, DateParts* parts) {
  while (!format.empty()) {
    const std::size_t token = TokenAt(format);
    if (token == kDateTokens.size()) {
      if (cell.empty() || cell.front() != format.front()) return false;
      cell.remove_prefix(1);
      format.remove_prefix(1);
      continue;
    }
    const std::size_t size = kDateTokens[token].size();
    format.remove_prefix(size);
    const bool alone = format.empty() || TokenAt(format) == kDateTokens.size();
    if (!TakeDigits(cell, size, alone, &(*parts)[token])) return false;
  }
  return cell.empty();
}

NumberError ReadDate(std::string_view format, std::string_view cell, double* number) {
  DateParts parts{};
  if (!TakeDate(format, cell, &parts)) return NumberError::kNotADate;
  const std::chrono::year_month_day date{std::chrono::year(parts[0]),
                                         std::chrono::month(static_cast<unsigned>(parts[1])),
                                         std::chrono::day(static_cast<unsigned>(parts[2]))};
  if (!date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 60) return NumberError::kNotADate;
  const int seconds = (parts[3] * 60 + parts[4]) * 60 + parts[5];
  *number = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) +
            seconds / kSecondsOfADay;
  return NumberError::kNone;
}

// -1 for <, 1 for >, 0 for neither, which is taken off the cell.
int TakeComparison(std::string_view& cell) {
  constexpr std::array<std::pair<std::string_view, int>, 6> kSigns = {
      {{"<=", -1}, {">=", 1}, {"\u2264", -1}, {"\u2265", 1}, {"<", -1}, {">", 1}}};
  for (const auto& [sign, side] : kSigns) {
    if (!cell.starts_with(sign)) continue;
    cell = Trimmed(cell.substr(sign.size()));
    return side;
  }
  return 0;
}

// Takes the longest unit off and returns its factor.
double TakeUnit(const std::vector<CellUnit>& units, std::string_view& cell) {
  const CellUnit* longest = nullptr;
  for (const CellUnit& unit : units) {
    const bool there = cell.ends_with(unit.name) || cell.starts_with(unit.name);
    if (there && (longest == nullptr || unit.name.size() > longest->name.size())) longest = &unit;
  }
  if (longest == nullptr) return 1;
  const std::size_t size = longest->name.size();
  cell = Trimmed(cell.ends_with(longest->name) ? cell.substr(0, cell.size() - size)
                                               : cell.substr(size));
  return longest->factor;
}

// The text with a decimal point and without thousands; empty where it is not written so.
std::string PlainNumber(const CellRules& rules, std::string_view cell) {
  const std::size_t point = cell.find(rules.decimal);
  const std::string_view whole = cell.substr(0, point);
  const std::string_view behind =
      point == std::string_view::npos ? std::string_view() : cell.substr(point + 1);
  std::string plain;
  std::size_t since = 0;  // digits since the last separator
  bool grouped = false;
  for (const char c : whole) {
    if (rules.thousands != '\0' && c == rules.thousands) {
      if (grouped ? since != 3 : since < 1 || since > 3) return "";
      grouped = true;
      since = 0;
      continue;
    }
    if (c == '.' || c == ',') return "";  // neither is the decimal sign nor that of thousands
    since += IsDigit(c) ? 1 : 0;
    plain += c;
  }
  if (grouped && since != 3) return "";
  if (point == std::string_view::npos) return plain;
  if (behind.find_first_of(".,") != std::string_view::npos) return "";
  return plain.append(".").append(behind);
}

NumberError ReadNumber(const CellRules& rules, std::string_view cell, double* number) {
  const int side = rules.censored == Censored::kRefused ? 0 : TakeComparison(cell);
  const double factor = TakeUnit(rules.units, cell);
  NumberError error = NumberError::kNone;
  if (rules.decimal == '.' && rules.thousands == '\0') {
    error = ParseNumber(cell, number);
  } else {
    const std::string plain = PlainNumber(rules, cell);
    error = plain.empty() ? NumberError::kNotANumber : ParseNumber(plain, number);
  }
  if (error != NumberError::kNone) {
    return error == NumberError::kEmpty ? NumberError::kNotANumber : error;  // a unit stood alone
  }
  *number *= factor;
  if (!std::isfinite(*number)) return NumberError::kOutOfRange;
  if (side < 0 && rules.censored == Censored::kHalf && *number > 0) *number /= 2;
  return NumberError::kNone;
}

bool IsPlain(const CellRules& rules) {
  return rules.form == CellForm::kNumber && rules.decimal == '.' && rules.thousands == '\0' &&
         rules.units.empty() && rules.censored == Censored::kRefused;
}

NumberError ReadByForm(const CellRules& rules, std::string_view cell, double* number) {
  if (IsPlain(rules)) return ParseNumber(cell, number);
  cell = Trimmed(cell);
  if (cell.empty()) return NumberError::kEmpty;
  switch (rules.form) {
    case CellForm::kDate:
      return ReadDate(rules.date_format, cell, number);
    case CellForm::kBoolean:
      return ReadBoolean(rules, cell, number);
    case CellForm::kNumber:
      return ReadNumber(rules, cell, number);
  }
  return NumberError::kNotANumber;
}

// "." for ".", " " for "blank", and no sign for "none", by which a column leaves out thousands that
// its table has.
char SignOf(std::string_view name, const std::string& text) {
  constexpr std::string_view kSigns = ".,' _";
  if (name == "thousands" && text == "none") return '\0';
  const std::string sign = text == kBlank ? " " : text;
  const bool known = sign.size() == 1 && kSigns.find(sign[0]) != std::string_view::npos;
  if (known && (name == "thousands" || sign == "." || sign == ",")) return sign[0];
  throw Error(fmt::format("{} is '{}'; give {}.", name, text,
                          name == "decimal" ? "'.' or ','" : "'.', ',', ''', '_', blank or none"));
}

CellUnit UnitOf(const std::string& text) {
  const std::size_t star = text.rfind(kFactor);
  CellUnit unit{.name = std::string(Trimmed(text.substr(0, star)))};
  const bool has_factor = star != std::string::npos;
  if (has_factor && (ParseNumber(text.substr(star + 1), &unit.factor) != NumberError::kNone ||
                     !(unit.factor > 0))) {
    throw Error(
        fmt::format("the unit '{}' has no factor above 0 behind its {}; write it as lb*0.4536.",
                    text, kFactor));
  }
  if (unit.name.empty() ||
      std::string_view("0123456789+-.,").find(unit.name[0]) != std::string::npos) {
    throw Error(fmt::format("the unit '{}' is empty or begins like a number; give it as kg or m2.",
                            unit.name));
  }
  return unit;
}

void RefuseForm(const CellRules& rules, std::string_view name) {
  const bool of_dates = name == "format";
  const bool fits = name == "not-a-number" ||
                    (of_dates ? rules.form == CellForm::kDate : rules.form == CellForm::kNumber);
  if (fits) return;
  throw Error(fmt::format("{} is a rule of {}; leave it out.", name,
                          of_dates ? "dates" : "numbers, not of dates, yes and no"));
}

}  // namespace

NumberError ReadCell(const CellRules& rules, std::string_view cell, double* number) {
  const NumberError error = ReadByForm(rules, cell, number);
  return error != NumberError::kNone && rules.text_is_missing ? NumberError::kMissing : error;
}

std::span<const std::string_view> CellRuleNames() { return kRuleNames; }

void SetCellRule(CellRules& rules, std::string_view name, const std::string& value) {
  const std::string_view known = kRuleNames[IndexOfName("the rule for cells", name, kRuleNames)];
  RefuseForm(rules, known);
  if (known == "unit") {
    rules.units.push_back(UnitOf(value));
  } else if (known == "decimal") {
    rules.decimal = SignOf(known, value);
  } else if (known == "thousands") {
    rules.thousands = SignOf(known, value);
  } else if (known == "censored") {
    rules.censored = static_cast<Censored>(IndexOfName("censored", value, kCensoredNames) + 1);
  } else if (known == "format") {
    rules.date_format = value;
  } else if (value == "missing") {
    rules.text_is_missing = true;
  } else {
    throw Error(fmt::format("{} is '{}'; what it can be is missing.", known, value));
  }
}

std::vector<std::string> CellRuleTexts(const CellRules& rules) {
  const CellRules plain;
  std::vector<std::string> texts;
  if (rules.decimal != plain.decimal) texts.push_back(fmt::format("decimal={}", rules.decimal));
  if (rules.thousands != plain.thousands) {
    texts.push_back(rules.thousands == ' ' ? fmt::format("thousands={}", kBlank)
                                           : fmt::format("thousands={}", rules.thousands));
  }
  for (const CellUnit& unit : rules.units) {
    const bool is_plain = unit.factor == 1 && unit.name.find(kFactor) == std::string::npos;
    texts.push_back(is_plain ? "unit=" + unit.name
                             : fmt::format("unit={}{}{}", unit.name, kFactor, unit.factor));
  }
  if (rules.censored != plain.censored) {
    texts.push_back(
        fmt::format("censored={}", kCensoredNames[static_cast<std::size_t>(rules.censored) - 1]));
  }
  if (rules.date_format != plain.date_format) texts.push_back("format=" + rules.date_format);
  if (rules.text_is_missing) texts.emplace_back("not-a-number=missing");
  return texts;
}

void CheckCellRules(const CellRules& rules) {
  if (rules.decimal == rules.thousands) {
    throw Error(fmt::format("decimal and thousands are both '{}'; give two different signs.",
                            rules.decimal));
  }
  for (const std::string_view token : {"YYYY", "MM", "DD"}) {
    if (rules.date_format.find(token) == std::string::npos) {
      throw Error(fmt::format("the format '{}' of a date has no {}; write it as DD.MM.YYYY.",
                              rules.date_format, token));
    }
  }
  if (rules.words.empty()) return;
  if (rules.words.size() != 2 || rules.words[0] == rules.words[1] ||
      (rules.words[0] + rules.words[1]).find('=') != std::string::npos) {
    throw Error(
        "a boolean has two different values without '=', the one for no first, such as nein|ja.");
  }
}

bool ParseIsoDate(std::string_view text, double* days) {
  return ReadDate(CellRules().date_format, Trimmed(text), days) == NumberError::kNone;
}

std::string IsoDate(double days) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(static_cast<int>(std::floor(days))))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

}  // namespace sordino
