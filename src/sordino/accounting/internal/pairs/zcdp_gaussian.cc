#include "sordino/accounting/internal/pairs/zcdp_gaussian.h"

#include <algorithm>
#include <cmath>

namespace sordino {
namespace {

constexpr double kMaxZcdpRho = 0.5;
// Steps that are taken one by one, and then this share of those before at a time.
constexpr std::uint64_t kSingleSteps = 4096;
constexpr std::uint64_t kStepsAtOnce = 64;
constexpr double kRoundedUp = 1e-12;

// The least s of the two conditions. It falls with the variance.
double HalfStep(double rho, double variance) {
  double middle = rho;
  // s = rho sqrt(1 + 2s/V) e^{s/4} from below.
  for (int i = 0; i < 200; ++i) {
    const double next = rho * std::sqrt(1 + 2 * middle / variance) * std::exp(middle / 4);
    if (!(next > middle * (1 + 1e-14))) break;
    middle = next;
  }
  return std::max(rho * variance / (variance - 2 * rho), middle * (1 + kRoundedUp));
}

}  // namespace

std::optional<double> ZcdpGaussianMu(double rho, std::uint64_t steps) {
  if (!(rho <= kMaxZcdpRho)) return std::nullopt;
  if (rho == 0 || steps == 0) return 0;
  double variance = 4 * rho;
  for (std::uint64_t done = 0; done < steps;) {
    const std::uint64_t together =
        std::min(steps - done, done < kSingleSteps ? 1 : done / kStepsAtOnce);
    variance += 2 * HalfStep(rho, variance) * static_cast<double>(together);
    variance *= 1 + 0x1p-51;
    done += together;
  }
  return std::sqrt(variance * (1 + kRoundedUp));
}

}  // namespace sordino
