// The loss of one pair under the exponentially tilted measure dP_c ~ e^{cL} dP, as weighted nodes
// with certified errors. The building block of contour.h, where the bounds are derived.
#ifndef SORDINO_ACCOUNTING_TILTED_LOSS_H_
#define SORDINO_ACCOUNTING_TILTED_LOSS_H_

#include <complex>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "sordino/accounting/loss_pair.h"

namespace sordino {

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

// One pair, `count` times, tilted by c.
class TiltedLoss {
 public:
  // From a continuous pair; nullopt when the quadrature cannot be certified on this table for
  // frequencies up to max_frequency. `strip` is the index of the strip to try first (0 to 10) and
  // becomes that of the one taken.
  static std::optional<TiltedLoss> FromTable(const MixtureTable& table, double c, double count,
                                             double max_frequency, std::size_t& strip);
  static TiltedLoss FromAtoms(const std::vector<LossAtom>& atoms, double c, double count);

  double count() const { return count_; }
  double log_moment() const { return log_moment_; }              // log E_P[e^{cL}]
  double log_moment_error() const { return log_moment_error_; }  // absolute
  double mean() const { return mean_; }
  double variance() const { return variance_; }
  std::size_t size() const { return weights_.size(); }

  // E_c[e^{iy(L - mean)}] for y = 0, step, 2 step, ...; out[k] for k < out.size(). The rotation
  // recurrence is several times faster and a little less precise.
  void Characteristic(double step, bool recurrence, std::vector<std::complex<double>>& out) const;
  // Bound on the error of Characteristic at frequency y.
  double CharacteristicError(double y, bool recurrence) const;
  // log of a bound on |E_c[e^{iy'L}]| for all y' >= y; decreasing in y. Zero without layers.
  double LogModulusBound(double y) const;

 private:
  struct Layer {
    double mass;
    double width;
  };
  void Centre(std::vector<double> losses);
  void BuildLayers(const MixtureTable& table, double c, double log_scale);
  void StackLayers(std::size_t peak, const std::vector<double>& widths,
                   std::vector<double>& height);

  double count_ = 1;
  double log_moment_ = 0;
  double log_moment_error_ = 0;
  double mean_ = 0;
  double variance_ = 0;
  double mean_deviation_ = 0;     // E|L - mean|
  double quadrature_error_ = 0;   // relative, at the largest frequency
  double exponent_rounding_ = 0;  // relative error of the weights
  std::vector<double> weights_;
  std::vector<double> offsets_;  // losses minus the mean
  std::vector<Layer> layers_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_TILTED_LOSS_H_
