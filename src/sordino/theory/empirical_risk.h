// What noise costs a convex empirical risk: predictions for private learners, and the bound of the
// literature.
//
// The empirical risk is f(theta) = (1/n) sum_i l(theta; x_i), its excess f(theta) - f(best) for the
// best weights of norm rho. Near the best weights f is quadratic; let h_1 ... h_p be the
// eigenvalues of its Hessian. Their sum is at most the trace bound of one row's Hessian. For the
// predictions they are *assumed* to fall like 1/i and to reach this sum, since the data may not be
// looked at; a prediction decides which method is taken and how it is set, and never how private it
// is.
//
//   noise of deviation s on every weight
//       excess = (s^2 / 2) sum h_i
//   a term b of deviation sigma in the gradient of n f
//       excess = (sigma^2 / 2 n^2) sum h_i / (h_i + lambda/n)^2
//   descent of duration t = step size times steps, with noise of deviation sigma sqrt(steps) in
//   each step, where sigma is what a single step would need
//       excess = (sigma^2 / 2 n^2) sum h_i min(t^2, t / (2 h_i))
//   T steps by the inverse of (Hessian + floor)
//       the same with t = T / (h_i + floor)
//
// and what regularisation or an early stop loses against weights of norm rho:
//
//   (lambda / 2) |theta|^2 beside n f, mu = lambda/n
//       max_h h/2 (mu / (h + mu))^2 rho^2 = mu rho^2 / 8
//   descent of duration t from 0
//       max_h h/2 e^{-2 t h} rho^2 = rho^2 / (4 e t)
//   k proximal steps from 0 of k lambda
//       max_h h/2 (k mu / (h + k mu))^{2k} rho^2 = mu rho^2 k/2 (1 - 1/2k)^{2k} / (2k - 1)
#ifndef SORDINO_THEORY_EMPIRICAL_RISK_H_
#define SORDINO_THEORY_EMPIRICAL_RISK_H_

#include <cstdint>
#include <functional>

namespace sordino {

struct RiskShape {
  double records = 1;      // n
  double parameters = 1;   // p
  double trace = 0.25;     // of the Hessian of one row: at most beta
  double weight_norm = 1;  // rho
};

// Throw Error for numbers that are not positive and finite (noise and lambda may be 0).
double OutputRisk(const RiskShape& shape, double deviation, double lambda,
                  std::int64_t proximal_steps = 1);
double ObjectiveRisk(const RiskShape& shape, double sigma, double lambda);
double DescentRisk(const RiskShape& shape, double sigma, double duration);
double PreconditionedRisk(const RiskShape& shape, double sigma, double steps, double floor);

// The bound of Bassily, Smith and Thakurta (FOCS 2014) for L-Lipschitz losses on weights of norm at
// most rho, up to its constant: rho L sqrt(p) / (epsilon n) with the Gaussian noise of one release,
// sigma = L z: rho sigma sqrt(p) / n. Descent on a smooth risk attains it with the factor sqrt(2):
// for t = n rho / (sigma sqrt(2 p)), rho^2 / (2 t) + t p sigma^2 / n^2.
double DescentRiskBound(double records, double parameters, double weight_norm, double sigma);

// The x in [low, high] where the function, which falls and then rises, is least, to 1e-3
// relative.
double LeastRiskAt(const std::function<double(double)>& risk, double low, double high);

}  // namespace sordino

#endif  // SORDINO_THEORY_EMPIRICAL_RISK_H_
