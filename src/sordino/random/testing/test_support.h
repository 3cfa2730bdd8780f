// Shared by the tests of this module: a generator that replays a script, and chi-square tests.
#ifndef SORDINO_RANDOM_TESTING_TEST_SUPPORT_H_
#define SORDINO_RANDOM_TESTING_TEST_SUPPORT_H_

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sordino/random/generator.h"

namespace sordino {

// Gives out the words of a script, then one word for ever.
class ScriptedGenerator final : public Generator {
 public:
  explicit ScriptedGenerator(std::vector<std::uint64_t> script, std::uint64_t afterwards = 0)
      : script_(std::move(script)), afterwards_(afterwards) {}

  void Fill(std::span<std::byte> out) override {
    for (std::size_t i = 0; i < out.size(); i += 8) {
      const std::uint64_t word = next_ < script_.size() ? script_[next_] : afterwards_;
      ++next_;
      std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, out.size() - i));
    }
  }
  bool IsPrivate() const override { return false; }
  std::size_t words_drawn() const { return next_; }

 private:
  std::vector<std::uint64_t> script_;
  std::uint64_t afterwards_;
  std::size_t next_ = 0;
};

// SORDINO_RANDOM_DRAWS overrides the number of draws of the statistical tests; the sanitizers
// make a draw some ten times slower and get a tenth of them.
inline std::size_t Draws(std::size_t wanted) {
  if (const char* given = std::getenv("SORDINO_RANDOM_DRAWS")) return std::stoull(given);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return wanted / 10;
#else
  return wanted;
#endif
}

// Probability that chi-square with `degrees` degrees of freedom exceeds `statistic`.
inline double ChiSquareTail(double statistic, double degrees) {
  return boost::math::gamma_q(degrees / 2, statistic / 2);
}

// p-value of Pearson's test of `counts` against `probabilities`. Neighbouring cells are merged
// until each expects at least 10, below which the chi-square law is not a good approximation.
inline double GoodnessOfFit(std::span<const std::uint64_t> counts,
                            std::span<const double> probabilities) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  double statistic = 0;
  double cells = 0;
  double expected = 0;
  double observed = 0;
  double expected_left = total;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    expected += probabilities[i] * total;
    observed += static_cast<double>(counts[i]);
    const bool last = i + 1 == counts.size();
    if (!last && (expected < 10 || expected_left - expected < 10)) continue;
    statistic += (observed - expected) * (observed - expected) / expected;
    expected_left -= expected;
    cells += 1;
    expected = 0;
    observed = 0;
  }
  return ChiSquareTail(statistic, cells - 1);
}

// p-value of the two-sample chi-square test that both counts come from one distribution; cells
// with fewer than 20 in both are left out.
inline double SameDistribution(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  double total_a = 0;
  double total_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] < 20) continue;
    total_a += static_cast<double>(a[i]);
    total_b += static_cast<double>(b[i]);
  }
  double statistic = 0;
  double cells = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] < 20) continue;
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    const double expected = (x + y) * total_a / (total_a + total_b);
    const double other = (x + y) - expected;
    statistic += (x - expected) * (x - expected) / expected + (y - other) * (y - other) / other;
    cells += 1;
  }
  return ChiSquareTail(statistic, cells - 1);
}

}  // namespace sordino

#endif  // SORDINO_RANDOM_TESTING_TEST_SUPPORT_H_
