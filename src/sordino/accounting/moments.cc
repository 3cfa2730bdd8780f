#include "sordino/accounting/moments.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/renyi.h"
#include "sordino/base/check.h"

namespace sordino {

MomentsResult MomentsAccountant(const Event& event, double log_delta) {
  SORDINO_CHECK(log_delta <= 0, "log delta above 0");
  for (const auto& [part, count] : event.Flatten()) {
    const bool sampled = part.kind() == Event::Kind::kPoisson &&
                         part.children()[0].first.kind() == Event::Kind::kGaussian;
    if (part.kind() != Event::Kind::kGaussian && !sampled) {
      return {kInfinity, 0,
              fmt::format("the moments accountant was published for Poisson-sampled Gaussian "
                          "steps, not for '{}'",
                          EventKindName(part.kind()))};
    }
  }
  if (event.kind() == Event::Kind::kNone || log_delta == 0) return {0, 1, ""};
  if (std::isinf(log_delta)) {
    return {kInfinity, 0, "the moments accountant needs a delta above 0"};
  }
  RenyiCurve curve(event);
  // (convex + constant) / lambda has one minimum: halve the range by the sign of the difference.
  const auto epsilon_at = [&](int lambda) {
    return EpsilonFromRenyi(curve(lambda + 1.0), lambda + 1.0, log_delta, RenyiConversion::kOld);
  };
  int low = 1;
  int high = 2;
  while (high < kMaxMoment && epsilon_at(high) < epsilon_at(high / 2)) high *= 2;
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
