#include "sordino/accounting/internal/grid/discretise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "sordino/accounting/internal/contour/gauss_legendre.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// In units of SmoothLength(): six points are then exact to 1e-14.
constexpr double kCellPanel = 0.25;
// Losses within this share of a cell above a grid point are rounded down to it (kLower).
constexpr double kSliver = 1e-3;
constexpr double kMinStep = 1e-6;  // in units of Scale()

// Calls visit(x, weight) for a composite rule on [a, b].
template <typename Visit>
void Integrate(const LossDensity& density, double a, double b, Visit visit) {
  while (a < b) {
    double end = a + kCellPanel * density.SmoothLength(a);
    // No sliver at the end, and no standstill.
    if (!(end > a) || b - end < 0.1 * (end - a)) end = b;
    const double middle = 0.5 * (a + end);
    for (std::size_t k = 0; k < kLegendreNodes.size(); ++k) {
      visit(middle + 0.5 * (end - a) * kLegendreNodes[k], 0.5 * (end - a) * kLegendreWeights[k]);
    }
    a = end;
  }
}

// Accumulates tilted masses by grid index.
class Accumulator {
 public:
  Accumulator(const GridSpec& spec, std::int64_t first, std::int64_t last) : spec_(spec) {
    grid_.first = first;
    grid_.mass.assign(static_cast<std::size_t>(last - first + 1), 0.0);
  }
  double LossAt(std::int64_t i) const {
    return spec_.offset + static_cast<double>(i) * spec_.spacing;
  }
  // Adds P-mass e^log_mass at grid point i.
  void Add(std::int64_t i, double log_mass) {
    grid_.mass[static_cast<std::size_t>(i - grid_.first)] +=
        std::exp(log_mass + spec_.tilt * LossAt(i) - spec_.log_scale);
  }
  void AddTilted(std::int64_t i, double tilted_mass) {
    grid_.mass[static_cast<std::size_t>(i - grid_.first)] += tilted_mass;
  }
  GridMass Take() { return std::move(grid_); }

 private:
  const GridSpec& spec_;
  GridMass grid_;
};

std::int64_t FloorIndex(double loss, const GridSpec& spec) {
  const double t = (loss - spec.offset) / spec.spacing;
  // A loss that is a grid point up to rounding counts as one.
  const double nearest = std::round(t);
  if (std::abs(t - nearest) < 1e-12 * std::max(1.0, std::abs(nearest))) {
    return static_cast<std::int64_t>(nearest);
  }
  return static_cast<std::int64_t>(std::floor(t));
}

// Connect the dots for one loss: P-mass e^log_mass at `loss` inside [l_i, l_{i+1}].
void SplitMass(Accumulator& out, const GridSpec& spec, std::int64_t i, double loss,
               double log_mass) {
  const double low = out.LossAt(i);
  const double up = std::clamp(std::expm1(-(loss - low)) / std::expm1(-spec.spacing), 0.0, 1.0);
  if (up > 0) out.Add(i + 1, log_mass + std::log(up));
  if (up < 1) out.Add(i, log_mass + std::log1p(-up));
}

void ConnectTheDots(const DensityPiece& piece, const GridSpec& spec, Accumulator& out) {
  const LossDensity& d = *piece.density;
  const double log_weight = std::log(piece.weight);
  std::int64_t i = FloorIndex(d.Loss(piece.low_x), spec);
  const std::int64_t last = FloorIndex(d.Loss(piece.high_x), spec);
  double a = piece.low_x;
  for (; i <= last; ++i) {
    const double b =
        i == last ? piece.high_x : std::clamp(d.CoordinateOf(out.LossAt(i + 1)), a, piece.high_x);
    Integrate(d, a, b, [&](double x, double weight) {
      SplitMass(out, spec, i, d.Loss(x), d.LogDensity(x) + std::log(weight) + log_weight);
    });
    a = b;
  }
}

