// The minimum of a smooth function by L-BFGS: the quasi-Newton method with the last pairs of steps
// and changes of the gradient (Nocedal and Wright, Numerical Optimization, algorithm 7.5), with
// backtracking to sufficient decrease.
#ifndef SORDINO_CORRELATION_INTERNAL_MINIMISE_H_
#define SORDINO_CORRELATION_INTERNAL_MINIMISE_H_

#include <functional>
#include <span>
#include <vector>

namespace sordino {

// The value at x, with its gradient in `gradient`; infinity where the function is not defined.
using SmoothFunction = std::function<double(std::span<const double> x, std::span<double> gradient)>;

struct Minimum {
  std::vector<double> x;
  double value;
};

// Until the value falls by less than a relative `tolerance` in several steps, or `most_steps`.
Minimum Minimise(const SmoothFunction& function, std::vector<double> start,
                 double tolerance = 1e-13, int most_steps = 1000);

// A function of one number in (low, high): the best of an even grid, refined by golden sections.
double MinimiseOnInterval(const std::function<double(double)>& function, double low, double high);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_INTERNAL_MINIMISE_H_
