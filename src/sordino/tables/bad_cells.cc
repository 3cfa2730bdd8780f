#include "sordino/tables/bad_cells.h"

#include <fmt/format.h>

#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr int kMostTold = 30;

}  // namespace

void BadCells::Add(std::size_t place, int kind, const std::function<BadCell()>& tell) {
  const auto found = kinds_.lower_bound({place, kind});
  if (found != kinds_.end() && found->first == std::pair(place, kind)) return;
  kinds_.emplace_hint(found, std::pair(place, kind), tell());
}

void BadCells::Refuse(const std::string& table) const {
  if (kinds_.empty()) return;
  if (kinds_.size() == 1) {
    const BadCell& only = kinds_.begin()->second;
    throw DataError(only.sentence, only.detail);
  }
  std::string all;
  std::string details;
  int told = 0;
  for (const auto& [place, kind] : kinds_) {
    if (told++ == kMostTold) {
      all += "; and more";
      break;
    }
    all += (all.empty() ? "" : "; ") + kind.what;
    details += (details.empty() ? "" : "; ") + kind.what + ": " + kind.detail;
  }
  throw DataError(
      fmt::format(
          "'{}' does not keep to what was declared: {}. Correct such rows or leave them out, or "
          "change the declaration (--missing for cells without a value).",
          table, all),
      details);
}

}  // namespace sordino
