#include "sordino/lower_bounds/binomial.h"

#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "sordino/base/check.h"

namespace sordino {

double BinomialMass(std::int64_t n, std::int64_t k, double p) {
  SORDINO_CHECK(0 <= k && k <= n && p >= 0 && p <= 1, "a binomial outside of its range");
  if (p == 0) return k == 0 ? 1 : 0;
  if (p == 1) return k == n ? 1 : 0;
  // The derivative of the regularised incomplete beta function is x^(a-1) (1-x)^(b-1) / B(a, b).
  const auto a = static_cast<double>(k) + 1;
  const auto b = static_cast<double>(n - k) + 1;
  return boost::math::ibeta_derivative(a, b, p) / (static_cast<double>(n) + 1);
}

double BinomialTail(std::int64_t n, std::int64_t k, double p) {
  SORDINO_CHECK(p >= 0 && p <= 1, "a binomial outside of its range");
  if (k <= 0) return 1;
  if (k > n) return 0;
  return boost::math::ibeta(static_cast<double>(k), static_cast<double>(n - k) + 1, p);
}

double ClopperPearsonUpper(std::int64_t n, std::int64_t k, double alpha) {
  SORDINO_CHECK(0 <= k && k <= n && alpha > 0 && alpha < 1, "a bound outside of its range");
  if (k == n) return 1;
  return boost::math::ibetac_inv(static_cast<double>(k) + 1, static_cast<double>(n - k), alpha);
}

double ClopperPearsonLower(std::int64_t n, std::int64_t k, double alpha) {
  return 1 - ClopperPearsonUpper(n, n - k, alpha);
}

}  // namespace sordino
