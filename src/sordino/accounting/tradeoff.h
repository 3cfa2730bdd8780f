// Trade-off curves of f-differential privacy (Dong, Roth and Su 2019, arXiv 1905.02383).
//
// f(x) is the smallest type II error (false negative rate) of any test between neighbours whose
// type I error (false positive rate) is at most x in [0, 1]; 1 - f(x) is the largest true
// positive rate of an attacker. Larger f is more private.
//   Gaussian        f(x) = Phi(Phi^-1(1 - x) - mu)
//   (eps, delta)    f(x) = max(0, 1 - delta - e^eps x, e^-eps (1 - delta - x))
//   a profile delta(eps): the largest of those curves over eps (proposition 2.13: the profile and
//   the curve are convex duals of each other)
#ifndef SORDINO_ACCOUNTING_TRADEOFF_H_
#define SORDINO_ACCOUNTING_TRADEOFF_H_

#include <functional>
#include <span>
#include <vector>

#include "sordino/accounting/event.h"

namespace sordino {

double GaussianTradeoff(double mu, double type_one);
// 1 - GaussianTradeoff, accurate for tiny rates.
double GaussianTruePositiveRate(double mu, double false_positive_rate);

double ApproximateTradeoff(double epsilon, double delta, double type_one);

// `delta_of` is an upper bound on delta at epsilon >= 0, for both directions; every epsilon tried
// gives a valid lower bound on f, and about 200 are tried, the best refined.
double ProfileTradeoff(const std::function<double(double)>& delta_of, double type_one);

// The event is (epsilon, delta)-DP.
struct PrivacyLine {
  double epsilon;
  double delta;
};

// Certified lines of an event at `count` >= 2 epsilons, evenly spaced from 0 to the epsilon at
// delta 1e-6, and at its pure epsilon where it has one. An epsilon without a certified delta is
// left out. `after_each` is told how many of the epsilons are done.
std::vector<PrivacyLine> PrivacyProfile(const Event& event, int count,
                                        const std::function<void(int)>& after_each = {});

// The largest of the curves of these lines; 0 without a line. A lower bound on f, as each of them
// is.
double ProfileTradeoff(std::span<const PrivacyLine> profile, double type_one);

struct TradeoffPoint {
  double type_one;
  double type_two;
};
std::vector<TradeoffPoint> TradeoffCurve(const std::function<double(double)>& tradeoff,
                                         std::span<const double> type_one);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_TRADEOFF_H_
