// Gaussian mixtures with losses that are measured from an offset, and their masses between
// coordinates: what loss_cells.h cuts.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SHIFTED_MIXTURE_H_
#define SORDINO_ACCOUNTING_INTERNAL_SHIFTED_MIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/accounting/loss_pair.h"

namespace sordino {

// Which side of the ratio is one Gaussian at zero. The other side has a part that did not move, so
// that the loss is bounded by the logarithm of its weight.
enum class MixtureForm : std::uint8_t { kRemove, kAdd, kOther };
MixtureForm FormOf(const GaussianMixtureDensity& density);

// A density whose losses are measured from an offset; it must outlive this.
class ShiftedMixture {
 public:
  ShiftedMixture(const GaussianMixtureDensity& density, bool with_offset);

  double offset() const { return offset_; }
  // The loss at x, less the offset.
  double At(double x) const;
  // Where the loss, less the offset, is t; `log_growth` is log(e^|t| - 1).
  double CoordinateOf(double t, double log_growth) const;

  const GaussianMixtureDensity& density() const { return density_; }
  MixtureForm form() const { return form_; }
  double hit() const { return hit_; }

 private:
  const GaussianMixtureDensity::Parts& Parts() const {
    return form_ == MixtureForm::kRemove ? density_.numerator() : density_.denominator();
  }

  const GaussianMixtureDensity& density_;
  MixtureForm form_;
  double hit_ = 0;
  double offset_ = 0;
  double shift_ = 0;     // where there is one besides zero
  double log_odds_ = 0;  // that the record is not in the batch
};

// The tail of the normal on the side of z that is smaller.
struct NormalTail {
  double mass;
  bool above;  // of z
};

// P-mass, Q-mass, and the loss of both where P is not zero.
struct MixtureShare {
  double p = 0;
  double q = 0;
  double loss = 0;
};

// Masses of a mixture between coordinates.
class MixtureMasses {
 public:
  MixtureMasses(const ShiftedMixture& mixture, double weight);

  // The tails at x, one for each shift.
  void At(double x, std::vector<NormalTail>& tails) const;
  // What lies between the coordinates of two lists of tails.
  MixtureShare Of(const std::vector<NormalTail>& a, const std::vector<NormalTail>& b) const;

 private:
  struct Part {
    double shift;
    double p = 0;
    double q = 0;
  };

  void Add(const GaussianMixtureDensity::Parts& parts, double Part::*side);

  const ShiftedMixture& mixture_;
  double weight_;
  std::vector<Part> parts_;
  std::size_t zero_ = 0;  // the part that has not moved
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SHIFTED_MIXTURE_H_
