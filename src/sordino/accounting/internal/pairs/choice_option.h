// A composition as one option of a choice (adaptive_choice.h): its tilted losses on a circle.
#ifndef SORDINO_ACCOUNTING_INTERNAL_CHOICE_OPTION_H_
#define SORDINO_ACCOUNTING_INTERNAL_CHOICE_OPTION_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

// What is the same for all options.
struct ChoiceCircle {
  double spacing = 0;
  double tilt = 0;
  std::size_t points = 0;
  Bound bound = Bound::kUpper;

  std::size_t Place(std::int64_t index) const {
    const auto n = static_cast<std::int64_t>(points);
    return static_cast<std::size_t>(((index % n) + n) % n);
  }
};

class ChoiceOption {
 public:
  explicit ChoiceOption(const std::vector<CountedPair>& pairs);

  double Steps() const;
  // Before all that follows; false where nothing is left.
  bool ChooseRanges(double log_lost);
  double LogMoment(double c) const;
  double Variance(double c) const;  // of the tilted loss

  // Puts heavy atoms on grid points, and the low end of a density: under sparse sampling it is
  // almost an atom. The distance of two atoms, if there is one.
  std::optional<double> ChooseOffsets();

  // False where the losses take too many cells.
  bool Transform(const ChoiceCircle& circle);
  // After Transform: the log of the mean of e^{dL} under the tilted masses, at most.
  double CircleMoment(double d, double spacing) const;

  // The tilted masses over their sum, which is e^log_mass.
  const std::vector<std::complex<double>>& transform() const { return transform_; }
  double transform_error() const { return transform_error_; }  // at any frequency
  double log_mass() const { return log_mass_; }
  double log_mass_error() const { return log_mass_error_; }
  double infinite() const;  // mass at an infinite loss

 private:
  struct Step {
    LossPair pair;
    double count;
    GridSpec spec = {};
    LossNodes nodes = {};
    GridMass grid = {};
  };
  // Sums over steps at each frequency.
  struct Frequencies {
    std::vector<double> log_modulus;
    std::vector<double> log_largest;  // with its error
    std::vector<double> phase;
  };

  void Finish(const ChoiceCircle& circle, double offset, const Frequencies& sums);

  std::vector<Step> steps_;
  std::vector<std::complex<double>> transform_;
  double transform_error_ = 0;
  double log_mass_ = 0;
  double log_mass_error_ = 0;
  double log_survival_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_CHOICE_OPTION_H_
