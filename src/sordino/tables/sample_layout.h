// How a public table is written down, found by trying. Only for tables that are public: of a
// private one the layout is declared (table_layout.h).
#ifndef SORDINO_TABLES_SAMPLE_LAYOUT_H_
#define SORDINO_TABLES_SAMPLE_LAYOUT_H_

#include <optional>
#include <string>
#include <vector>

#include "sordino/tables/table_layout.h"

namespace sordino {

// What is known already is not searched for.
struct KnownLayout {
  std::optional<Encoding> encoding = {};
  std::optional<char> delimiter = {};
  std::optional<char> quote = {};
  std::optional<bool> header = {};
};

struct PublicTable {
  TableLayout layout;
  bool is_text = true;  // not of Parquet and Arrow files, which have no layout
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // without blanks at the ends of cells
};

// Cells that stand for no value in most tables: an empty one, NA, NaN, null, ...
bool LooksMissing(std::string_view cell);

// Reads all of a public table. Delimiters and quotes are those by which every row has as many
// fields as the first; of several, those that leave the most numbers, dates and words for yes and
// no. Throws Error where there are none or two, and for a table of more than 256 MiB or without
// rows.
PublicTable ReadPublicTable(const std::string& path, const KnownLayout& known);

}  // namespace sordino

#endif  // SORDINO_TABLES_SAMPLE_LAYOUT_H_
