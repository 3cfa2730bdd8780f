// The exact (epsilon, delta) curve of the Gaussian mechanism, and its inverses.
//
// For a query of L2 sensitivity Delta and noise N(0, sigma^2 I), with mu = Delta / sigma
// (Balle and Wang 2018, arXiv 1805.06530, theorem 8; Dong, Roth and Su 2019, corollary 2.13):
//
//   delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
//
// n Gaussian releases of parameters mu_1 ... mu_n compose to one of mu = sqrt(sum mu_i^2).
//
// Everything happens in the logarithm of delta, so delta = 1e-300 and epsilon = 1e5 are ordinary
// inputs. With a = epsilon/mu - mu/2, b = epsilon/mu + mu/2, the normal density phi and the Mills
// ratio R(x) = (1 - Phi(x)) / phi(x), the identity phi(a) = e^epsilon phi(b) gives
//   delta = phi(a) (R(a) - R(b)) = phi(a) * integral of (1 - x R(x)) over [a, b],
// where neither e^epsilon nor a difference of two nearly equal tails appears.
#ifndef SORDINO_ACCOUNTING_GAUSSIAN_H_
#define SORDINO_ACCOUNTING_GAUSSIAN_H_

namespace sordino {

// 1 - Phi(x), and the x at which it is p.
double UpperTail(double x);
double UpperQuantile(double p);

// log delta at epsilon in [0, inf] for mu in [0, inf]; -infinity where delta is 0.
double GaussianLogDelta(double mu, double epsilon);

// A bound on the absolute rounding error of GaussianLogDelta at the same arguments.
double GaussianLogDeltaError(double mu, double epsilon);

// The smallest epsilon at which log delta is at most log_delta (in [-inf, 0]), rounded up: the
// true curve at the result is never above log_delta. Infinity for log_delta = -inf unless mu = 0.
double GaussianEpsilon(double mu, double log_delta);

// The largest mu whose curve at epsilon is at most log_delta, rounded down, so that
// sigma = Delta / mu is never too small. Infinity for log_delta = 0, zero for log_delta = -inf.
double GaussianMu(double epsilon, double log_delta);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_GAUSSIAN_H_
