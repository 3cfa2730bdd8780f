// The pair that dominates several: its privacy profile is the largest of theirs at every epsilon.
//
// A profile is a convex function of e^epsilon that falls from 1 at e^epsilon = 0, and every such
// function is the profile of some pair (arXiv 2106.08567, proposition 8). The largest of several is
// convex again. It is taken, of lists of atoms from above (atom_list.h), at a number of losses and
// joined by straight lines in e^epsilon, which
// lie above it (connect the dots), so the result is a list of atoms: the fall of the slope at a
// loss is its mass under Q. Values are raised by 1e-10 of themselves before their lower convex hull
// is taken: rounding (1e-12) then neither breaks the convexity nor leaves a point below the truth.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ENVELOPE_H_
#define SORDINO_ACCOUNTING_INTERNAL_ENVELOPE_H_

#include <span>

#include "sordino/accounting/loss_pair.h"

namespace sordino {

// Tails of mass e^-120 become mass at infinity.
LossPair EnvelopeOf(std::span<const LossPair> pairs);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ENVELOPE_H_
