// Pairs that are given by points of a privacy profile.
//
// A profile is a convex function of e^epsilon. Where every point lies on it or above it, so does
// the lower convex hull of the points, and every convex function that falls from 1 at e^epsilon = 0
// is the profile of some pair (arXiv 2106.08567, proposition 8).
#ifndef SORDINO_ACCOUNTING_INTERNAL_PROFILE_PAIR_H_
#define SORDINO_ACCOUNTING_INTERNAL_PROFILE_PAIR_H_

#include <vector>

#include "sordino/accounting/loss_pair.h"

namespace sordino {

struct ProfilePoint {
  double growth;  // e^epsilon - 1, at least 0
  double delta;
};

// The losses above zero of the hull of the points. There is at least one point.
LossPair LossesOf(std::vector<ProfilePoint> points);

// A pair with this profile to both sides: it dominates a mechanism whose profile lies below the
// points in every direction of its adjacency. One of the points has growth 0.
//
// The profile f of such a pair has f(1/u) = 1 - 1/u + f(u) / u at u = e^epsilon, so that its slope
// above u = 1 is (f(1) - 1) / 2 or more. What a mechanism has at u = 1 is therefore at most what
// the other points allow there, and the point with growth 0 is lowered to that.
LossPair SymmetricPair(std::vector<ProfilePoint> points);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_PROFILE_PAIR_H_
