// A matrix that is multiplied and is a lookup table too: the tied embedding of a language model.
//
// The gradient of example i is g_i = sum_r a_r b_r^T + sum_s e(index_s) x_s^T over the rows r of
// its products and s of its lookups. That is a sum of outer products, whose last rows have unit
// vectors e in the place of a; so with Gram matrices
//
//   |g_i|^2 = sum_{r,r'} (a_r.a_r') (b_r.b_r') + |sum_s e(index_s) x_s^T|^2
//             + 2 sum_{r,s} a_r[index_s] (b_r.x_s)
//
// and what rounding.h says of outer products holds with as many rows as there are r and s. Sums of
// both parts are added up in float64 and rounded once: the parts may cancel. CPU only.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_TIED_TERM_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_TIED_TERM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/terms/term.h"

namespace sordino {

// Stack (term.h), also for terms of matrix products and one lookup of the same tensor.
Term StackTied(std::vector<Term> terms);

// Adds the squared norms of the term, which has a lookup, to `squared` [examples], float64.
void AddTiedSquaredNorms(const Term& term, const at::Tensor& squared);

// Adds the gradients of the lookups of examples [begin, end) to `gradients` [end - begin, p, q].
void AddLookups(const Term& lookup, std::int64_t begin, std::int64_t end, at::Tensor& gradients);

// sum_i factors[i] g_i of the lookup of the term, float64 [p, q]; undefined without one. `wide` as
// in SumAccuracy.
at::Tensor LookupSum(const Term& term, const ExampleFactors& factors, bool wide);

// Adds sum_s |x_s| to mass, and the squared Frobenius norms of unit vectors and of x to left and
// right; all [examples], float64.
void AddLookupMass(const Term& lookup, at::Tensor& mass, at::Tensor& left, at::Tensor& right);

// The gradients of all examples, as a kDirect term.
Term WrittenOut(const Term& term);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_TIED_TERM_H_
