// Pairs, events and sums that the tests of the privacy-loss engines share.
#ifndef SORDINO_ACCOUNTING_TESTING_ENGINE_TEST_SUPPORT_H_
#define SORDINO_ACCOUNTING_TESTING_ENGINE_TEST_SUPPORT_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino::testing {

struct NamedPair {
  std::string name;
  LossPair pair;
};

inline std::shared_ptr<GaussianMixtureDensity> Remove(double rate, double sigma) {
  using Parts = GaussianMixtureDensity::Parts;
  return std::make_shared<GaussianMixtureDensity>(sigma, Parts{{0, 1 - rate}, {1, rate}},
                                                  Parts{{0, 1}});
}

inline std::shared_ptr<GaussianMixtureDensity> Add(double rate, double sigma) {
  using Parts = GaussianMixtureDensity::Parts;
  return std::make_shared<GaussianMixtureDensity>(sigma, Parts{{0, 1}},
                                                  Parts{{0, 1 - rate}, {-1, rate}});
}

inline std::shared_ptr<GaussianMixtureDensity> Replace(double rate, double sigma) {
  using Parts = GaussianMixtureDensity::Parts;
  return std::make_shared<GaussianMixtureDensity>(sigma, Parts{{0, 1 - rate}, {1, rate}},
                                                  Parts{{0, 1 - rate}, {-1, rate}});
}

inline LossPair LaplacePair(double scale, double rate, LaplaceDensity::Direction direction) {
  auto density = std::make_shared<LaplaceDensity>(scale, rate, direction);
  LossPair pair;
  pair.atoms = density->Ends();
  pair.pieces.push_back({std::move(density)});
  return pair;
}

inline Event Sampled(double rate, double noise, Adjacency adjacency = Adjacency::kAddRemove) {
  return Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise), adjacency));
}

inline Event Steps(const Event& step, double count) {
  return Event::Repeat(step, static_cast<std::uint64_t>(std::llround(count)));
}

}  // namespace sordino::testing

#endif  // SORDINO_ACCOUNTING_TESTING_ENGINE_TEST_SUPPORT_H_
