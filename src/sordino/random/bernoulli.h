// Exact coin flips on 64 bits and Poisson sampling.
//
// A flip compares 64 uniform bits with the threshold round(q 2^64), so the probability of heads
// is exactly a multiple of 2^-64: for q >= 2^-11 every double is such a multiple and the flip has
// probability q to the last bit; below, the nearest multiple is taken (never zero for a positive
// q). EffectiveRate(q) is that probability, without rounding error; the accountant reads it
// instead of q. Comparing a float in [0, 1) with q instead would turn q = 1e-8 into 6e-8.
#ifndef SORDINO_RANDOM_BERNOULLI_H_
#define SORDINO_RANDOM_BERNOULLI_H_

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"

namespace sordino {

// The probability with which Bernoulli and PoissonSample really say yes at the asked rate.
SamplingRate EffectiveRate(SamplingRate rate);

// True with probability EffectiveRate(rate). Draws 64 bits for every rate, also 0 and 1, and
// takes constant time.
bool Bernoulli(Generator& generator, SamplingRate rate);

// Poisson sampling: appends to `selected`, in increasing order, each index below `population`
// independently with probability EffectiveRate(rate). Always draws and compares
// 64 * population bits; how long the appending takes tells the number of selected indices, which
// the size of the batch tells anyway, and not which they are.
void PoissonSample(Generator& generator, SamplingRate rate, std::uint64_t population,
                   std::vector<std::uint64_t>& selected);

}  // namespace sordino

#endif  // SORDINO_RANDOM_BERNOULLI_H_
