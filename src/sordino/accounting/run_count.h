// How often a run is repeated before its best result is released: a random number K that nobody
// learns.
//
//   truncated negative binomial (eta > -1, 0 < gamma < 1): K >= 1. eta 1 is the geometric
//     distribution, 0 the logarithmic one. E[s^K] = ((1 - (1 - gamma) s)^-eta - 1) / (gamma^-eta -
//     1), and its limit log(1 - (1 - gamma) s) / log gamma at eta = 0 (arXiv 2110.03620).
//   Poisson (mean > 0): E[s^K] = e^{mean (s - 1)}; K may be 0, and then nothing is released.
//
// Everything is asked at s = 1 - u, where u is the chance that another run does better: small u
// decides, and 1 - u would lose its digits.
#ifndef SORDINO_ACCOUNTING_RUN_COUNT_H_
#define SORDINO_ACCOUNTING_RUN_COUNT_H_

#include <cstdint>

namespace sordino {

class RunCount {
 public:
  static RunCount TruncatedNegativeBinomial(double eta, double gamma);
  // With the least gamma from 1e-9 whose mean is not above this one, which is above 1.
  static RunCount NegativeBinomialOfMean(double eta, double mean);
  static RunCount Poisson(double mean);

  double Mean() const { return Slope(0); }
  double None() const;  // the probability that K is 0
  double Probability(std::int64_t runs) const;
  // The derivative of E[s^K] in s at s = 1 - u, which falls in u.
  double Slope(double u) const;
  // What E[s^K] grows by from s = 1 - u - width to s = 1 - u: the chance that the released result
  // is among those that another run beats with a chance between u and u + width.
  double Mass(double u, double width) const;

  bool IsPoisson() const { return poisson_; }
  double eta() const { return eta_; }
  double gamma() const { return gamma_; }

 private:
  RunCount() = default;

  bool poisson_ = false;
  double eta_ = 0;
  double gamma_ = 0;
  double mean_ = 0;
  double scale_ = 0;  // log(1/gamma), or (gamma^-eta - 1) / eta
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_RUN_COUNT_H_
