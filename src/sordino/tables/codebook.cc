// Codebooks: tables that describe the columns of others (public_sample.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"
#include "sordino/tables/cell_rules.h"
#include "sordino/tables/public_sample.h"

namespace sordino {
namespace {

enum Part : std::size_t { kName, kKind, kLow, kHigh, kValues, kUnit, kFormat, kMissing, kParts };

// What the columns of a codebook may be called.
struct PartName {
  Part part;
  std::string_view name;
};
constexpr std::array<PartName, 23> kPartNames = {{{kName, "name"},
                                                  {kName, "variable"},
                                                  {kName, "column"},
                                                  {kName, "field"},
                                                  {kKind, "kind"},
                                                  {kKind, "type"},
                                                  {kLow, "low"},
                                                  {kLow, "min"},
                                                  {kLow, "minimum"},
                                                  {kHigh, "high"},
                                                  {kHigh, "max"},
                                                  {kHigh, "maximum"},
                                                  {kValues, "values"},
                                                  {kValues, "categories"},
                                                  {kValues, "levels"},
                                                  {kValues, "codes"},
                                                  {kValues, "labels"},
                                                  {kUnit, "unit"},
                                                  {kUnit, "units"},
                                                  {kFormat, "format"},
                                                  {kMissing, "missing"},
                                                  {kMissing, "na"},
                                                  {kMissing, "missing values"}}};

// Other words for kinds than those of schemas.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kKindWords = {
    {{"integer", "numeric"},
     {"int", "numeric"},
     {"float", "numeric"},
     {"double", "numeric"},
     {"number", "numeric"},
     {"real", "numeric"},
     {"decimal", "numeric"},
     {"continuous", "numeric"},
     {"factor", "categorical"},
     {"category", "categorical"},
     {"nominal", "categorical"},
     {"ordinal", "categorical"},
     {"bool", "boolean"},
     {"logical", "boolean"},
     {"binary", "boolean"},
     {"text", "ignored"},
     {"string", "ignored"},
     {"id", "ignored"}}};

std::string Small(std::string_view text) {
  std::string small(Trimmed(text));
  std::transform(small.begin(), small.end(), small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

using Places = std::array<std::optional<std::size_t>, kParts>;

Places PlacesOf(const PublicTable& book, const std::string& path) {
  Places places;
  for (std::size_t i = 0; i < book.names.size(); ++i) {
    const std::string small = Small(book.names[i]);
    for (const PartName& known : kPartNames) {
      if (known.name == small && !places[known.part]) places[known.part] = i;
    }
  }
  if (!places[kName]) {
    throw Error(fmt::format(
        "the codebook '{}' has no column that names the columns; call it 'name'.", path));
  }
  return places;
}

// A row of a codebook.
struct Entry {
  std::array<std::string, kParts> parts;

  bool Has(Part part) const { return !parts[part].empty(); }
};

std::string KindOf(const Entry& entry) {
  const std::string small = Small(entry.parts[kKind]);
  const auto* const known = std::find_if(kKindWords.begin(), kKindWords.end(),
                                         [&](const auto& words) { return words.first == small; });
  // Text with declared values is a category.
  const std::string kind(known == kKindWords.end() ? small : known->second);
  if (!kind.empty() && !(kind == kIgnoredKind && small != kIgnoredKind && entry.Has(kValues))) {
    return kind;
  }
  if (entry.Has(kValues)) return "categorical";
  return entry.Has(kLow) && entry.Has(kHigh) ? "numeric" : std::string(kIgnoredKind);
}

// "1=male" is the code 1: that is what cells hold.
std::vector<std::string> CodesOf(std::vector<std::string> values) {
  const bool are_codes = std::all_of(values.begin(), values.end(), [](const std::string& value) {
    return value.find('=', 1) != std::string::npos;
  });
  if (!are_codes) return values;
  for (std::string& value : values) value = Trimmed(value.substr(0, value.find('=', 1)));
  return values;
}

// Whether cells can carry it: "years" and "mmHg", not "0-10".
bool IsUnit(const std::string& text) {
  return !text.empty() && text.find('*') == std::string::npos &&
         std::string_view("0123456789+-.,").find(text[0]) == std::string_view::npos;
}

// A number with a decimal comma as one with a point. 1,234 may be a thousand, and stays as it is:
// no bound.
std::string BoundOf(const std::string& text) {
  const std::size_t comma = text.find(',');
  double number = 0;
  const bool decides = comma != std::string::npos && text.size() - comma != 4 &&
                       ReadCell({.decimal = ','}, text, &number) == NumberError::kNone;
  return decides ? text.substr(0, comma) + '.' + text.substr(comma + 1) : text;
}

// As --columns takes it.
std::string ColumnOf(const Entry& entry, const std::string& kind) {
  std::string text = ListValue(entry.parts[kName], ":") + ':' + kind;
  const bool bounded = kind == "numeric" || kind == "target" || kind == "date";
  if (bounded) text += ':' + BoundOf(entry.parts[kLow]) + ':' + BoundOf(entry.parts[kHigh]);
  if (!bounded && entry.Has(kValues)) {
    const char separator = entry.parts[kValues].find('|') != std::string::npos ? '|' : ',';
    std::string values;
    for (const std::string& value : CodesOf(SplitList(entry.parts[kValues], separator))) {
      values += (values.empty() ? "" : "|") + ListValue(value, "|~:=");
    }
    text += ':' + (kind == "boolean" ? ListValue(values, ":") : values);
  }
  if (IsUnit(entry.parts[kUnit]) && kind != "date" && bounded) {
    text += ":unit=" + ListValue(entry.parts[kUnit], ":");
  }
  if (entry.Has(kFormat) && kind == "date")
    text += ':' + ListValue("format=" + entry.parts[kFormat], ":");
  return text;
}

DraftColumn DraftOf(const Entry& entry) {
  DraftColumn draft{.name = entry.parts[kName]};
  const std::string kind = KindOf(entry);
  if (kind == kIgnoredKind) return draft;
  const bool bounded = kind == "numeric" || kind == "target" || kind == "date";
  if (bounded && !(entry.Has(kLow) && entry.Has(kHigh))) {
    draft.note = fmt::format("{}, without bounds in the codebook: write kind, low and high", kind);
    return draft;
  }
  if ((kind == "categorical" || kind == "label") && !entry.Has(kValues)) {
    draft.note = fmt::format("{}, without values in the codebook: write kind and values", kind);
    return draft;
  }
  draft.declared = ParseColumns({ColumnOf(entry, kind)}).front();
  return draft;
}

}  // namespace

std::vector<DraftColumn> ReadCodebook(const std::string& path, const KnownLayout& known,
                                      std::vector<std::string>& missing) {
  const PublicTable book = ReadPublicTable(path, known);
  const Places places = PlacesOf(book, path);
  std::vector<DraftColumn> drafts;
  for (const std::vector<std::string>& row : book.rows) {
    Entry entry;
    for (std::size_t part = 0; part < kParts; ++part) {
      if (places[part]) entry.parts[part] = row[*places[part]];
    }
    if (!entry.Has(kName)) continue;
    try {
      drafts.push_back(DraftOf(entry));
    } catch (const Error& error) {
      throw Error(fmt::format("the codebook '{}', column '{}': {}", path, entry.parts[kName],
                              error.what()));
    }
    if (!entry.Has(kMissing)) continue;
    for (std::string& cell : SplitList(entry.parts[kMissing], '|')) {
      if (std::find(missing.begin(), missing.end(), cell) == missing.end()) {
        missing.push_back(std::move(cell));
      }
    }
  }
  if (drafts.empty()) throw Error(fmt::format("the codebook '{}' names no columns.", path));
  return drafts;
}

}  // namespace sordino
