#include "sordino/tables/table_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"

namespace sordino {
namespace {

constexpr int kMostNames = 10'000;

}  // namespace

MalformedRows ParseMalformedRows(std::string_view what, std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames = {"refuse", "skip"};
  return static_cast<MalformedRows>(IndexOfName(what, name, kNames));
}

bool TableLayout::IsMissing(std::string_view cell) const {
  if (missing.empty()) return false;
  return std::find(missing.begin(), missing.end(), Trimmed(cell)) != missing.end();
}

char ParseDelimiter(const std::string& text) {
  if (text == "tab" || text == "\\t") return '\t';
  constexpr std::string_view kUnusable = "\"\r\n ";
  const bool ascii = text.size() == 1 && static_cast<unsigned char>(text[0]) - 1U < 0x7FU;
  if (ascii && kUnusable.find(text[0]) == std::string_view::npos) return text[0];
  throw Error(
      fmt::format("the delimiter '{}' cannot be used; give one character such as ';', or 'tab'.",
                  text.substr(0, 40)));
}

std::string DelimiterText(char delimiter) {
  return delimiter == '\t' ? "tab" : std::string(1, delimiter);
}

char ParseQuote(const std::string& text) {
  if (text == "none") return '\0';
  if (text == "\"" || text == "'") return text[0];
  throw Error(fmt::format("the quote is '{}'; give a double quote, a single quote, or none.",
                          text.substr(0, 40)));
}

std::string QuoteText(char quote) { return quote == '\0' ? "none" : std::string(1, quote); }

TableRows::TableRows(CsvReader& reader, const TableLayout& layout)
    : reader_(reader), first_is_record_(!layout.header) {
  if (!reader.Next()) {
    if (layout.header) {
      throw Error(fmt::format("'{}' is empty; a table starts with a line that names its columns.",
                              reader.name()));
    }
    // Without a header it is a table of no records, of which every column can be meant.
    first_is_record_ = false;
    has_lines_ = false;
    for (int i = 1; i <= kMostNames; ++i) names_.push_back(fmt::format("{}", i));
    return;
  }
  if (!reader.broken().empty()) {
    throw Error(
        fmt::format("the first line of '{}' cannot be read: {}.", reader.name(), reader.broken()));
  }
  for (std::size_t i = 0; i < reader.fields().size(); ++i) {
    names_.push_back(layout.header ? std::string(Trimmed(reader.fields()[i]))
                                   : fmt::format("{}", i + 1));
  }
}

bool TableRows::Next() {
  if (!has_lines_) return false;
  if (!first_is_record_) return reader_.Next();
  first_is_record_ = false;
  return true;
}

}  // namespace sordino
