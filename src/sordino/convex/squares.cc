// Least squares with residuals that count linearly beyond B (Huber's loss for regression).
#include <ATen/Functions.h>

#include "sordino/convex/loss.h"

namespace sordino {
namespace {

class Squares : public ConvexLoss {
 public:
  Squares()
      : ConvexLoss({.name = "squares",
                    .help = "(s − y)² / 2 of a number y, linear beyond a residual of B"}) {}

  FittedModel Model() const override { return {.name = "least-squares", .words = "least squares"}; }
  bool Classifies() const override { return false; }
  LossBounds Bounds(std::int64_t, double target_bound) const override {
    return {.slope = target_bound, .curvature = 1, .trace = 1, .directions = 1};
  }

  at::Tensor Values(const at::Tensor& scores, const at::Tensor& targets,
                    double target_bound) const override {
    const at::Tensor size = scores.squeeze(1).sub(targets).abs_();
    const at::Tensor inner = size.clamp_max(target_bound);
    // B^2 / 2 + B (size - B) beyond B.
    return inner.square().mul_(0.5).add_(size.sub(inner), target_bound);
  }
  at::Tensor Slopes(const at::Tensor& scores, const at::Tensor& targets,
                    double target_bound) const override {
    return scores.sub(targets.unsqueeze(1)).clamp_(-target_bound, target_bound);
  }
  at::Tensor Predictions(const at::Tensor& scores) const override { return scores.squeeze(1); }
};

}  // namespace

const ConvexLoss& SquaresLoss() {
  static const Squares component;
  return component;
}

}  // namespace sordino
