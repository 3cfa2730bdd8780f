// Declarations that are made from public data: a sample of other people's rows, or a codebook.
//
// Types, bounds and values are read off the sample, so it must be public: rows that nobody is
// protected in, such as an older survey, made-up ones or those of people who agreed. What the
// sample leaves open (whether 03/04 is in March or April, whether 1,234 is a thousand) is not
// guessed: the column is ignored, and a comment beside it says what to decide.
#ifndef SORDINO_TABLES_PUBLIC_SAMPLE_H_
#define SORDINO_TABLES_PUBLIC_SAMPLE_H_

#include <string>
#include <vector>

#include "sordino/tables/sample_layout.h"
#include "sordino/tables/schema_text.h"

namespace sordino {

// A column for each of the table, in its order. Bounds are rounded outward to two digits of their
// width, those of dates to whole years; text with few values is a category with "*" for all others.
// Appends the cells without a value to the layout's `missing`.
std::vector<DraftColumn> DraftColumns(PublicTable& table);

// A table with a row for each column of another one. It names columns with "name" ("variable",
// "column", "field"), and may have "kind" ("type"), "low" ("min"), "high" ("max"), "values"
// ("categories", "levels", with bars between them), "unit", "format" and "missing". Throws Error
// for what it cannot read.
std::vector<DraftColumn> ReadCodebook(const std::string& path, const KnownLayout& known,
                                      std::vector<std::string>& missing);

struct PublicSources {
  std::string sample = {};  // a file; empty: none
  // Likewise; wins over the sample, which says how cells are written where the codebook does not.
  std::string codebook = {};
  KnownLayout layout = {};
  std::string predicted = {};  // the column that becomes the label or target; empty: none
};
struct PublicSchema {
  std::vector<DraftColumn> columns;
  std::string text;  // of the schema file
};
// Throws Error where a file cannot be read, and where no column is called `predicted` or it can be
// neither a label nor a target.
PublicSchema SchemaFromPublic(const PublicSources& sources);

}  // namespace sordino

#endif  // SORDINO_TABLES_PUBLIC_SAMPLE_H_
