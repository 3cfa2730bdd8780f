// Renyi divergences of a pair of distributions, from the distribution of its privacy loss.
//
// For a pair (P, Q) with loss y = log dP/dQ and order alpha = 1 + a,
//
//   D_alpha(P || Q) = log(1 + a E) / a,   E = E_Q[ h_a(y) ],
//   h_a(y) = e^y ( phi(-y) + phi(a y) / a ),   phi(x) = e^x - 1 - x,
//
// because E_Q[e^y - 1] = 0 may be subtracted for free. Every term of h_a is non-negative, so
// divergences of 1e-30 keep their digits, and a = 0 gives the Kullback-Leibler divergence. E is
// accumulated directly while it fits a double and as a log-sum-exp of e^(alpha y) beyond.
#ifndef SORDINO_ACCOUNTING_INTERNAL_RENYI_MOMENTS_H_
#define SORDINO_ACCOUNTING_INTERNAL_RENYI_MOMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sordino {

// One atom of the loss under Q: its log mass and the loss y, with what no order changes.
struct LossNode {
  double log_weight;
  double loss;
  double tilted;  // exp(log_weight + loss), the mass under P
  double base;    // tilted * phi(-loss)
};

LossNode MakeLossNode(double log_weight, double loss);

// Accumulates E or log E[e^(alpha y)] over nodes. `log_scale` is an estimate (within a few
// hundred) of the largest log_weight + alpha * loss.
class MomentSum {
 public:
  MomentSum(double order, double log_scale);

  // Returns the term, in units of the running sum.
  double Add(const LossNode& node);
  // Adds exp(log_moment) to E[e^(alpha y)], for a part that is known in closed form.
  void AddClosedForm(double log_moment);
  double sum() const { return sum_; }
  // Whether terms are divided by exp(log_scale); the largest is then about 1.
  bool scaled() const { return scaled_; }
  // D_alpha, rounded up by the accumulated rounding error and a relative 1e-12.
  double Divergence() const;

 private:
  double order_;
  double excess_;  // order - 1
  double shift_ = 0;
  bool scaled_;
  double sum_ = 0;
  double error_ = 0;
};

// D_alpha from all nodes of a list; order >= 1.
double RenyiFromNodes(std::span<const LossNode> nodes, double order);

// Loss distributions with finitely many atoms, or quadrature nodes that stand for them: pairs of
// (log mass under Q, loss). Each pair is symmetric: swapping P and Q leaves it unchanged.
using LossAtoms = std::vector<std::pair<double, double>>;
LossAtoms PureAtoms(double epsilon);
// Laplace noise of scale b against a shift of 1, lambda = 1 / b; accurate at every order.
LossAtoms LaplaceAtoms(double lambda);
// pmf ~ exp(-|x| / scale) on the integers against a shift of `sensitivity`.
LossAtoms DiscreteLaplaceAtoms(double scale, std::uint64_t sensitivity);

// The pair (P, Q) itself.
std::vector<LossNode> PlainNodes(const LossAtoms& atoms);
// Poisson sampling with probability q under add-remove: ((1-q) Q + q P, Q) and the reverse
// (arXiv 2106.08567, theorem 11).
std::vector<LossNode> PoissonNodes(const LossAtoms& atoms, double q, bool reverse);
// The profile delta'(log(1 + q (e^eps - 1))) = q delta(eps) for eps >= 0, in both directions
// (Balle, Barthe and Gaboardi 2018, arXiv 1807.01647): sampling without replacement, and Poisson
// sampling under replace-one when (P, Q) bounds replacing as well as dropping a record. The
// divergence of a profile is the integral of f''(g) H_g, so each half of the loss comes from the
// direction that is worse there.
std::vector<LossNode> HalfProfileNodes(const LossAtoms& atoms, double q);

// Poisson sampling of Laplace noise (lambda = 1 / b) under replace-one: (1-q) Lap(0) + q Lap(1)
// against (1-q) Lap(0) + q Lap(-1), the pair of dominating_pair.h.
std::vector<LossNode> ReplacedLaplaceNodes(double lambda, double q);

// log(1 - q + q e^loss) without overflow or cancellation; q in [0, 1].
double SampledLoss(double q, double loss);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_RENYI_MOMENTS_H_
