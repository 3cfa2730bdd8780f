#include "sordino/convex/loss.h"

#include <algorithm>
#include <cmath>

namespace sordino {

#define SORDINO_COMPONENT(function, file) const ConvexLoss& function();
#include "sordino/convex/loss_list.inc"
#undef SORDINO_COMPONENT

const Registry<ConvexLoss>& ConvexLosses() {
  static const Registry<ConvexLoss> list("loss", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/convex/loss_list.inc"
#undef SORDINO_COMPONENT
                                                 });
  return list;
}

double ConvexLoss::SlopeError(std::int64_t classes, double target_bound, double score_error) const {
  const LossBounds bounds = Bounds(classes, target_bound);
  const auto scores = static_cast<double>(Scores(classes));
  // A softmax divides exponentials by the sum of K of them; the argument of each, at most 0, has a
  // rounding error of u |t|, and |t| e^t < 1. The other losses have fewer operations.
  const double evaluation = std::sqrt(scores) * (scores + 24) * 0x1p-53;
  return bounds.curvature * score_error + evaluation * std::max(1.0, bounds.slope);
}

}  // namespace sordino
