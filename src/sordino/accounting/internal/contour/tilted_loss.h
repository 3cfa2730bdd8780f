// The loss of one pair under the exponentially tilted measure dP_c ~ e^{cL} dP, as weighted nodes
// with certified errors. The building block of contour.h, where the bounds are derived.
#ifndef SORDINO_ACCOUNTING_INTERNAL_TILTED_LOSS_H_
#define SORDINO_ACCOUNTING_INTERNAL_TILTED_LOSS_H_

#include <complex>
#include <cstddef>
#include <optional>
#include <vector>

#include "sordino/accounting/internal/contour/mixture_table.h"
#include "sordino/accounting/loss_pair.h"

namespace sordino {

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

#endif  // SORDINO_ACCOUNTING_INTERNAL_TILTED_LOSS_H_
