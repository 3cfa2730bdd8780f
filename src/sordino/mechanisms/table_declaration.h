// What a request for statistics of a table takes from its declarations: equal bins from bounds, and
// bounds, bins, groups and the user from a schema.
#ifndef SORDINO_MECHANISMS_TABLE_DECLARATION_H_
#define SORDINO_MECHANISMS_TABLE_DECLARATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sordino/mechanisms/table_release.h"
#include "sordino/tables/table_schema.h"

namespace sordino {

inline constexpr std::uint64_t kFewestBins = 2;
inline constexpr std::uint64_t kMostBins = 65535;

// Throws Error for a count that is not from kFewestBins to kMostBins.
HistogramBins EqualBins(const Bounds& bounds, std::uint64_t count);

// The declared values of a column. Throws Error for values with several spellings.
const std::vector<std::string>& ValuesOf(const TableColumn& column);

// Bounds and categories that the request leaves open, and how the cells of the columns are read.
// The bounds come first: equal bins need them.
void TakeSchemaBounds(TableRequest& request, const TableSchema& schema);
void TakeSchemaBins(TableRequest& request, const TableSchema& schema);

// The user of a schema protects every release from its table, where no other one is named.
void TakeSchemaUser(const TableSchema& schema, std::string* user,
                    std::optional<std::uint32_t>* rows_per_user);

// A tab for .tsv, also compressed; else a comma.
char DelimiterOf(const std::string& file);

// "release count, mean of age by city from visits.csv": what a ledger calls it.
std::string DescribeRelease(const TableRequest& request, const std::string& file);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_TABLE_DECLARATION_H_
