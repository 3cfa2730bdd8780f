#include "sordino/accounting/testing/vector_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace sordino {
namespace {

// One record of comma-separated values with quoted fields.
std::vector<std::string> SplitRecord(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The place behind "key=" where key is a whole word; npos if it is missing.
std::size_t FindKey(const std::string& params, std::string_view key) {
  const std::string wanted = std::string(key) + "=";
  for (std::size_t at = params.find(wanted); at != std::string::npos;
       at = params.find(wanted, at + 1)) {
    if (at == 0 || !IsWord(params[at - 1])) return at + wanted.size();
  }
  return std::string::npos;
}

std::vector<VectorRow> Load(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.filename().string());
  std::vector<VectorRow> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = SplitRecord(line);
    if (fields.size() != 7) throw std::runtime_error("a row has not 7 fields: " + line);
    VectorRow row{fields[0], fields[1], fields[2], fields[3], fields[4], 0, 0, fields[6]};
    row.expected = fields[4] == "inf" ? std::numeric_limits<double>::infinity()
                                      : std::strtod(fields[4].c_str(), nullptr);
    row.rtol = std::strtod(fields[5].c_str(), nullptr);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

bool VectorRow::Has(std::string_view key) const {
  return FindKey(params, key) != std::string::npos;
}

double VectorRow::Number(std::string_view key) const {
  const std::size_t at = FindKey(params, key);
  if (at == std::string::npos) {
    throw std::runtime_error(id + " has no parameter " + std::string(key));
  }
  std::string text = params.substr(at, params.find(';', at) - at);
  if (const std::size_t chain = text.rfind('=');
      chain != std::string::npos && text.find('(') == std::string::npos) {
    text = text.substr(chain + 1);
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) throw std::runtime_error(id + " has no number behind " + text);
  if (*end == '/') return value / std::strtod(end + 1, nullptr);
  return value;
}

double VectorRow::NumberOr(std::string_view key, double fallback) const {
  return Has(key) ? Number(key) : fallback;
}

bool VectorRow::Mentions(std::string_view text) const {
  return mechanism.find(text) != std::string::npos || params.find(text) != std::string::npos ||
         quantity.find(text) != std::string::npos;
}

std::vector<std::pair<std::string, std::vector<VectorRow>>> LoadVectorFiles() {
  const std::filesystem::path testdata = SORDINO_TESTDATA;
  std::vector<std::pair<std::string, std::vector<VectorRow>>> files;
  files.emplace_back("kept", Load(testdata / "accounting_vectors.csv"));
  const std::filesystem::path shared = testdata / "../../../../../shared/vectors/accounting.csv";
  if (std::filesystem::exists(shared)) files.emplace_back("shared", Load(shared));
  if (const char* named = std::getenv("SORDINO_VECTORS"); named != nullptr && *named != '\0') {
    files.emplace_back("named", Load(named));
  }
  return files;
}

bool NeedsPld(const VectorRow& row) {
  // Longest match decides nothing here: these are the beginnings of mechanisms whose rows need a
  // distribution of the privacy loss, whatever the quantity.
  static constexpr std::array<std::string_view, 22> kNeedsPld = {
      "poisson_gaussian PLD",
      "poisson_gaussian remove",
      "poisson_gaussian add",
      "poisson_gaussian replace-one",
      "poisson_gaussian calibrate",
      "gaussian substitution pair",
      "heterogeneous poisson_gaussian",
      "fourier accountant",
      "poisson vs WOR",
      "basic composition eps-delta PLD",
      "laplace composition",
      "laplace x",
      "laplace heterogeneous",
      "poisson_laplace",
      "discrete_laplace",
      "discrete_gaussian",
      "mixture_gaussian",
      "truncated_poisson",
      "wor_gaussian PLD",
      "fixed_gaussian PLD",
      "gaussian PLD",
      "pld",
  };
  if (row.mechanism == "laplace") return true;
  if (row.mechanism.rfind("laplace composition pure", 0) == 0) return false;
  return std::any_of(kNeedsPld.begin(), kNeedsPld.end(),
                     [&](std::string_view start) { return row.mechanism.rfind(start, 0) == 0; });
}

void CheckVectorRows(const RowCheckers& checkers, bool pld, int least) {
  for (const auto& [file, rows] : LoadVectorFiles()) {
    ASSERT_FALSE(rows.empty()) << file;
    int checked = 0;
    for (const VectorRow& row : rows) {
      if (NeedsPld(row) != pld) continue;
      // Of names in rising order the last one that fits is the longest.
      const auto found = std::find_if(checkers.rbegin(), checkers.rend(), [&](const auto& checker) {
        return row.mechanism.rfind(checker.first, 0) == 0;
      });
      if (found == checkers.rend()) {
        ADD_FAILURE() << "no checker knows " << row.id << " (" << row.mechanism << ")";
        continue;
      }
      SCOPED_TRACE(file + " " + row.id);
      EXPECT_NO_THROW(found->second(row)) << row.id;
      ++checked;
    }
    EXPECT_GT(checked, least) << file;
  }
}

}  // namespace sordino
