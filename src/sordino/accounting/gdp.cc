#include "sordino/accounting/gdp.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/renyi.h"

namespace sordino {

double CentralLimitMu(double rate, double sigma, double steps) {
  return rate * std::sqrt(steps * std::expm1(1 / (sigma * sigma)));
}

GdpResult GdpOf(const Event& event) {
  double squares = 0;
  bool sound = true;
  for (const auto& [part, count] : event.Flatten()) {
    const double times = static_cast<double>(count);
    if (const auto sigma = EquivalentGaussian(part)) {
      squares += times / (*sigma * *sigma);
      continue;
    }
    const auto sampling = part.kind().Sampling(part);
    const auto inner =
        sampling && !sampling->fixed ? EquivalentGaussian(part.children()[0].first) : std::nullopt;
    if (!inner || part.adjacency() == Adjacency::kReplaceOne) {
      return {kInfinity, false,
              fmt::format("GDP is known for Gaussians and their Poisson-sampled form under "
                          "add-remove, not for '{}' under {}",
                          part.name(), AdjacencyName(part.adjacency()))};
    }
    const double rate = sampling->rate;
    if (rate == 0) continue;
    if (rate == 1) {
      squares += times / (*inner * *inner);
      continue;
    }
    const double mu = CentralLimitMu(rate, *inner, times);
    squares += mu * mu;
    sound = false;
  }
  if (!(squares < kInfinity)) {
    return {kInfinity, false, "the noise is too small for the central limit estimate"};
  }
  return {std::sqrt(squares), sound, ""};
}

double GdpEpsilon(double mu, double log_delta) { return GaussianEpsilon(mu, log_delta); }

double GdpLogDelta(double mu, double epsilon) { return GaussianLogDelta(mu, epsilon); }

}  // namespace sordino
