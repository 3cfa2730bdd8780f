// The losses of convex learning: components that own their derivatives and their bounds.
//
// A row x of norm at most R with target y has the loss l(s; y) of its scores s = Theta^T x, where
// Theta has one column of d coefficients for each score. So the gradient is the outer product of x
// and r = dl/ds, and the Hessian that of x x^T and d2l/ds2. Every loss here is convex, has a
// gradient of bounded norm and a bounded second derivative (at the kinks of Huber's losses from
// one side), for every Theta:
//
//   loss      scores  |r| <=    largest eigenvalue, trace of d2l/ds2   directions m of r
//   squares   1       B         1, 1                                   1
//   logistic  1       1         1/4, 1/4                               1
//   softmax   K       sqrt(2)   1/2, 1 - 1/K                           K - 1
//   huber     1       1         1 / (2 h), the same                    1
//
// squares is (s - y)^2 / 2 for |s - y| <= B and grows linearly beyond, with B the bound on the
// targets: least squares has no bounded gradient. AdaSSP minimises the square itself.
//
// A new one is a file that defines a class derived from ConvexLoss and a function that returns it,
// and a line in loss_list.inc.
#ifndef SORDINO_CONVEX_LOSS_H_
#define SORDINO_CONVEX_LOSS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "sordino/base/component.h"

namespace sordino {

// The column of the table above.
struct LossBounds {
  double slope = 1;             // |r|
  double curvature = 0.25;      // largest eigenvalue of d2l/ds2
  double trace = 0.25;          // its trace
  std::int64_t directions = 1;  // m
};

// The model that minimises a loss, as users choose it (`sordino fit --model`).
struct FittedModel {
  std::string_view name;               // empty: it is not chosen by itself
  std::string_view words = {};         // for people
  std::string_view loss_of_many = {};  // for more than two classes; empty: two at most
};

class ConvexLoss : public Component {
 public:
  using Component::Component;

  virtual FittedModel Model() const = 0;
  // Whether targets are classes 0, 1, ... (int64) or numbers (float64).
  virtual bool Classifies() const { return true; }
  // How many classes it takes at most; 2 where there is one score.
  virtual std::int64_t MaxClasses() const { return 2; }
  virtual std::int64_t Scores(std::int64_t classes) const {
    static_cast<void>(classes);
    return 1;
  }
  virtual LossBounds Bounds(std::int64_t classes, double target_bound) const = 0;

  // Scores are [n, K] in float64; targets [n]. Values are [n], slopes r [n, K].
  virtual at::Tensor Values(const at::Tensor& scores, const at::Tensor& targets,
                            double target_bound) const = 0;
  virtual at::Tensor Slopes(const at::Tensor& scores, const at::Tensor& targets,
                            double target_bound) const = 0;
  // Classes (int64) or numbers, [n].
  virtual at::Tensor Predictions(const at::Tensor& scores) const = 0;
  // A bound on the rounding error of |r|, where the error of |s| is at most `score_error`: the
  // elementary functions of libtorch are assumed to be right to 4 units in the last place.
  double SlopeError(std::int64_t classes, double target_bound, double score_error) const;
};

const Registry<ConvexLoss>& ConvexLosses();

}  // namespace sordino

#endif  // SORDINO_CONVEX_LOSS_H_
