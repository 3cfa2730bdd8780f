// How the cells of a column stand for numbers, where they are not plain ones: what was declared
// about a decimal comma, thousands, units, values below a limit of detection, dates, yes and no.
//
// Nothing is tried: a cell is read by the rules of its column, or it is a mistake. The number of a
// cell depends on that cell and the rules alone.
#ifndef SORDINO_TABLES_CELL_RULES_H_
#define SORDINO_TABLES_CELL_RULES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/tables/cell.h"

namespace sordino {

enum class CellForm : std::uint8_t {
  kNumber,
  kDate,     // days since 1970-01-01, with the share of the day where the format has a time
  kBoolean,  // 0 or 1
};

// "<0.5" and ">100", also with <=, >=, ≤ and ≥.
enum class Censored : std::uint8_t {
  kRefused,
  kLimit,  // <0.5 is 0.5, >100 is 100
  kHalf,   // <0.5 is 0.25; >100 is 100
};

// What may stand before or behind a number, and by what the number is then multiplied.
struct CellUnit {
  std::string name;
  double factor = 1;
  bool operator==(const CellUnit&) const = default;
};

struct CellRules {
  CellForm form = CellForm::kNumber;
  char decimal = '.';
  char thousands = '\0';  // between groups of three digits; \0: none
  std::vector<CellUnit> units = {};
  Censored censored = Censored::kRefused;
  // A cell that holds no such number has no value, as if it were declared to be missing.
  bool text_is_missing = false;
  // YYYY, MM, DD, hh, mm and ss stand for digits, everything else for itself.
  std::string date_format = "YYYY-MM-DD";
  // Of kBoolean, the one for 0 first. Empty: 0 and 1, no and yes, n and y, false and true, f and t,
  // in small letters or capitals.
  std::vector<std::string> words = {};
  bool operator==(const CellRules&) const = default;
};

// The number of a cell. kMissing only where text is missing.
NumberError ReadCell(const CellRules& rules, std::string_view cell, double* number);

// "unit", "decimal", "thousands", "censored", "not-a-number", "format": the names of rules.
std::span<const std::string_view> CellRuleNames();
// Throws Error for a name or a value that is not known, or that cells of this form do not take. A
// unit is "kg" or "lb*0.4536", and adds to those that are there.
void SetCellRule(CellRules& rules, std::string_view name, const std::string& value);
// What is not as in CellRules(), as "decimal=,", each readable by SetCellRule. Without form and
// words.
std::vector<std::string> CellRuleTexts(const CellRules& rules);
// Throws Error where decimal and thousands are the same, or a format lacks year, month or day.
void CheckCellRules(const CellRules& rules);

// Days since 1970-01-01 and back, as 2026-02-28. Whole days.
bool ParseIsoDate(std::string_view text, double* days);
std::string IsoDate(double days);

}  // namespace sordino

#endif  // SORDINO_TABLES_CELL_RULES_H_
