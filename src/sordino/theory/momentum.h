// Private descent with debiased momentum, and its noise schedule.
//
// The update (Algorithm 2 of Hong, Wang and Zhou, arXiv 2101.07413) averages the noised gradients
// g_t, v_{t+1} = beta v_t + (1 - beta) g_t, and steps along v_{t+1} / (1 - beta^t). Theorem 3.4,
// for a step size eta = x / M on a loss that is M-smooth and satisfies the Polyak-Lojasiewicz
// condition with mu = M / kappa: the expected excess risk after T steps is at most
//
//     gamma^T gap + (2 eta D / N^2) sum_t q_t (C s_t)^2 + eta zeta sum_t gamma^(T - t) |v_{t+1}|^2
//
//     gamma = 1 - x / kappa,   q_t = a_{T - t + 1}
//     a_s = sum_{i < s} gamma^i beta^(2 (s - 1 - i))
//     zeta = 4 x^2 beta gamma / ((gamma - beta)^2 (1 - beta)^3) + x / 2 - 1.
//
// (a_s is (beta^(2s) - gamma^s) / (beta^2 - gamma) of the paper, also where beta^2 = gamma.) Where
// zeta <= 0 the last term is not positive and can be left out, so only step sizes with zeta <= 0
// are taken here. In the units of convergence.h the bound over the initial gap is then
//
//     gamma^T + 4 x alpha R sum_t q_t s_t^2.
//
// zeta rises with x as long as gamma > beta, that is x < kappa (1 - beta), so there is a largest x.
#ifndef SORDINO_THEORY_MOMENTUM_H_
#define SORDINO_THEORY_MOMENTUM_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sordino/theory/convergence.h"

namespace sordino {

// q_1 ... q_T of Theorem 3.4. Throws Error for beta or gamma outside of [0, 1).
std::vector<double> MomentumInfluence(double beta, double gamma, std::int64_t steps);

// a_s by its closed form; `left` is s = T - t + 1, from 1. Throws Error as above.
double MomentumInfluenceAt(double beta, double gamma, std::int64_t left);

class MomentumProblem {
 public:
  // `step` is x; left out, it is the largest that the theorem takes. Throws Error for a beta
  // outside of (0, 1) and for a step whose zeta is above 0.
  MomentumProblem(const ConvergenceProblem& problem, double beta,
                  std::optional<double> step = std::nullopt);

  double beta() const { return beta_; }
  double step() const { return step_; }
  double gamma() const { return 1 - step_ / problem_.kappa(); }
  double Zeta() const;

  // 4 x alpha q_t: so that the bound of a schedule is gamma^T + R sum_t influence_t s_t^2.
  std::vector<double> Influence(std::int64_t steps) const;
  double UniformBound(std::int64_t steps) const;
  double DynamicBound(std::int64_t steps) const;
  double BoundOf(std::span<const double> noise) const;

  struct Best {
    Horizon uniform;
    Horizon dynamic;
  };
  // The least bounds over all T up to kMaxMomentumSteps, one by one: there is no closed form.
  // Throws Error where they may lie beyond.
  Best Minima() const;

 private:
  ConvergenceProblem problem_;
  double beta_;
  double step_;
};

inline constexpr std::int64_t kMaxMomentumSteps = 20'000'000;

// The largest x with zeta <= 0.
double LargestMomentumStep(double kappa, double beta);

}  // namespace sordino

#endif  // SORDINO_THEORY_MOMENTUM_H_
