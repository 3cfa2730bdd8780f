// Pairs of neighbouring datasets that exist, for lower ends where the dominating pair of a sampler
// need not be attained.
//
// Their outputs are cut into cells, and each cell becomes one outcome. That is post-processing, so
// the pair of cells is dominated by the pair itself, whatever its likelihood ratio looks like.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ATTAINED_PAIRS_H_
#define SORDINO_ACCOUNTING_INTERNAL_ATTAINED_PAIRS_H_

#include <optional>
#include <utility>

#include "sordino/accounting/event.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// A batch of fixed size with three different vectors: all other records contribute y, the record x,
// the one in its place x', and each two of them are one unit apart: an equilateral triangle for
// Gaussian noise, y = (0, 0), x = (1/2, 1/2), x' = (1/2, -1/2) for Laplace noise (L1), and for a
// pure mechanism the response of three values, each of which reports itself with probability
// e^epsilon / (e^epsilon + 2). With rate q the pair is (1-q) M(y) + q M(x) against (1-q) M(y) +
// q M(x'). Its loss has the upper tail of removing and the lower tail of adding a record, which
// neither of these has alone. It is its own mirror image. nullopt for other noise.
std::optional<LossPair> TriangleOfFixedBatch(const Event& child, double rate);
LossPair TriangleOfLaplace(double scale, double rate);
LossPair TriangleOfResponses(double epsilon, double rate);

// How often a truncated Poisson batch is not full without the record, how often it is, and how
// often the record enters a batch that is full.
struct FullBatch {
  double open = 1;
  double full = 0;
  double enter = 0;
};

// A truncated Poisson batch of rate q and cap m, where all other records contribute -1 and the
// record 1. With k < m others in the batch its output has the centre -k, or -k + 1 with the record;
// a full batch -m, or -m + 2 where the record has pushed another one out. Without the record
// (add-remove) the centres are -k and -m. A null record (zero-out) in its place has the centres -k,
// -m and -m + 1; a record of -1 (replace-one) -k or -k - 1, and -m. k is binomial: it is not told,
// and hides the record where it varies much, so nullopt is returned where it takes many values.
// Both directions.
std::optional<TwoPairs> PushedOutPair(double others, double rate, double cap, double sigma,
                                      const FullBatch& batch, Adjacency adjacency);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ATTAINED_PAIRS_H_
