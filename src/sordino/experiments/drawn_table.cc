#include "sordino/experiments/drawn_table.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <random>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr double kScoreScale = 6;

// In [0, 1), from the generator alone: the distributions of the standard library differ between
// implementations, the engine does not.
double Uniform(std::mt19937_64& random) {
  return std::ldexp(static_cast<double>(random() >> 11), -53);
}

std::string Rows(const DrawnTable& table, std::int64_t records, std::uint64_t seed) {
  std::vector<double> weights;
  double square = 0;
  for (std::int64_t j = 1; j <= table.columns; ++j) {
    weights.push_back((j % 2 == 0 ? 1.0 : -1.0) / static_cast<double>(j));
    square += weights.back() * weights.back();
  }
  std::string text;
  for (std::int64_t j = 1; j <= table.columns; ++j) text += fmt::format("x{},", j);
  text += "label\n";
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < records; ++i) {
    double score = 0;
    for (const double weight : weights) {
      // As it is written, so that the label belongs to what a reader sees.
      const double x = std::round((2 * Uniform(random) - 1) * 1e6) / 1e6;
      score += weight * x;
      fmt::format_to(std::back_inserter(text), "{:.6f},", x);
    }
    const double p = 1 / (1 + std::exp(-kScoreScale * score / std::sqrt(square)));
    text += Uniform(random) < p ? "yes\n" : "no\n";
  }
  return text;
}

std::string Schema(const DrawnTable& table) {
  std::string text;
  for (std::int64_t j = 1; j <= table.columns; ++j) {
    text +=
        fmt::format("[[column]]\nname = \"x{}\"\nkind = \"numeric\"\nlow = -1\nhigh = 1\n\n", j);
  }
  return text + "[[column]]\nname = \"label\"\nkind = \"label\"\nvalues = [\"no\", \"yes\"]\n";
}

}  // namespace

std::string DrawnTable::Name() const {
  return fmt::format("drawn-{}x{}-{}", records, columns, seed);
}

void CheckDrawnTable(const DrawnTable& table) {
  if (table.records < 1 || table.records > kMaxDrawnRecords || table.columns < 1 ||
      table.columns > kMaxDrawnColumns || table.test_records < 0 ||
      table.test_records > kMaxDrawnRecords ||
      (table.records + table.test_records) * table.columns > kMaxDrawnCells) {
    throw Error(
        fmt::format("a table of {} rows, {} columns and {} test rows is not drawn; it has 1 to {} "
                    "rows, 1 to {} "
                    "columns and at most {} cells.",
                    table.records, table.columns, table.test_records, kMaxDrawnRecords,
                    kMaxDrawnColumns, kMaxDrawnCells));
  }
}

std::filesystem::path TablePath(const std::filesystem::path& folder, const DrawnTable& table) {
  return folder / (table.Name() + ".csv");
}
std::filesystem::path TestTablePath(const std::filesystem::path& folder, const DrawnTable& table) {
  return folder / fmt::format("{}-test-{}.csv", table.Name(), table.test_records);
}
std::filesystem::path SchemaPath(const std::filesystem::path& folder, const DrawnTable& table) {
  return folder / (table.Name() + ".toml");
}

void WriteDrawnTable(const std::filesystem::path& folder, const DrawnTable& table) {
  std::filesystem::create_directories(folder);
  const auto write = [](const std::filesystem::path& file, const auto& content) {
    if (!std::filesystem::exists(file)) WriteWholeFile(file, content());
  };
  write(TablePath(folder, table), [&] { return Rows(table, table.records, 2 * table.seed); });
  write(SchemaPath(folder, table), [&] { return Schema(table); });
  if (table.test_records == 0) return;
  write(TestTablePath(folder, table),
        [&] { return Rows(table, table.test_records, 2 * table.seed + 1); });
}

}  // namespace sordino
