// A convex loss of a test: half of that of logistic regression, so that all its bounds are halves.
#include <ATen/Functions.h>

#include "sordino/convex/loss.h"

namespace sordino {
namespace {

const ConvexLoss& Whole() { return ConvexLosses().Find("logistic"); }

class HalfLogistic : public ConvexLoss {
 public:
  HalfLogistic() : ConvexLoss({.name = "half-logistic", .help = "of a test"}) {}

  FittedModel Model() const override {
    return {.name = "half", .words = "half a logistic regression"};
  }
  LossBounds Bounds(std::int64_t, double) const override {
    return {.slope = 0.5, .curvature = 0.125, .trace = 0.125, .directions = 1};
  }
  at::Tensor Values(const at::Tensor& scores, const at::Tensor& targets,
                    double target_bound) const override {
    return Whole().Values(scores, targets, target_bound).mul_(0.5);
  }
  at::Tensor Slopes(const at::Tensor& scores, const at::Tensor& targets,
                    double target_bound) const override {
    return Whole().Slopes(scores, targets, target_bound).mul_(0.5);
  }
  at::Tensor Predictions(const at::Tensor& scores) const override {
    return Whole().Predictions(scores);
  }
};

}  // namespace

const ConvexLoss& HalfLogisticLoss() {
  static const HalfLogistic component;
  return component;
}

}  // namespace sordino
