// Shared by the tests of this module: moments of many releases, and bounds on proportions.
#ifndef SORDINO_MECHANISMS_TESTING_TEST_SUPPORT_H_
#define SORDINO_MECHANISMS_TESTING_TEST_SUPPORT_H_

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sordino {

struct SampleMoments {
  double mean = 0;
  double variance = 0;
  double standard_error = 0;  // of the mean
};

inline SampleMoments MomentsOf(const std::vector<double>& sample) {
  SampleMoments moments;
  const double n = static_cast<double>(sample.size());
  for (const double x : sample) moments.mean += x / n;
  for (const double x : sample) {
    moments.variance += (x - moments.mean) * (x - moments.mean) / (n - 1);
  }
  moments.standard_error = std::sqrt(moments.variance / n);
  return moments;
}

// One-sided Clopper-Pearson bounds on a probability from k successes in n trials, each wrong with
// probability alpha.
inline double ProbabilityLower(std::uint64_t k, std::uint64_t n, double alpha) {
  if (k == 0) return 0;
  const boost::math::beta_distribution<double> beta(static_cast<double>(k),
                                                    static_cast<double>(n - k + 1));
  return boost::math::quantile(beta, alpha);
}
inline double ProbabilityUpper(std::uint64_t k, std::uint64_t n, double alpha) {
  if (k == n) return 1;
  const boost::math::beta_distribution<double> beta(static_cast<double>(k + 1),
                                                    static_cast<double>(n - k));
  return boost::math::quantile(beta, 1 - alpha);
}

// An epsilon that the two samples of releases prove, at error 2 alpha: for an (epsilon, delta)-DP
// mechanism P(S) <= e^epsilon Q(S) + delta. The event S is {x >= threshold} or its mirror; whoever
// calls fixes the threshold without looking at the samples.
inline double ProvenEpsilon(const std::vector<double>& p, const std::vector<double>& q,
                            double threshold, double delta, double alpha) {
  const auto above = [threshold](const std::vector<double>& sample) {
    return static_cast<std::uint64_t>(
        std::count_if(sample.begin(), sample.end(), [&](double x) { return x >= threshold; }));
  };
  const double low = ProbabilityLower(above(p), p.size(), alpha);
  const double high = ProbabilityUpper(above(q), q.size(), alpha);
  return low > delta ? std::log((low - delta) / high) : 0;
}

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_TESTING_TEST_SUPPORT_H_
