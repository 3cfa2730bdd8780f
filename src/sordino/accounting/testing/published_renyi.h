// The Renyi bound of sampled Gaussian noise that was published before the exact one.
#ifndef SORDINO_ACCOUNTING_TESTING_PUBLISHED_RENYI_H_
#define SORDINO_ACCOUNTING_TESTING_PUBLISHED_RENYI_H_

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace sordino::testing {

inline double LogOfSum(const std::vector<double>& logs) {
  const double top = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log_term : logs) sum += std::exp(log_term - top);
  return top + std::log(sum);
}

// Batches of fixed size under replace-one, with the ternary divergences of theorem 27 of Wang,
// Balle and Kasiviswanathan 2019 (arXiv 1808.00087). integer order >= 2.
inline double PublishedFixedGaussianRenyi(double q, double sigma, int order) {
  // log E[(e^z - 1)^l] for even l, z = loss of the Gaussian: the l-th forward difference of the
  // moment generating function, here as an integral of positive terms.
  const auto log_difference = [sigma](int l) {
    const double step = 0.05 * std::min(1.0, sigma);
    std::vector<double> terms;
    for (double u = -12; u <= l / sigma + 12; u += step) {
      const double z = u / sigma - 0.5 / (sigma * sigma);
      terms.push_back(l * (z > 40 ? z : std::log(std::abs(std::expm1(z)))) - 0.5 * u * u);
    }
    return std::log(step) - 0.5 * std::log(2 * std::numbers::pi) + LogOfSum(terms);
  };
  const auto cumulant = [sigma](double x) { return x * (x + 1) / (2 * sigma * sigma); };
  std::vector<double> terms = {0};
  const auto add = [&](int j, double log_bound) {
    terms.push_back(j * std::log(q) + std::lgamma(order + 1.0) - std::lgamma(j + 1.0) -
                    std::lgamma(order - j + 1.0) + log_bound);
  };
  const double second = 1 / (sigma * sigma);
  add(2, std::min(std::log(4.0) + std::log(std::expm1(second)), std::log(2.0) + second));
  for (int j = 3; j <= order; ++j) {
    const double ternary =
        std::log(4.0) +
        (j % 2 == 0 ? log_difference(j) : 0.5 * (log_difference(j - 1) + log_difference(j + 1)));
    add(j, std::min(ternary, std::log(2.0) + cumulant(j - 1)));
  }
  return LogOfSum(terms) / (order - 1);
}

}  // namespace sordino::testing

#endif  // SORDINO_ACCOUNTING_TESTING_PUBLISHED_RENYI_H_
