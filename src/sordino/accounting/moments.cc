#include "sordino/accounting/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/check.h"

namespace sordino {

MomentsResult MomentsAccountant(const Event& event, double log_delta) {
  RenyiCurve curve(event);
  return MomentsAccountant(event, log_delta, curve);
}

MomentsResult MomentsAccountant(const Event& event, double log_delta, RenyiCurve& curve) {
  SORDINO_CHECK(log_delta <= 0, "log delta above 0");
  for (const auto& [part, count] : event.Flatten()) {
    const bool sampled = &part.kind() == &PoissonEvent();
    const Event& inner = sampled ? part.children()[0].first : part;
    if (&inner.kind() != &GaussianEvent()) {
      return {kInfinity, 0,
              fmt::format("the moments accountant was published for Poisson-sampled Gaussian "
                          "steps, not for '{}'",
                          part.name())};
    }
  }
  if (event.IsNone() || log_delta == 0) return {0, 1, ""};
  if (std::isinf(log_delta)) {
    return {kInfinity, 0, "the moments accountant needs a delta above 0"};
  }
  std::unordered_map<int, double> known;
  const auto epsilon_at = [&](int lambda) {
    const auto [found, is_new] = known.try_emplace(lambda);
    if (is_new) {
      found->second =
          EpsilonFromRenyi(curve(lambda + 1.0), lambda + 1.0, log_delta, RenyiConversion::kOld);
    }
    return found->second;
  };
  // (convex + constant) / lambda has one minimum: between a quarter of the first power of two that
  // is not better than its half and that power. Then the range is halved by the sign of the
  // difference.
  int high = 2;
  while (high < kMaxMoment && epsilon_at(high) < epsilon_at(high / 2)) high *= 2;
  int low = std::max(1, high / 4);
  while (low < high) {
    const int mid = low + (high - low) / 2;
    if (epsilon_at(mid) <= epsilon_at(mid + 1)) {
      high = mid;
    } else {
      low = mid + 1;
    }
  }
  const double epsilon = epsilon_at(low);
  if (std::isinf(epsilon)) return {epsilon, 0, "no moment of the loss is finite"};
  return {epsilon, low, ""};
}

}  // namespace sordino
