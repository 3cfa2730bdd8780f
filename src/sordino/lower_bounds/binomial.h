// Tails of the binomial distribution, and exact confidence bounds on its probability.
#ifndef SORDINO_LOWER_BOUNDS_BINOMIAL_H_
#define SORDINO_LOWER_BOUNDS_BINOMIAL_H_

#include <cstdint>

namespace sordino {

// Pr[X = k] and Pr[X >= k] for X binomial with n trials of probability p.
double BinomialMass(std::int64_t n, std::int64_t k, double p);
double BinomialTail(std::int64_t n, std::int64_t k, double p);

// Clopper and Pearson (1934): the largest (smallest) p for which k or fewer (k or more) successes
// of n have a probability of at least alpha. The true p is above (below) it with a probability of
// at most alpha. 0 < alpha < 1.
double ClopperPearsonUpper(std::int64_t n, std::int64_t k, double alpha);
double ClopperPearsonLower(std::int64_t n, std::int64_t k, double alpha);

}  // namespace sordino

#endif  // SORDINO_LOWER_BOUNDS_BINOMIAL_H_
