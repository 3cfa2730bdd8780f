// A Gaussian mixture pair at equally spaced values of the noise coordinate: what tilted_loss.h
// builds its quadratures on.
#ifndef SORDINO_ACCOUNTING_INTERNAL_MIXTURE_TABLE_H_
#define SORDINO_ACCOUNTING_INTERNAL_MIXTURE_TABLE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "sordino/accounting/loss_pair.h"

namespace sordino {

// Nodes whose weight is below e^-kDroppedWeight of the largest are left out; their total is
// charged.
inline constexpr double kDroppedWeight = 60;

// A smooth cut of the noise coordinate: P is multiplied by chi(x) = Phi((position - x) / width).
// Rare large values of x dominate the moments E[e^{cL}] of a sparsely sampled mechanism long
// before they matter for delta; taking them out (their mass is charged to delta) lets the tilt
// reach its best value.
struct Cutoff {
  double position;
  double width;
};

// Values of a Gaussian mixture pair at equally spaced x, shared by all tilts.
class MixtureTable {
 public:
  MixtureTable(const GaussianMixtureDensity& density, int refinement,
               std::optional<Cutoff> cutoff = std::nullopt);

  // log E_P[e^{cL}] by the trapezoidal rule on the table's spacing.
  double LogMoment(double c);
  // Extends the table to the range that the tilt c needs; false when that is too large.
  bool Cover(double c);

  const GaussianMixtureDensity& density() const { return *density_; }
  std::size_t size() const { return log_numerator_.size(); }
  double X(std::size_t i) const { return start_ + static_cast<double>(i) * spacing_; }
  double spacing() const { return spacing_; }
  // log of chi(x) num(x)^{c+1} den(x)^{-c}.
  double LogWeight(std::size_t i, double c) const {
    return (c + 1) * log_numerator_[i] - c * log_denominator_[i] + log_cut_[i];
  }
  double Loss(std::size_t i) const { return log_numerator_[i] - log_denominator_[i]; }
  double NumeratorHit(std::size_t i) const { return numerator_hit_[i]; }
  double DenominatorHit(std::size_t i) const { return denominator_hit_[i]; }
  // The range of d/dx log(tilted density) and the largest dL/dx on the cell [X(i), X(i+1)].
  double LowestSlope(std::size_t i, double c) const;
  double HighestSlope(std::size_t i, double c) const;
  double HighestLossSlope(std::size_t i) const;
  // A lower bound of Loss(i + 1) - Loss(i) that holds also where the difference drowns in
  // rounding.
  double LossWidth(std::size_t i) const;
  const std::optional<Cutoff>& cutoff() const { return cutoff_; }
  double LogGaussian(std::size_t i) const;  // log of the N(0, sigma^2) density

 private:
  const GaussianMixtureDensity* density_;
  std::optional<Cutoff> cutoff_;
  double start_;
  double spacing_;
  double log_normaliser_;
  std::vector<double> log_numerator_;
  std::vector<double> log_denominator_;
  std::vector<double> numerator_hit_;
  std::vector<double> denominator_hit_;
  std::vector<double> numerator_slope_;
  std::vector<double> denominator_slope_;
  std::vector<double> log_cut_;
  std::vector<double> cut_slope_;  // -d/dx log chi, increasing
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_MIXTURE_TABLE_H_
