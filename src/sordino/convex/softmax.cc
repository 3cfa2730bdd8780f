// Logistic regression of K classes: log(sum_k e^(s_k)) - s_y.
//
// The Hessian diag(p) - p p^T of the scores has a trace of 1 - |p|^2 <= 1 - 1/K and eigenvalues of
// at most 1/2 (Boehning, 1992); it and the slope p - e_y are orthogonal to the vector of ones.
#include <ATen/Functions.h>

#include <numbers>

#include "sordino/convex/loss.h"
#include "sordino/convex/problem.h"

namespace sordino {
namespace {

class Softmax : public ConvexLoss {
 public:
  Softmax() : ConvexLoss({.name = "softmax", .help = "log Σₖ exp(sₖ) − s_y of a class y of K"}) {}

  FittedModel Model() const override { return {.name = ""}; }  // logistic regression of many
  std::int64_t MaxClasses() const override { return kMaxConvexClasses; }
  std::int64_t Scores(std::int64_t classes) const override { return classes; }
  LossBounds Bounds(std::int64_t classes, double) const override {
    return {.slope = std::numbers::sqrt2 * (1 + 0x1p-50),
            .curvature = 0.5,
            .trace = 1 - 1 / static_cast<double>(classes),
            .directions = classes - 1};
  }
  at::Tensor Values(const at::Tensor& scores, const at::Tensor& targets, double) const override {
    return at::logsumexp(scores, {1}).sub_(scores.gather(1, targets.unsqueeze(1)).squeeze(1));
  }
  at::Tensor Slopes(const at::Tensor& scores, const at::Tensor& targets, double) const override {
    at::Tensor p = at::softmax(scores, 1);
    const at::Tensor y = targets.unsqueeze(1);
    return p.scatter_add_(1, y, at::full(y.sizes(), -1, p.options()));
  }
  at::Tensor Predictions(const at::Tensor& scores) const override { return scores.argmax(1); }
};

}  // namespace

const ConvexLoss& SoftmaxLoss() {
  static const Softmax component;
  return component;
}

}  // namespace sordino
