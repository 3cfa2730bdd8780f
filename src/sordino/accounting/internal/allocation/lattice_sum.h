// The law of a sum of many independent copies of a variable on a lattice, with an error bound.
//
// Masses are tilted, q_j e^{tilt x_j - log_scale}, so that a tail of 1e-30 has digits. They are
// folded onto a window of N points, transformed, raised to the count and transformed back. Three
// errors, all part of LatticeSum::error:
//  * Rounding of a transform. Each output is a sum over paths of inputs times twiddle factors, and
//    a path is rounded c times a stage, so every output is off by at most c u log2(N) times the sum
//    of the moduli of the inputs (cf. Higham, "Accuracy and stability of numerical algorithms",
//    section 24.1). The sum of the masses bounds the forward one, the sum of the moduli of the
//    powers the backward one.
//  * The power: ((|f| + e)^n - |f|^n) for an error e of the transform f at each frequency.
//  * What lies outside the window is folded into it; by Chernoff it has a mass of at most
//    E[e^{d |S - end|}] for every d > 0, on either side; the caller knows a good d.
#ifndef SORDINO_ACCOUNTING_INTERNAL_LATTICE_SUM_H_
#define SORDINO_ACCOUNTING_INTERNAL_LATTICE_SUM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sordino {

// mass[j] belongs to the value offset + j * spacing.
struct LatticeLaw {
  double offset = 0;
  double spacing = 0;
  double tilt = 0;
  double log_scale = 0;
  std::vector<double> mass;  // tilted

  double Value(std::size_t j) const { return offset + static_cast<double>(j) * spacing; }
};

struct LatticeSum {
  double offset = 0;
  double spacing = 0;
  double first = 0;  // mass[i] belongs to offset + (first + i) * spacing
  double tilt = 0;
  double log_scale = 0;
  std::vector<double> mass;  // tilted; may be negative by rounding
  double error = 0;          // of every mass, absolute

  // Without cancellation where the spacing is much larger than the value.
  double Value(std::size_t i) const { return offset + (first + static_cast<double>(i)) * spacing; }
};

// The points of the sum: `size` of them (a power of two), the first at or just below `start`.
struct SumWindow {
  double start = 0;
  std::size_t size = 0;
  double exponent_above = 0;  // d > 0 of the Chernoff bounds
  double exponent_below = 0;
};

// The law q(S) of the sum of `count` independent copies; or, size-biased, q(S) S / count, which is
// the law of the sum with the masses of one copy multiplied by its value. (Multiplying q would
// magnify its errors in the tail.)
LatticeSum SumOfCopies(const LatticeLaw& law, std::uint64_t count, const SumWindow& window,
                       bool size_biased);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_LATTICE_SUM_H_
