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
//
// The least bounds. The paper gives them as orders, with x = kappa^2 alpha:
//   uniform  (Eq. 9)    g(x) = x (1 + (x - 1) log x), and 1 where kappa alpha >= L
//   dynamic  (Eq. 12)   x / (1 + x)
// Their constants, for the least bound over whole numbers of steps and kappa > 1:
//   dynamic  The least over real T is a / (1 + a) with a = s x and s = (1 + sqrt(gamma))^2 in
//            (1, 4), which is between 1 and s times x / (1 + x). Rounding z down to z sqrt(gamma)
//            or more adds (1 + a) z^2 (1 - sqrt(gamma))^2 at most, a share of alpha: 1 and (1 +
//            alpha) s.
//   uniform  With y = kappa alpha / L and t = L T the bound is e^-t + t y (1 - e^-t). For the paper
//            t = log(1 / y) and it is g(y); its least value m(y) over t >= 0 is at least
//            kUniformShare g(y) for y <= 1, with equality at y = 1. Its slope is at most
//            (1 + e^-2) y <= (1 + e^-2) g(y), so that a whole T costs at most L (1 + e^-2) g(y)
//            more. x = u y with u = kappa L >= 1, and g(x) / g(y) is between 1 and g(u), because g
//            rises and its elasticity is below 1 before 1 and rises from 1 on: kUniformShare / g(u)
//            and 1 + L (1 + e^-2). For y >= 1 m(y) is between m(1) and 1.
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

// m(1) = g(1) m(1): the least of e^-t + t (1 - e^-t), rounded down.
inline constexpr double kUniformShare = 0.8006;

// The least bound as an order of the paper, and what the true one is between: `least` and `most`
// times `value`.
struct PublishedOrder {
  double value = 1;
  double least = 1;
  double most = 1;
};

struct Horizon {
  std::int64_t steps = 0;  // 0: a single step costs more than it gains
  double bound = 1;
  // By the closed form of the paper, and the bound for so many steps; none for kappa = 1, where one
  // step arrives, and with momentum.
  std::optional<std::int64_t> formula_steps = std::nullopt;
  std::optional<double> bound_at_formula = std::nullopt;
  std::optional<PublishedOrder> published = std::nullopt;  // Eq. 9 and 12
};

// Throw Error where the best number of steps is above 2^53.
Horizon BestUniform(const ConvergenceProblem& problem);
Horizon BestDynamic(const ConvergenceProblem& problem);

}  // namespace sordino

#endif  // SORDINO_THEORY_CONVERGENCE_H_
