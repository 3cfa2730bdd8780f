// A composition as one option of a choice (adaptive_choice.h): its tilted losses on a circle.
#ifndef SORDINO_ACCOUNTING_INTERNAL_CHOICE_OPTION_H_
#define SORDINO_ACCOUNTING_INTERNAL_CHOICE_OPTION_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/circle_product.h"

namespace sordino {

class ChoiceOption {
 public:
  explicit ChoiceOption(const std::vector<CountedPair>& pairs)
      : steps_(GridStepsOf(pairs, log_survival_)) {}

  double Steps() const;
  // Before all that follows; false where nothing is left.
  bool ChooseRanges(double log_lost) { return sordino::ChooseRanges(steps_, log_lost); }
  double LogMoment(double c) const { return LogMomentOf(steps_, c); }
  double Variance(double c) const { return VarianceOf(steps_, c); }  // of the tilted loss

  // Puts heavy atoms on grid points. The distance of two of a pair, if there is one.
  std::optional<double> ChooseOffsets();

  // False where the losses take too many cells.
  bool Transform(const GridCircle& circle);
  // After Transform: the log of the mean of e^{dL} under the tilted masses, at most.
  double CircleMoment(double d, double spacing) const;

  // The tilted masses over their sum, which is e^log_mass.
  const std::vector<std::complex<double>>& transform() const { return transform_; }
  double transform_error() const { return transform_error_; }  // at any frequency
  double log_mass() const { return log_mass_; }
  double log_mass_error() const { return log_mass_error_; }
  double infinite() const;  // mass at an infinite loss

 private:
  void Finish(const GridCircle& circle, const CircleProduct& product);

  double log_survival_ = 0;
  std::vector<GridStep> steps_;
  std::vector<std::complex<double>> transform_;
  double transform_error_ = 0;
  double log_mass_ = 0;
  double log_mass_error_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_CHOICE_OPTION_H_
