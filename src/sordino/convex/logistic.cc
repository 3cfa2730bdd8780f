// Logistic regression of two classes: log(1 + e^s) - y s.
#include <ATen/Functions.h>

#include "sordino/convex/loss.h"

namespace sordino {
namespace {

class Logistic : public ConvexLoss {
 public:
  Logistic() : ConvexLoss({.name = "logistic", .help = "log(1 + eˢ) − y s of a class y, 0 or 1"}) {}

  FittedModel Model() const override {
    return {.name = "logistic", .words = "logistic regression", .loss_of_many = "softmax"};
  }
  LossBounds Bounds(std::int64_t, double) const override {
    return {.slope = 1, .curvature = 0.25, .trace = 0.25, .directions = 1};
  }
  at::Tensor Values(const at::Tensor& scores, const at::Tensor& targets, double) const override {
    const at::Tensor s = scores.squeeze(1);
    // log(1 + e^s) = max(s, 0) + log(1 + e^-|s|)
    return s.clamp_min(0).add_(s.abs().neg_().exp_().log1p_()).sub_(s.mul(targets));
  }
  at::Tensor Slopes(const at::Tensor& scores, const at::Tensor& targets, double) const override {
    return at::sigmoid(scores).sub_(targets.unsqueeze(1));
  }
  at::Tensor Predictions(const at::Tensor& scores) const override {
    return scores.squeeze(1).gt(0).to(at::kLong);
  }
};

}  // namespace

const ConvexLoss& LogisticLoss() {
  static const Logistic component;
  return component;
}

}  // namespace sordino