void DiscretiseUpper(const LossPair& pair, const GridSpec& spec, Accumulator& out) {
  for (const LossAtom& atom : pair.atoms) {
    if (!(atom.mass > 0)) continue;
    const std::int64_t i = FloorIndex(atom.loss, spec);
    if (std::abs(out.LossAt(i) - atom.loss) <= 1e-12 * spec.spacing) {
      out.Add(i, std::log(atom.mass));
    } else {
      SplitMass(out, spec, i, atom.loss, std::log(atom.mass));
    }
  }
  for (const DensityPiece& piece : pair.pieces) {
    if (piece.high_x > piece.low_x) ConnectTheDots(piece, spec, out);
  }
}

// Lower bounds by merging along a list of atoms, sorted by loss.
void MergeAtoms(std::vector<LossAtom> atoms, const GridSpec& spec, Accumulator& out) {
  std::sort(atoms.begin(), atoms.end(),
            [](const LossAtom& a, const LossAtom& b) { return a.loss < b.loss; });
  std::size_t j = 0;
  double left = atoms.empty() ? 0 : atoms[0].mass;  // of atom j
  while (j < atoms.size()) {
    const std::int64_t floor_index = FloorIndex(atoms[j].loss, spec);
    if (atoms[j].loss - out.LossAt(floor_index) <= kSliver * spec.spacing) {
      if (left > 0) out.Add(floor_index, std::log(left));
      if (++j < atoms.size()) left = atoms[j].mass;
      continue;
    }
    // Merge towards the next grid point: the deficit of what lies below it is balanced by what
    // lies above, at most two cells further.
    const std::int64_t target = floor_index + 1;
    const double goal = out.LossAt(target);
    double deficit = 0;
    double mass = 0;
    std::size_t k = j;
    double rest = left;
    while (k < atoms.size() && atoms[k].loss <= goal) {
      deficit += rest * std::expm1(goal - atoms[k].loss);
      mass += rest;
      if (++k < atoms.size()) rest = atoms[k].mass;
    }
    const std::size_t first_above = k;
    const double rest_above = rest;
    const double mass_below = mass;
    while (k < atoms.size() && deficit > 0 && atoms[k].loss < goal + 2 * spec.spacing) {
      const double gain = -std::expm1(goal - atoms[k].loss);
      const double take = std::min(rest, deficit / gain);
      deficit -= take * gain;
      mass += take;
      rest -= take;
      if (rest > 0) break;
      if (++k < atoms.size()) rest = atoms[k].mass;
    }
    if (deficit > 1e-16 * mass) {  // not balanced: round the lower part down
      if (mass_below > 0) out.Add(floor_index, std::log(mass_below));
      j = first_above;
      left = rest_above;
    } else {
      if (mass > 0) out.Add(target, std::log(mass));
      j = k;
      left = rest;
    }
  }
}

// The run that starts at x = a and is merged to grid point `target`; returns its end, or a itself
// when it cannot be balanced within two cells.
double MergeRun(const DensityPiece& piece, const GridSpec& spec, double a, double goal,
                double& tilted) {
  const LossDensity& d = *piece.density;
  const double reach = std::min(piece.high_x, d.CoordinateOf(goal + 2 * spec.spacing));
  const double exponent = spec.tilt * goal - spec.log_scale + std::log(piece.weight);
  double excess = 0;
  double mass = 0;
  const auto integrate = [&](double from, double to) {
    const double sign = to >= from ? 1 : -1;
    Integrate(d, std::min(from, to), std::max(from, to), [&](double x, double weight) {
      const double p = sign * weight * std::exp(d.LogDensity(x) + exponent);
      mass += p;
      excess -= p * std::expm1(goal - d.Loss(x));
    });
  };
  double end = std::clamp(d.CoordinateOf(2 * goal - d.Loss(a)), a, reach);
  integrate(a, end);
  // Newton. Losses are rounded relative to their size, which limits how exactly a run balances; the
  // merged loss is a grid point up to kMergeError cells and that rounding (charged in grid.cc).
  const auto tolerance = [&](double share) {
    return mass * (share * spec.spacing + 4e-16 * (1 + std::abs(goal)));
  };
  for (int i = 0; i < 8 && std::abs(excess) > tolerance(0.01 * kMergeError); ++i) {
    const double slope = -std::exp(d.LogDensity(end) + exponent) * std::expm1(goal - d.Loss(end));
    if (!(slope > 0)) return a;
    const double next = std::clamp(end - excess / slope, 0.5 * (a + end), reach);
    if (next == end) break;
    integrate(end, next);
    end = next;
  }
  if (excess < -tolerance(kMergeError) || !(end > a)) return a;
  tilted = mass;
  return end;
}

