// Events in the form that renyi.h and its kin compute with: as one Gaussian, with twice the reach,
// with rounded noise.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/accounting/internal/renyi_gaussian.h"
#include "sordino/accounting/internal/tree.h"
#include "sordino/accounting/renyi.h"

namespace sordino {

std::vector<std::pair<double, double>> MixtureParts(const Event& event) {
  std::vector<std::pair<double, double>> parts;
  for (std::size_t i = 1; i + 1 < event.numbers().size(); i += 2) {
    parts.emplace_back(event.numbers()[i], event.numbers()[i + 1]);
  }
  return parts;
}

std::optional<double> EquivalentGaussian(const Event& event) {
  double precision = 0;  // sum of 1 / sigma^2
  for (const auto& [part, count] : event.Flatten()) {
    const std::vector<double>& n = part.numbers();
    double one;
    if (part.kind() == Event::Kind::kGaussian) {
      one = 1 / (n[0] * n[0]);
    } else if (part.kind() == Event::Kind::kTree) {
      one = TreeHeight(static_cast<std::uint64_t>(n[1])) / (n[0] * n[0]);
    } else {
      return std::nullopt;
    }
    precision += static_cast<double>(count) * one;
  }
  if (!(precision > 0) || std::isinf(precision)) return std::nullopt;
  return 1 / std::sqrt(precision);
}

Event DoubledReach(const Event& event) {
  const std::vector<double>& n = event.numbers();
  const Adjacency adjacency = event.adjacency();
  switch (event.kind()) {
    case Event::Kind::kGaussian:
      return Event::Gaussian(NoiseMultiplier(n[0] / 2), adjacency);
    case Event::Kind::kLaplace:
      return Event::Laplace(NoiseMultiplier(n[0] / 2), adjacency);
    case Event::Kind::kDiscreteGaussian:
      return Event::DiscreteGaussian(n[0], 2 * static_cast<std::uint64_t>(n[1]), adjacency);
    case Event::Kind::kDiscreteLaplace:
      return Event::DiscreteLaplace(n[0], 2 * static_cast<std::uint64_t>(n[1]), adjacency);
    case Event::Kind::kTree:
      return Event::Tree(NoiseMultiplier(n[0] / 2), static_cast<std::uint64_t>(n[1]), adjacency);
    case Event::Kind::kMixtureGaussian:
      return Event::MixtureGaussian(NoiseMultiplier(n[0] / 2), MixtureParts(event), adjacency);
    case Event::Kind::kCompose: {
      std::vector<std::pair<Event, std::uint64_t>> children;
      for (const auto& [child, count] : event.children()) {
        children.emplace_back(DoubledReach(child), count);
      }
      return Event::Compose(std::move(children), adjacency);
    }
    case Event::Kind::kParallel: {
      std::vector<Event> parts;
      for (const auto& [part, count] : event.children()) parts.push_back(DoubledReach(part));
      return Event::Parallel(std::move(parts), adjacency);
    }
    default:
      return event;
  }
}

Event FixedReach(const Event& event) {
  if (event.kind() != Event::Kind::kRandomizedResponse ||
      event.adjacency() == Adjacency::kReplaceOne) {
    return event;
  }
  const double p = event.numbers()[0];
  const double loss = std::log1p((1 - p) * event.numbers()[1] / p);
  return Event::Pure(Epsilon(loss * (1 + 0x1p-50)), event.adjacency());
}

Event CoarsenNoise(const Event& event, double per_e, Coarsening coarsening) {
  const Adjacency adjacency = event.adjacency();
  const bool less = coarsening == Coarsening::kLessPrivate;
  const auto down = [per_e](double x) {
    return std::min(x, std::exp(std::floor(std::log(x) * per_e) / per_e) * (1 - 1e-15));
  };
  const auto up = [per_e](double x) {
    return std::max(x, std::exp(std::ceil(std::log(x) * per_e) / per_e) * (1 + 1e-15));
  };
  const auto rounded = [&](double noise) {
    return NoiseMultiplier(less ? down(noise) : up(noise));
  };
  const auto sampled = [&](double rate) {
    return SamplingRate(rate > 0 ? std::min(1.0, less ? up(rate) : down(rate)) : 0);
  };
  switch (event.kind()) {
    case Event::Kind::kGaussian:
      return Event::Gaussian(rounded(event.numbers()[0]), adjacency);
    case Event::Kind::kLaplace:
      return Event::Laplace(rounded(event.numbers()[0]), adjacency);
    case Event::Kind::kPoisson:
      return Event::Poisson(sampled(event.numbers()[0]),
                            CoarsenNoise(event.children()[0].first, per_e, coarsening));
    case Event::Kind::kFixed:
      return Event::Fixed(sampled(event.numbers()[0]),
                          CoarsenNoise(event.children()[0].first, per_e, coarsening));
    case Event::Kind::kCompose: {
      std::vector<std::pair<Event, std::uint64_t>> children;
      children.reserve(event.children().size());
      for (const auto& [child, count] : event.children()) {
        children.emplace_back(CoarsenNoise(child, per_e, coarsening), count);
      }
      return Event::Compose(std::move(children), adjacency);
    }
    default:
      return event;
  }
}

}  // namespace sordino
