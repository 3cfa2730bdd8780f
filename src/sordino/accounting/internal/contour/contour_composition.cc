#include "sordino/accounting/internal/contour/contour_composition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Of log E[e^{cL}] at the full resolution of a table that is certified at a tilt nearby; the
// quadrature is far better than that.
constexpr double kTableError = 1e-10;
constexpr int kMaxRefinement = 16;

// The cut of the given width beyond which P-mass of at most e^goal lies: smoothing by a Gaussian
// of that width turns it into a tail of N(shift, sigma^2 + width^2).
Cutoff ChooseCutoff(const GaussianMixtureDensity& mixture, double goal, double width) {
  const GaussianMixtureDensity& m = mixture;
  const double stretch = std::hypot(m.sigma(), width) / m.sigma();
  // MassAbove uses sigma; a tail of the wider Gaussian beyond x is one of sigma beyond x/stretch
  // for each component, up to the shift, which is moved outward to be safe.
  double low = 0;
  double high = m.max_numerator_shift() + 60 * m.sigma();
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (std::log(m.MassAbove(middle)) > goal ? low : high) = middle;
  }
  return {high * stretch, width};
}

}  // namespace

MixtureTable& ContourComposition::Table::Get() {
  if (!table) {
    std::optional<Cutoff> cutoff;
    if (cut_width > 0) cutoff = ChooseCutoff(*mixture, log_lost, cut_width);
    table.emplace(*mixture, refinement, cutoff);
  }
  return *table;
}

bool ContourComposition::Build(std::span<const CountedPair> pairs, double log_lost_goal,
                               double cut_width) {
  for (const CountedPair& counted : pairs) {
    const LossPair& pair = counted.pair;
    const auto count = static_cast<double>(counted.count);
    if (pair.gaussian_mu > 0) gaussian_mu2_ += count * pair.gaussian_mu * pair.gaussian_mu;
    if (!pair.pieces.empty()) {
      const DensityPiece& piece = pair.pieces.front();
      const auto* mixture = dynamic_cast<const GaussianMixtureDensity*>(piece.density.get());
      const bool whole = piece.weight == 1 && piece.clip_low < -1e300 && piece.clip_high > 1e300;
      if (mixture == nullptr || !whole || pair.pieces.size() > 1 || !pair.atoms.empty()) {
        return false;
      }
      Table table{mixture, count};
      if (std::isfinite(log_lost_goal)) {
        table.log_lost = log_lost_goal - std::log(static_cast<double>(pairs.size()) * count);
        table.cut_width = cut_width * mixture->sigma();
        // A mass that underflows is not zero.
        lost_mass_ +=
            count * std::max(std::exp(table.log_lost), std::numeric_limits<double>::min());
      }
      tables_.push_back(std::move(table));
    } else if (!pair.atoms.empty()) {
      atoms_.push_back({&pair.atoms, count});
    }
    if (pair.infinite_mass > 0) log_survival_ += count * std::log1p(-pair.infinite_mass);
  }
  return true;
}

double ContourComposition::ApproximateLogMoment(double c) {
  double sum = 0.5 * gaussian_mu2_ * c * (c + 1);
  const std::size_t stride = std::max<std::size_t>(1, tables_.size() / 12);
  double sampled = 0;
  double sampled_count = 0;
  double all_count = 0;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    all_count += tables_[i].count;
    if (i % stride != 0) continue;
    sampled += tables_[i].count * tables_[i].Get().LogMoment(c);
    sampled_count += tables_[i].count;
  }
  if (sampled_count > 0) sum += sampled * (all_count / sampled_count);
  for (const auto& [atoms, count] : atoms_) {
    sum += count * TiltedLoss::FromAtoms(*atoms, c, count).log_moment();
  }
  return sum;
}

bool ContourComposition::Tilt(double c, double max_frequency, std::span<const double> larger_tilts,
                              std::vector<TiltedLoss>& out, std::vector<double>& larger_moments) {
  out.clear();
  larger_moments.clear();
  for (const double c2 : larger_tilts) {
    double sum = 0.5 * gaussian_mu2_ * c2 * (c2 + 1);
    for (const auto& [atoms, count] : atoms_) {
      sum += count * (TiltedLoss::FromAtoms(*atoms, c2, count).log_moment() + kTableError);
    }
    larger_moments.push_back(sum);
  }
  const bool keep = tables_.size() <= kManyPairs;
  std::size_t strip = 4;
  for (Table& entry : tables_) {
    std::optional<TiltedLoss> tilted;
    while (true) {
      MixtureTable& table = entry.Get();
      if (!table.Cover(c)) return false;
      tilted = TiltedLoss::FromTable(table, c, entry.count, max_frequency, strip);
      if (tilted || entry.refinement >= kMaxRefinement) break;
      entry.refinement *= 2;
      entry.table.reset();
    }
    if (!tilted) return false;
    out.push_back(std::move(*tilted));
    for (std::size_t i = 0; i < larger_tilts.size(); ++i) {
      larger_moments[i] += entry.count * (entry.Get().LogMoment(larger_tilts[i]) + kTableError);
    }
    if (!keep) entry.table.reset();
  }
  for (double& moment : larger_moments) moment += 1e-12 * std::abs(moment);
  for (const auto& [atoms, count] : atoms_) {
    out.push_back(TiltedLoss::FromAtoms(*atoms, c, count));
  }
  return true;
}

}  // namespace sordino
