// Rows that an experiment draws for its cells: made up, from a seed, never private.
//
// Columns x1 ... xd, uniform in [-1, 1], and a label that is "yes" with the logistic probability of
// scale * <w, x> for fixed weights w of norm 1, w_j proportional to (-1)^j / j. The same request
// gives the same rows on every machine.
#ifndef SORDINO_EXPERIMENTS_DRAWN_TABLE_H_
#define SORDINO_EXPERIMENTS_DRAWN_TABLE_H_

#include <cstdint>
#include <filesystem>
#include <string>

namespace sordino {

inline constexpr std::int64_t kMaxDrawnRecords = 10'000'000;
inline constexpr std::int64_t kMaxDrawnColumns = 1'000;
inline constexpr std::int64_t kMaxDrawnCells = 100'000'000;

struct DrawnTable {
  std::int64_t records = 0;
  std::int64_t columns = 0;
  std::int64_t test_records = 0;
  std::uint64_t seed = 1;

  std::string Name() const;  // of its files
};

// Throws Error for sizes beyond the limits.
void CheckDrawnTable(const DrawnTable& table);

std::filesystem::path TablePath(const std::filesystem::path& folder, const DrawnTable& table);
std::filesystem::path TestTablePath(const std::filesystem::path& folder, const DrawnTable& table);
std::filesystem::path SchemaPath(const std::filesystem::path& folder, const DrawnTable& table);

// Writes those of the three files that are not there. Throws std::runtime_error where that fails.
void WriteDrawnTable(const std::filesystem::path& folder, const DrawnTable& table);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_DRAWN_TABLE_H_
