#include "sordino/accounting/testing/random_event.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace sordino::testing {
namespace {

using Random = std::mt19937_64;

double Uniform(Random& random, double low, double high) {
  // Not std::uniform_real_distribution: its values differ between libraries.
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

double LogUniform(Random& random, double low, double high) {
  return std::exp(Uniform(random, std::log(low), std::log(high)));
}

std::uint64_t Whole(Random& random, double low, double high) {
  return static_cast<std::uint64_t>(std::llround(LogUniform(random, low, high)));
}

std::size_t Below(Random& random, std::size_t n) { return random() % n; }

NoiseMultiplier Noise(Random& random, double low, double high) {
  return NoiseMultiplier(LogUniform(random, low, high));
}

Event Mixture(Random& random, Adjacency adjacency) {
  const std::size_t parts = 1 + Below(random, 4);
  std::vector<std::pair<double, double>> mixture;
  double left = 1;
  for (std::size_t i = 0; i < parts; ++i) {
    const double p = i + 1 == parts ? left : left * Uniform(random, 0, 1);
    mixture.emplace_back(i == 0 ? 0 : Uniform(random, 0, 3), p);
    left -= p;
  }
  return Event::MixtureGaussian(Noise(random, 0.3, 20), mixture, adjacency);
}

Event Leaf(Random& random, Adjacency adjacency) {
  switch (Below(random, 12)) {
    case 0:
    case 1:
    case 2:
      return Event::Gaussian(Noise(random, 0.2, 50), adjacency);
    case 3:
      return Event::Laplace(Noise(random, 0.2, 50), adjacency);
    case 4: {
      const std::uint64_t k = Whole(random, 1, 5);
      const double sigma = static_cast<double>(k) * LogUniform(random, 0.5, 20);
      return Event::DiscreteGaussian(sigma, k, adjacency);
    }
    case 5: {
      const std::uint64_t k = Whole(random, 1, 5);
      const double scale = static_cast<double>(k) * LogUniform(random, 0.3, 20);
      return Event::DiscreteLaplace(scale, k, adjacency);
    }
    case 6:
      return Event::Pure(Epsilon(LogUniform(random, 1e-3, 5)), adjacency);
    case 7:
      return Event::Approximate(Epsilon(LogUniform(random, 1e-3, 3)),
                                Delta(LogUniform(random, 1e-14, 1e-4)), adjacency);
    case 8:
      if (Below(random, 2) == 0) return Event::Zcdp(Rho(LogUniform(random, 1e-5, 1)), adjacency);
      return Event::Exponential(Epsilon(LogUniform(random, 1e-3, 4)), adjacency);
    case 9:
      if (adjacency == Adjacency::kAddRemove) return Event::Laplace(NoiseMultiplier(2), adjacency);
      return Event::RandomizedResponse(Uniform(random, 0.05, 0.95),
                                       static_cast<std::uint32_t>(2 + Below(random, 6)), adjacency);
    case 10: {
      const NoiseMultiplier noise = Noise(random, 1, 30);
      const std::uint64_t steps = Whole(random, 1, 1000);
      if (steps % 2 == 0) return Event::Tree(noise, steps, adjacency);
      return Event::Matrix(noise, std::log2(static_cast<double>(steps) + 1), adjacency);
    }
    default:
      return Mixture(random, adjacency);
  }
}

// Random allocation: noise within and outside the range that its lattices resolve.
Event Allocation(Random& random, Adjacency adjacency) {
  const std::uint64_t batches = Whole(random, 2, 200);
  return Event::Allocation(batches, Event::Gaussian(Noise(random, 0.25, 20), adjacency));
}

Event Step(Random& random, Adjacency adjacency) {
  switch (Below(random, 9)) {
    case 0:
    case 1:
    case 2:
      return Event::Poisson(SamplingRate(LogUniform(random, 1e-6, 1)), Leaf(random, adjacency));
    case 3:
      return Event::Fixed(SamplingRate(LogUniform(random, 1e-4, 1)), Leaf(random, adjacency));
    case 4: {
      const std::uint64_t dataset = Whole(random, 10, 1e5);
      const double rate = LogUniform(random, 1e-3, 0.9);
      const double cap =
          std::max(1.0, static_cast<double>(dataset) * rate * Uniform(random, 0.7, 1.6));
      return Event::TruncatedPoisson(dataset, SamplingRate(rate), static_cast<std::uint64_t>(cap),
                                     Event::Gaussian(Noise(random, 0.4, 10), adjacency));
    }
    case 5:
      if (adjacency != Adjacency::kReplaceOne) return Allocation(random, adjacency);
      return Leaf(random, adjacency);
    default:
      return Leaf(random, adjacency);
  }
}

Event Tree(Random& random, Adjacency adjacency, int depth) {
  const std::size_t kind = depth == 0 ? 0 : Below(random, 10);
  if (kind < 5) return Event::Repeat(Step(random, adjacency), Whole(random, 1, 1e5));
  std::vector<std::pair<Event, std::uint64_t>> children;
  const std::size_t count = 2 + Below(random, 3);
  for (std::size_t i = 0; i < count; ++i) {
    children.emplace_back(Tree(random, adjacency, depth - 1), Whole(random, 1, 30));
  }
  if (kind < 8) return Event::Compose(std::move(children), adjacency);
  std::vector<Event> parts;
  parts.reserve(children.size());
  for (auto& [child, times] : children) parts.push_back(Event::Repeat(child, times));
  return Event::Repeat(Event::Parallel(std::move(parts), adjacency), Whole(random, 1, 20));
}

}  // namespace

Event RandomEvent(std::mt19937_64& random) {
  constexpr std::array<Adjacency, 3> kAdjacencies = {Adjacency::kAddRemove, Adjacency::kReplaceOne,
                                                     Adjacency::kZeroOut};
  const Adjacency adjacency = kAdjacencies[Below(random, kAdjacencies.size())];
  // Most are one release or a few: deep trees take long and say little more.
  const std::size_t depth = Below(random, 10);
  return Tree(random, adjacency, depth < 8 ? 0 : depth < 9 ? 1 : 2);
}

double RandomDelta(std::mt19937_64& random) {
  switch (Below(random, 10)) {
    case 0:
      return LogUniform(random, 1e-100, 1e-12);
    case 1:
      return Below(random, 3) == 0 ? 0 : Uniform(random, 0.01, 0.9);
    default:
      return LogUniform(random, 1e-12, 1e-2);
  }
}

}  // namespace sordino::testing
