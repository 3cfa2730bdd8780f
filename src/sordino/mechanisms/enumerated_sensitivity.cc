#include "sordino/mechanisms/enumerated_sensitivity.h"

namespace sordino::internal {

void WidestDistance::Add(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) {
    reason_ =
        "the query returns vectors of different lengths on neighbouring datasets, which have no "
        "distance";
    return;
  }
  double l1 = 0;
  double l2 = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(a[i] - b[i]);
    l1 += distance;
    l2 = std::hypot(l2, distance);
  }
  if (!std::isfinite(l1)) {
    reason_ = "the query is not finite on a neighbouring dataset";
    return;
  }
  l1_ = std::max(l1_, l1);
  l2_ = std::max(l2_, l2);
}

void WidestDistance::Add(const SensitivityAnswer& other) {
  if (!other.finite()) {
    reason_ = other.reason();
    return;
  }
  l1_ = std::max(l1_, other.value().l1.value());
  l2_ = std::max(l2_, other.value().l2.value());
}

SensitivityAnswer WidestDistance::Answer() const {
  return reason_.empty() ? SensitivityAnswer::Finite(l1_, l2_)
                         : SensitivityAnswer::Infinite(reason_);
}

}  // namespace sordino::internal
