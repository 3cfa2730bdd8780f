// Renyi differential privacy of events.
//
// R(alpha) = sup over neighbours of D_alpha(M(D) || M(D')), in nats; orders are real and at least
// 1 (order 1 is the Kullback-Leibler divergence). R adds under composition, adaptively chosen
// steps included, and is the maximum over the parts of a parallel event.
//
//   gaussian(s)             alpha / (2 s^2), exact
//   laplace, pure, randomised response, discrete Laplace   exact
//   discrete Gaussian       alpha k^2 / (2 s^2) for sensitivity k (arXiv 2004.00010)
//   exponential(e)          the worst pair of losses (t, t - e): arXiv 1909.13830
//   tree(s, n)              alpha height / (2 s^2)
//   mixture of Gaussians    exact, by quadrature
//   poisson of Gaussians    exact at every order (arXiv 1908.10530), also under replace-one
//   poisson of laplace, discrete noise, pure   exact for the dominating pair (arXiv 2106.08567)
//   fixed of Gaussians, laplace, pure          exact for the dominating profile (1807.01647),
//                           which is below the bound of Wang, Balle and Kasiviswanathan (2019)
//   poisson, fixed of anything else   the general bounds of Zhu and Wang (2019) and of Wang,
//                           Balle and Kasiviswanathan (2019), at integer orders, with the
//                           cumulant function interpolated linearly between them
//   truncated poisson       mixture over whether the other records fill the cap, see renyi.cc
//   approximate(e, d > 0)   none: R is infinite
#ifndef SORDINO_ACCOUNTING_RENYI_H_
#define SORDINO_ACCOUNTING_RENYI_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/renyi_conversion.h"
#include "sordino/base/quantity.h"

namespace sordino {

// The Renyi curve of one event. It caches quadrature nodes, so a curve belongs to one thread.
class RenyiCurve {
 public:
  explicit RenyiCurve(const Event& event);

  // R(order), rounded up by about 1e-12 relative; order in [1, inf). Infinity where it does not
  // apply.
  double operator()(double order);
  // Why the curve is infinite; empty where it is not.
  const std::string& reason() const { return reason_; }

  RenyiEpsilonResult ToEpsilon(double log_delta,
                               RenyiConversion conversion = RenyiConversion::kTight);
  RenyiDeltaResult ToDelta(double epsilon);

 private:
  struct Term {
    double count;
    std::function<double(double)> rdp;
  };
  // About R(order), from some of many terms: to choose an order by, which is a bound whatever it
  // is.
  double Rough(double order) const;

  std::vector<Term> terms_;
  double gaussian_slope_ = 0;  // all unsampled Gaussians together: R = slope * order
  std::string reason_;
};

// (order, R) for each order; the rows of `sordino account --orders`.
std::vector<std::pair<double, double>> RenyiTable(const Event& event,
                                                  std::span<const double> orders);

// The noise multiplier of the one Gaussian that the event amounts to, if it is made of unsampled
// Gaussians, trees and compositions of them.
std::optional<double> EquivalentGaussian(const Event& event);

// The event with neighbours twice as far apart: what a Poisson-sampled query sees under
// replace-one, where one record may move the sum from -C to +C. Guarantees that are given as such
// (pure, approximate, zCDP, exponential, randomised response) hold for replacing as well as for
// dropping a record and stay as they are, and so do samplers, which double what is inside.
Event DoubledReach(const Event& event);

// What a batch of fixed size sees of an event: there the record takes the place of another one, so
// randomised response under zero-out, whose own guarantee is against a uniform report, counts as
// the pure guarantee of replacing one report by another.
Event FixedReach(const Event& event);

// The event with every noise scale (of Gaussians and Laplace, sampled or not) and every sampling
// rate rounded to a geometric grid with `per_e` points for each factor of e, and equal steps
// merged; schedules of thousands of different steps become cheap. kLessPrivate rounds noise down
// and rates up: never more private than the event, so an upper bound for it is one for the event.
// kMorePrivate is the opposite, for lower bounds. A curve over more than kManySteps steps uses the
// former with kFinePoints, which costs at most about 1 / kFinePoints relative in R.
enum class Coarsening : std::uint8_t { kLessPrivate, kMorePrivate };
Event CoarsenNoise(const Event& event, double per_e,
                   Coarsening coarsening = Coarsening::kLessPrivate);
inline constexpr std::size_t kManySteps = 1024;
inline constexpr double kFinePoints = 2048;

// Why an event has no Renyi curve; empty when it has one.
std::string RenyiInapplicable(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_RENYI_H_
