// The choice of a tilt c for exponentially tilted losses, shared by the contour and the grid.
#ifndef SORDINO_ACCOUNTING_INTERNAL_TILT_SEARCH_H_
#define SORDINO_ACCOUNTING_INTERNAL_TILT_SEARCH_H_

#include <algorithm>
#include <cmath>

namespace sordino {

// log of sup over u > 0 of (1 - e^{-u}) e^{-cu}: the constant of the Chernoff bound on delta.
inline double LogChernoffConstant(double c) { return -c * std::log1p(1 / c) - std::log1p(c); }

// Minimises f over log c by a scan outward from `start` and golden section; f may be infinite for
// large c.
template <typename F>
double MinimiseOverTilt(F f, double start) {
  double centre = std::log(std::clamp(start, 1e-12, 1e9));
  double step = 1.0;
  double best = f(std::exp(centre));
  while (!std::isfinite(best) && centre > -30) best = f(std::exp(centre -= step));
  for (int direction : {-1, 1}) {
    while (centre > -30 && centre < 25) {
      const double value = f(std::exp(centre + direction * step));
      if (!(value < best)) break;
      best = value;
      centre += direction * step;
    }
  }
  double a = centre - step;
  double b = centre + step;
  constexpr double kGolden = 0.61803398874989484820;
  double x1 = b - kGolden * (b - a);
  double x2 = a + kGolden * (b - a);
  double f1 = f(std::exp(x1));
  double f2 = f(std::exp(x2));
  while (b - a > 0.03) {
    if (f1 < f2) {
      b = x2;
      x2 = x1;
      f2 = f1;
      x1 = b - kGolden * (b - a);
      f1 = f(std::exp(x1));
    } else {
      a = x1;
      x1 = x2;
      f1 = f2;
      x2 = a + kGolden * (b - a);
      f2 = f(std::exp(x2));
    }
  }
  return std::exp(0.5 * (a + b));
}

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_TILT_SEARCH_H_