void MergeDensity(const DensityPiece& piece, const GridSpec& spec, Accumulator& out) {
  const LossDensity& d = *piece.density;
  const double log_weight = std::log(piece.weight);
  double a = piece.low_x;
  while (a < piece.high_x) {
    const double loss = d.Loss(a);
    const std::int64_t floor_index = FloorIndex(loss, spec);
    const double low = out.LossAt(floor_index);
    double end = a;
    if (loss - low <= kSliver * spec.spacing) {
      end = std::min(piece.high_x, d.CoordinateOf(low + 1.01 * kSliver * spec.spacing));
    } else {
      double tilted = 0;
      end = MergeRun(piece, spec, a, out.LossAt(floor_index + 1), tilted);
      if (end > a) {
        out.AddTilted(floor_index + 1, tilted);
        a = end;
        continue;
      }
      end = std::min(piece.high_x, d.CoordinateOf(out.LossAt(floor_index + 1)));
    }
    // Rounding of the coordinates must not stop the march; what it skips is rounded down too.
    end = std::min(piece.high_x, std::max(end, a + kMinStep * d.Scale()));
    Integrate(d, a, end, [&](double x, double weight) {
      out.Add(floor_index, d.LogDensity(x) + std::log(weight) + log_weight);
    });
    a = end;
  }
}

}  // namespace

void ChooseRange(LossPair& pair, double log_lost) {
  for (DensityPiece& piece : pair.pieces) {
    const LossDensity& d = *piece.density;
    const double log_weight = std::log(piece.weight);
    piece.low_x = std::isfinite(d.low()) ? d.low() : -d.Scale();
    piece.high_x = std::isfinite(d.high()) ? d.high() : d.Scale();
    if (!std::isfinite(d.high())) {
      while (std::log(d.MassAbove(piece.high_x)) + log_weight > log_lost) piece.high_x *= 1.05;
    }
    if (!std::isfinite(d.low())) {
      const auto lost = [&](double x) { return std::log(d.MassBelow(x)) + log_weight <= log_lost; };
      while (!lost(piece.low_x)) piece.low_x *= 1.05;
      // A mass far from zero leaves a long empty stretch, which would cost as much as the mass.
      double kept = piece.high_x;
      for (int i = 0; i < 12 && lost(piece.low_x + 0.25 * (kept - piece.low_x)); ++i) {
        const double middle = 0.5 * (piece.low_x + kept);
        (lost(middle) ? piece.low_x : kept) = middle;
      }
    }
    if (piece.clip_low > -1e300) {
      piece.low_x = std::max(piece.low_x, d.CoordinateOf(piece.clip_low));
    }
    if (piece.clip_high < 1e300) {
      piece.high_x = std::min(piece.high_x, d.CoordinateOf(piece.clip_high));
    }
  }
}

LossPair DensityOfGaussian(double mu) {
  using Parts = GaussianMixtureDensity::Parts;
  LossPair pair;
  pair.pieces.push_back(
      {std::make_shared<GaussianMixtureDensity>(1 / mu, Parts{{1.0, 1.0}}, Parts{{0.0, 1.0}})});
  return pair;
}

