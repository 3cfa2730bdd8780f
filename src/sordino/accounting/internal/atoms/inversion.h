// The Fourier inversion of one composition of atom lists at one tilt and one smoothing: the
// integral of smoothed_contour.h with bounds on its errors.
#ifndef SORDINO_ACCOUNTING_INTERNAL_INVERSION_H_
#define SORDINO_ACCOUNTING_INTERNAL_INVERSION_H_

#include <complex>
#include <cstddef>
#include <vector>

#include "sordino/accounting/internal/atoms/atom_composition.h"

namespace sordino {

// Tails, aliases and the cut of the integral are each pushed below e^-kInversionMargin of delta.
inline constexpr double kInversionMargin = 13;

class Inversion {
 public:
  // For a delta of about e^log_delta at about epsilon, with a smoothing of h. False where that
  // would take more than max_work multiplications.
  bool Make(AtomComposition& composition, double c, double h, double log_delta, double epsilon,
            double max_work);

  // About how many frequencies that takes; infinity where there is no answer.
  static double Nodes(const AtomComposition& composition, double c, double h, double log_delta,
                      double epsilon);

  // Multiplications, where a node costs as much as two hundred atoms.
  double Work(const AtomComposition& composition) const;
  // log of the bound on delta of the finite part: from above, or from below.
  double LogDelta(double epsilon) const;

 private:
  bool ChoosePeriod(const AtomComposition& composition, double log_delta, double epsilon);
  void Evaluate(const AtomComposition& composition, std::size_t nodes);

  double c_ = 0;
  double h_ = 0;
  bool lower_ = false;
  double log_moment_ = 0;
  double log_moment_error_ = 0;
  double larger_c_ = 0;
  double larger_log_moment_ = 0;
  double step_ = 0;
  double error_ = 0;
  double angle_error_ = 0;
  double tail_ = 0;
  std::vector<std::complex<double>> value_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_INVERSION_H_
