#include "sordino/accounting/gdp.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/renyi.h"

namespace sordino {

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
    const double mu = rate * std::sqrt(times * std::expm1(1 / (*inner * *inner)));
    squares += mu * mu;
    sound = false;
  }
  if (!(squares < kInfinity)) {
    return {kInfinity, false, "the noise is too small for the central limit estimate"};
  }
  return {std::sqrt(squares), sound, ""};
}

}  // namespace sordino
