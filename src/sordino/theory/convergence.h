// How close private gradient descent comes to the minimum, and how many steps are best.
//
// Full-batch descent with step size 1/M on a loss that is G-Lipschitz, M-smooth and satisfies the
// Polyak-Lojasiewicz condition with mu, whose gradients are clipped to C >= G (so nothing is
// clipped) and noised with multiplier s_t (noise_schedule.h):
//
//     kappa = M / mu >= 1,   gamma = 1 - 1 / kappa,
//     alpha = D C^2 / (2 R M N^2 (f(theta_1) - f*))
//
// for N records, D parameters and the budget R. Theorem 3.2 of Hong, Wang and Zhou (arXiv
// 2101.07413): after T steps the expected excess risk over the initial one is at most
//
//     gamma^T + R sum_t q_t s_t^2,   q_t = alpha gamma^(T - t).
//
// With the same noise in all steps (R s_t^2 = T) and with the best schedule that is
//
//     uniform(T) = gamma^T + T alpha (1 - gamma^T) / (1 - gamma)
//     dynamic(T) = gamma^T + alpha ((1 - gamma^(T/2)) / (1 - sqrt(gamma)))^2.
//
// The number of steps. Both functions of a real T >= 0 fall and then rise, so that their least
// integers are the two neighbours of the real minimum:
//   dynamic  with z = gamma^(T/2) and a = alpha / (1 - sqrt(gamma))^2 it is z^2 + a (1 - z)^2, a
//            parabola with its minimum at z = a / (1 + a);
//   uniform  its derivative is alpha kappa (1 - gamma^T (1 + L / (alpha kappa) - L T)) for
//            L = log(1 / gamma); e^(L T) rises and 1 + L / (alpha kappa) - L T falls, so they meet
//            once.
// Theorem 3.3 and Lemma 3.2 of the paper give closed forms for the horizon; that of the uniform
// schedule is an approximation. Both are given beside the true minimum.
#ifndef SORDINO_THEORY_CONVERGENCE_H_
#define SORDINO_THEORY_CONVERGENCE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sordino {

struct ProblemConstants {
  double records = 0;    // N
  double dimension = 0;  // D
  double lipschitz = 1;  // G, which is also the clipping norm
  double smoothness = 0;
  double strong_convexity = 0;  // or the constant of the Polyak-Lojasiewicz condition
  double initial_gap = 0;       // f(theta_1) - f*
  double budget = 0;            // R
};

class ConvergenceProblem {
 public:
  // Throws Error for a kappa below 1 or an alpha that is not positive.
  ConvergenceProblem(double kappa, double alpha);
  // Throws Error for a constant that is not positive and finite, and for a strong convexity above
  // the smoothness.
  static ConvergenceProblem Of(const ProblemConstants& constants);

  double kappa() const { return kappa_; }
  double alpha() const { return alpha_; }
  double gamma() const { return 1 - 1 / kappa_; }

  double UniformBound(double steps) const;
  double DynamicBound(double steps) const;
  // Of any schedule; its budget is what it spends, and alpha is that of this budget.
  double BoundOf(std::span<const double> noise) const;
  // q_1 ... q_T.
  std::vector<double> Influence(std::int64_t steps) const;

 private:
  // gamma^steps, accurate also for kappa above 10^16.
  double Decay(double steps) const;

  double kappa_;
  double alpha_;
};

struct Horizon {
  std::int64_t steps = 0;  // 0: a single step costs more than it gains
  double bound = 1;
  // By the closed form of the paper; none for kappa = 1, where one step arrives.
  std::optional<std::int64_t> formula_steps = std::nullopt;
  std::optional<double> formula_bound = std::nullopt;
};

// Throw Error where the best number of steps is above 2^53.
Horizon BestUniform(const ConvergenceProblem& problem);
Horizon BestDynamic(const ConvergenceProblem& problem);

}  // namespace sordino

#endif  // SORDINO_THEORY_CONVERGENCE_H_
