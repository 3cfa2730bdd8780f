// The pairs of a composition, ready to be tilted for contour.h.
#ifndef SORDINO_ACCOUNTING_INTERNAL_CONTOUR_COMPOSITION_H_
#define SORDINO_ACCOUNTING_INTERNAL_CONTOUR_COMPOSITION_H_

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/contour/mixture_table.h"
#include "sordino/accounting/internal/contour/tilted_loss.h"

namespace sordino {

class ContourComposition {
 public:
  // Beyond this many pairs the tilt is chosen on a sample and tables are not kept.
  static constexpr std::size_t kManyPairs = 48;

  // False when a pair has no closed form, table or finite list of atoms. With a finite
  // log_lost_goal, mixtures are cut where together they lose at most that much mass.
  bool Build(std::span<const CountedPair> pairs, double log_lost_goal, double cut_width);

  // P-mass that the cuts took out, at most.
  double lost_mass() const { return lost_mass_; }
  double log_survival() const { return log_survival_; }
  bool HasDensity() const { return gaussian_mu2_ > 0 || !tables_.empty(); }
  bool IsLarge() const { return tables_.size() + atoms_.size() > kManyPairs; }
  double gaussian_mu2() const { return gaussian_mu2_; }

  // log E[e^{cL}]; approximate (a sample of the pairs) where only the choice of a tilt hangs on it.
  double ApproximateLogMoment(double c);

  // All parts tilted by c, good for frequencies up to max_frequency; false when not certified.
  // For each of the larger tilts also log E[e^{cL}], rounded up.
  bool Tilt(double c, double max_frequency, std::span<const double> larger_tilts,
            std::vector<TiltedLoss>& out, std::vector<double>& larger_moments);

 private:
  // A mixture, its table made when it is first asked for.
  struct Table {
    const GaussianMixtureDensity* mixture;
    double count;
    double log_lost = 0;
    double cut_width = 0;  // 0: no cut
    int refinement = 1;
    std::optional<MixtureTable> table = std::nullopt;

    MixtureTable& Get();
  };

  std::vector<Table> tables_;
  std::vector<std::pair<const std::vector<LossAtom>*, double>> atoms_;
  double gaussian_mu2_ = 0;
  double log_survival_ = 0;
  double lost_mass_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_CONTOUR_COMPOSITION_H_