GridMass Discretise(const LossPair& pair, const GridSpec& spec, Bound bound) {
  double lowest = kInfinity;
  double highest = -kInfinity;
  for (const LossAtom& atom : pair.atoms) {
    lowest = std::min(lowest, atom.loss);
    highest = std::max(highest, atom.loss);
  }
  for (const DensityPiece& piece : pair.pieces) {
    if (!(piece.high_x > piece.low_x)) continue;
    lowest = std::min(lowest, piece.density->Loss(piece.low_x));
    highest = std::max(highest, piece.density->Loss(piece.high_x));
  }
  Accumulator out(spec, FloorIndex(lowest, spec) - 1, FloorIndex(highest, spec) + 4);
  double beyond = 0;
  if (bound == Bound::kUpper) {
    // What lies left of a range keeps its mass at the range's lowest loss (rounded up); what lies
    // right of it counts as an infinite loss.
    for (const DensityPiece& piece : pair.pieces) {
      if (!(piece.high_x > piece.low_x)) {
        // Clipped down to a part of its own tail.
        const LossDensity& d = *piece.density;
        beyond += piece.weight *
                  (piece.clip_low > -1e300 ? d.MassAbove(piece.high_x) : d.MassBelow(piece.low_x));
        continue;
      }
      // A range may also end before its clip.
      const double below = piece.weight * piece.density->MassBelow(piece.low_x);
      const bool starts_late =
          piece.clip_low < -1e300 || piece.density->CoordinateOf(piece.clip_low) < piece.low_x;
      if (starts_late && below > 0) {
        out.Add(FloorIndex(piece.density->Loss(piece.low_x), spec) + 1, std::log(below));
      }
      // A tail that underflows is not zero.
      if (piece.clip_high > 1e300 && std::isfinite(piece.density->high())) continue;
      if (piece.clip_high > 1e300 || piece.density->CoordinateOf(piece.clip_high) > piece.high_x) {
        beyond += piece.weight * std::max(piece.density->MassAbove(piece.high_x),
                                          std::numeric_limits<double>::min());
      }
    }
  }
  if (bound != Bound::kLower) {
    DiscretiseUpper(pair, spec, out);
  } else {
    MergeAtoms(pair.atoms, spec, out);
    for (const DensityPiece& piece : pair.pieces) MergeDensity(piece, spec, out);
  }
  GridMass result = out.Take();
  result.infinite_mass = pair.infinite_mass + beyond;
  return result;
}

double LogMomentOf(const GridMass& grid, const GridSpec& spec, double d) {
  double sum = 0;
  double weighted = 0;
  // Relative to the first loss that carries mass, so that the weights stay in range.
  const double reference =
      d > 0
          ? spec.offset + spec.spacing * static_cast<double>(grid.first + std::ssize(grid.mass) - 1)
          : spec.offset + spec.spacing * static_cast<double>(grid.first);
  const double ratio = std::exp(d * spec.spacing);
  double weight =
      std::exp(d * (spec.offset + spec.spacing * static_cast<double>(grid.first) - reference));
  for (const double m : grid.mass) {
    sum += m;
    weighted += m * weight;
    weight *= ratio;
    if (weight == 0) weight = std::numeric_limits<double>::min();
  }
  return std::log(weighted / sum) + d * reference + 1e-11;
}

double LossNodes::LogMoment(double c) const {
  double top = -kInfinity;
  for (std::size_t i = 0; i < loss.size(); ++i) top = std::max(top, log_mass[i] + c * loss[i]);
  double sum = 0;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    sum += std::exp(log_mass[i] + c * loss[i] - top);
  }
  return top + std::log(sum);
}

LossNodes::Moments LossNodes::Tilted(double c) const {
  const double scale = LogMoment(c);
  Moments m{0, 0};
  for (std::size_t i = 0; i < loss.size(); ++i) {
    m.mean += std::exp(log_mass[i] + c * loss[i] - scale) * loss[i];
  }
  for (std::size_t i = 0; i < loss.size(); ++i) {
    m.variance += std::exp(log_mass[i] + c * loss[i] - scale) * std::pow(loss[i] - m.mean, 2);
  }
  return m;
}

LossNodes SampleNodes(const LossPair& pair) {
  LossNodes nodes;
  for (const LossAtom& atom : pair.atoms) {
    if (!(atom.mass > 0)) continue;
    nodes.log_mass.push_back(std::log(atom.mass));
    nodes.loss.push_back(atom.loss);
  }
  for (const DensityPiece& piece : pair.pieces) {
    const LossDensity& d = *piece.density;
    Integrate(d, piece.low_x, piece.high_x, [&](double x, double weight) {
      nodes.log_mass.push_back(d.LogDensity(x) + std::log(weight * piece.weight));
      nodes.loss.push_back(d.Loss(x));
    });
  }
  return nodes;
}

}  // namespace sordino
