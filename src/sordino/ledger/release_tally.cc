#include "sordino/ledger/release_tally.h"

#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/ledger/budget_sums.h"

namespace sordino {
namespace {

// Up to here each Gaussian stays as it is.
constexpr std::size_t kFewGaussians = 32;
// Of those that have no closed form together.
constexpr std::size_t kMaxOthers = 32;

std::uint64_t SaturatingProduct(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ~std::uint64_t{0} : product;
}

}  // namespace

void ReleaseTally::Add(const Event& event, std::uint64_t times) {
  for (const auto& [release, count] : event.Flatten()) {
    std::uint64_t& sum = counts_[release.ToString()];
    sum = SaturatingSum(sum, SaturatingProduct(count, times));
  }
}

void ReleaseTally::Subtract(const Event& event, std::uint64_t times) {
  for (const auto& [release, count] : event.Flatten()) {
    const auto found = counts_.find(release.ToString());
    if (found == counts_.end()) continue;
    found->second = SaturatingDifference(found->second, SaturatingProduct(count, times));
    if (found->second == 0) counts_.erase(found);
  }
}

void ReleaseTally::Add(const ReleaseTally& other) {
  for (const auto& [text, count] : other.counts_) {
    std::uint64_t& sum = counts_[text];
    sum = SaturatingSum(sum, count);
  }
}

std::uint64_t ReleaseTally::Releases() const {
  std::uint64_t sum = 0;
  for (const auto& [text, count] : counts_) sum = SaturatingSum(sum, count);
  return sum;
}

Event ReleaseTally::Total(Adjacency adjacency) const {
  std::vector<std::pair<Event, std::uint64_t>> parts;
  for (const auto& [text, count] : counts_) parts.emplace_back(Event::Parse(text), count);
  return parts.empty() ? Event::None(adjacency) : Event::Compose(std::move(parts), adjacency);
}

std::optional<Interval> ReleaseTally::ComposedEpsilon(Adjacency adjacency, Delta delta,
                                                      double failure, bool exact) const {
  if (counts_.empty()) return Interval{0, 0};
  std::vector<std::pair<Event, std::uint64_t>> gaussians;
  std::vector<std::pair<Event, std::uint64_t>> others;
  for (const auto& [text, count] : counts_) {
    Event release = Event::Parse(text);
    const bool is_gaussian = release.name() == "gaussian";
    (is_gaussian ? gaussians : others).emplace_back(std::move(release), count);
    if (others.size() > kMaxOthers && !exact) return std::nullopt;
  }
  if (gaussians.size() <= kFewGaussians) {
    others.insert(others.end(), gaussians.begin(), gaussians.end());
    return SpentEpsilon(Event::Compose(std::move(others), adjacency), delta, failure);
  }
  double mu_squared = 0;
  for (const auto& [release, count] : gaussians) {
    const double noise = release.number("noise");
    mu_squared += static_cast<double>(count) / (noise * noise);
  }
  // Each of n terms and sums is rounded once or twice, by 2^-53 of what it is.
  const double rounding = 0x1p-50 * static_cast<double>(gaussians.size());
  const auto end = [&](double mu_squared_there) {
    std::vector<std::pair<Event, std::uint64_t>> parts = others;
    parts.emplace_back(Event::Gaussian(NoiseMultiplier(1 / std::sqrt(mu_squared_there)), adjacency),
                       1);
    return SpentEpsilon(Event::Compose(std::move(parts), adjacency), delta, failure);
  };
  return Interval{end(mu_squared * (1 - rounding)).lower, end(mu_squared * (1 + rounding)).upper};
}

}  // namespace sordino
