#include "sordino/ledger/release_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/gdp.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// Orders at which Hoelder's inequality is tried.
constexpr double kHoelderOrders[] = {1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256};
// Of exponentials and powers, and of sums of losses.
constexpr double kLossRounding = 1 + 1e-9;

double PureEpsilonOf(const Event& event) { return CertifiedEpsilon(event, -kInfinity).value.upper; }

// Every pure mechanism is mu-GDP where the curve of mu passes below the corner of its trade-off, at
// a = 1 / (1 + e^epsilon), because both curves are convex: mu = -2 Phi^-1(a).
double PureMu(double epsilon) {
  if (!std::isfinite(epsilon)) return kInfinity;
  // Phi(x) = 1 - a; found between bounds of x, and the upper one counts.
  double low = 0;
  double high = std::sqrt(2 * epsilon) + epsilon + 1;
  const double corner = 1 / (1 + std::exp(epsilon)) * (1 - 1e-12);
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (UpperTail(middle) <= corner ? high : low) = middle;
  }
  return 2 * high;
}

}  // namespace

ReleaseCosts CostsOf(const Event& release, const Budget& budget, double order) {
  const bool has_losses = budget.loss_share > 0 && budget.delta.value() > 0;
  const KeptPart kept = has_losses ? KeptPartOf(release) : KeptPart{release, 0};
  ReleaseCosts costs;
  costs.pure = PureEpsilonOf(kept.event);
  costs.loss = kept.loss;
  if (budget.filter == FilterKind::kGaussian) {
    const GdpResult gdp = GdpOf(kept.event);
    if (gdp.reason.empty() && gdp.sound) costs.filter = gdp.mu * gdp.mu;
    if (has_losses) costs.filter = std::min(costs.filter, std::pow(PureMu(costs.pure), 2));
  } else if (order > 0) {
    RenyiCurve curve(kept.event);
    costs.filter = curve(order);
  }
  return costs;
}

double FailureLoss(const Event& kept, double tau) {
  if (!(tau > 0)) return tau == 0 ? 0 : 1;
  double reached = std::exp(PureEpsilonOf(kept)) * tau;
  RenyiCurve curve(kept);
  for (const double order : kHoelderOrders) {
    const double exponent = (order - 1) / order * (std::log(tau) + curve(order));
    reached = std::min(reached, std::exp(exponent));
  }
  return std::min(1.0, (tau + reached) * kLossRounding);
}

}  // namespace sordino
