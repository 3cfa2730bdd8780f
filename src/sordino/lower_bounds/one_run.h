// A lower bound on epsilon from one training run with canaries.
//
// m canaries are each put into the data by a fair coin of their own. After the run an attacker
// guesses r of the coins, abstains from the others, and v guesses are right.
//
// Steinke, Nasr and Jagielski (arXiv 2305.08846), theorem 5.2: if the run is (epsilon, delta)-DP,
// then v or more right guesses have a probability of at most
//
//     p = min(1, beta + 2 m delta alpha),   q = 1 / (1 + e^-epsilon)
//     beta = Pr[Bin(r, q) >= v],   alpha = max_{1 <= i <= v} (Pr[Bin(r, q) >= v - i] - beta) / i.
//
// The lower bound at significance s is the least epsilon with p > s: the true epsilon is below it
// with a probability of at most s. alpha is the largest mean of the masses at v - 1, v - 2, ...,
// v - i; masses rise towards the mode and fall after it, so the means rise and then fall, and the
// largest is found by bisection.
//
// Mahloujifar, Melis and Chaudhuri (arXiv 2410.22235), algorithm 3: a test of the same outcome
// against a whole trade-off function, here that of a Gaussian with parameter mu. It is tighter, and
// its answer is a bound on mu for a run that is mu-GDP, with the epsilon that this mu has at delta.
#ifndef SORDINO_LOWER_BOUNDS_ONE_RUN_H_
#define SORDINO_LOWER_BOUNDS_ONE_RUN_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "sordino/base/quantity.h"

namespace sordino {

struct OneRun {
  std::int64_t canaries = 0;
  std::int64_t guesses = 0;
  std::int64_t correct = 0;
};

// Of a lower bound, where nobody asks for another.
inline constexpr double kAuditConfidence = 0.95;
// For any mechanism, and for one that is Gaussian-DP.
inline constexpr std::array<std::string_view, 2> kOneRunMethods = {"one-run", "one-run-fdp"};

inline constexpr std::int64_t kMaxCanaries = 1'000'000'000;

// Throws Error unless 0 <= correct <= guesses <= canaries, with at least one canary.
void CheckOneRun(const OneRun& run);

double OneRunPValue(const OneRun& run, Epsilon epsilon, Delta delta);
// 0 where nothing is shown. `significance` is in (0, 1).
double OneRunEpsilon(const OneRun& run, Delta delta, double significance);

// Whether the outcome rejects mu-GDP at this significance.
bool OneRunRejectsGaussian(const OneRun& run, double mu, double significance);
struct GaussianLowerBound {
  double mu = 0;
  double epsilon = 0;  // of this mu at delta
};
// With the epsilon of this mu at delta: infinite for a mu above 0 and delta 0.
GaussianLowerBound GaussianBoundOf(double mu, Delta delta);
GaussianLowerBound OneRunGaussian(const OneRun& run, Delta delta, double significance);

}  // namespace sordino

#endif  // SORDINO_LOWER_BOUNDS_ONE_RUN_H_
