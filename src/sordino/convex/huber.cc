// The hinge of a support vector machine with its corner rounded (Chaudhuri, Monteleoni and Sarwate,
// JMLR 2011, section 3.4.2): with z = s for class 1 and -s for class 0, and h = 1/2,
//
//     0 for z > 1 + h,  (1 + h - z)^2 / (4 h) for |1 - z| <= h,  1 - z for z < 1 - h.
//
// The second derivative jumps at two values of z. The map from the minimum to b of objective
// perturbation and its inverse are then Lipschitz and differentiable almost everywhere, which is
// all that the change of variables in that proof asks for.
#include <ATen/Functions.h>

#include "sordino/convex/loss.h"

namespace sordino {
namespace {

constexpr double kHuberWidth = 0.5;  // h

// 1 and -1, as a column.
at::Tensor Signs(const at::Tensor& targets) {
  return targets.to(at::kDouble).mul_(2).sub_(1).unsqueeze(1);
}

class Huber : public ConvexLoss {
 public:
  Huber() : ConvexLoss({.name = "huber", .help = "rounded hinge of a class, 0 or 1 (Huber SVM)"}) {}

  FittedModel Model() const override {
    return {.name = "svm", .words = "Huber support vector machine"};
  }
  LossBounds Bounds(std::int64_t, double) const override {
    constexpr double kCurvature = 1 / (2 * kHuberWidth);
    return {.slope = 1, .curvature = kCurvature, .trace = kCurvature, .directions = 1};
  }
  at::Tensor Values(const at::Tensor& scores, const at::Tensor& targets, double) const override {
    const at::Tensor below = scores.mul(Signs(targets)).neg_().add_(1 + kHuberWidth).squeeze(1);
    const at::Tensor inner = below.clamp(0, 2 * kHuberWidth);
    // h + (below - 2 h) = 1 - z beyond 2 h.
    return inner.square().mul_(1 / (4 * kHuberWidth)).add_(below.sub(inner).clamp_min_(0));
  }
  at::Tensor Slopes(const at::Tensor& scores, const at::Tensor& targets, double) const override {
    const at::Tensor signs = Signs(targets);
    const at::Tensor below = scores.mul(signs).neg_().add_(1 + kHuberWidth);
    return below.mul_(1 / (2 * kHuberWidth)).clamp_(0, 1).mul_(signs).neg_();
  }
  at::Tensor Predictions(const at::Tensor& scores) const override {
    return scores.squeeze(1).gt(0).to(at::kLong);
  }
};

}  // namespace

const ConvexLoss& HuberLoss() {
  static const Huber component;
  return component;
}

}  // namespace sordino
