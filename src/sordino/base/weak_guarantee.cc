#include "sordino/base/weak_guarantee.h"

#include <fmt/format.h>

namespace sordino {

std::string WeakGuarantee(double epsilon, double delta, std::int64_t records) {
  std::string warning;
  if (epsilon > kMaxMeaningfulEpsilon) {
    warning += fmt::format(
        " WEAK: an epsilon above {:g} allows results that give records away; spend less, with more "
        "noise or fewer steps.",
        kMaxMeaningfulEpsilon);
  }
  if (records > 0 && delta * static_cast<double>(records) > 1) {
    warning += fmt::format(
        " WEAK: delta is above one over the {} records, so that publishing one of them at random "
        "would be within the guarantee; give a delta well below it.",
        records);
  }
  return warning.empty() ? warning : warning.substr(1);
}

}  // namespace sordino
