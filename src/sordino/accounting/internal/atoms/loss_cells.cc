#include "sordino/accounting/internal/atoms/loss_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sordino/accounting/internal/atoms/atom_list.h"
#include "sordino/accounting/internal/atoms/shifted_mixture.h"
#include "sordino/accounting/internal/atoms/similar_pairs.h"
#include "sordino/accounting/internal/grid/discretise.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using Mixture = GaussianMixtureDensity;

// Differences of erfc below this are taken from a quadrature instead.
constexpr double kMinTail = 1e-280;

// A difference of two tails at z, relative: the roundings of z enter with z^2, which is about -2
// log_lost at most, and a cell has some tenth of the mass of the tail that it belongs to.
constexpr double kTailError = 2e-15;

const Mixture* MixtureOf(const DensityPiece& piece) {
  return dynamic_cast<const Mixture*>(piece.density.get());
}

// Two outcomes as one.
void Merge(double& mass, double& loss, const LossCell& more) {
  if (!(more.mass > 0)) return;
  if (mass > 0) {
    const double total = mass + more.mass;
    loss -= std::log1p(more.mass * std::expm1(loss - more.loss) / total);
    mass = total;
  } else {
    mass = more.mass;
    loss = more.loss;
  }
}

// Where the density is not zero as a double: below e^-746 it is, and it falls beyond all shifts,
// which are none of them negative. A cell may reach a thousand times as far, for a pair of less
// noise in its group.
std::pair<double, double> Support(const Mixture& density) {
  constexpr double kLogZero = 746;
  const double reach =
      density.sigma() * std::sqrt(2 * (kLogZero + std::max(0.0, -std::log(density.sigma()))));
  return {-reach, density.max_numerator_shift() + reach};
}

bool IsClippedLow(const DensityPiece& piece) { return piece.clip_low > -1e300; }
bool IsClippedHigh(const DensityPiece& piece) { return piece.clip_high < 1e300; }

// log(e^|t| - 1).
double LogGrowth(double t) {
  const double size = std::abs(t);
  return size < 30 ? std::log(std::expm1(size)) : size + std::log1p(-std::exp(-size));
}

class Cutter {
 public:
  explicit Cutter(const std::vector<double>& places) : places_(places) {
    for (const double t : places) log_growth_.push_back(LogGrowth(t));
  }

  LossCells Cut(const CountedPair& counted, bool with_offset) const {
    const LossPair& pair = counted.pair;
    LossCells out;
    out.count = static_cast<double>(counted.count);
    out.mass.assign(places_.size() - 1, 0);
    out.loss.assign(places_.size() - 1, 0);
    out.infinite = pair.infinite_mass;
    out.missing_p = pair.missing_p;
    out.absent_q = pair.absent_q;
    out.q_rounding = pair.q_rounding;
    for (const DensityPiece& piece : pair.pieces) {
      const ShiftedMixture mixture(*MixtureOf(piece), with_offset);
      out.offset = mixture.offset();
      AddPiece(piece, mixture, out);
    }
    for (const LossAtom& atom : pair.atoms) AddAtom(atom, out);
    return out;
  }

 private:
  void AddAtom(const LossAtom& atom, LossCells& out) const {
    if (!(atom.mass > 0)) return;
    const double t = atom.loss - out.offset;
    if (t < places_.front()) {
      out.low_p += atom.mass;
      out.low_q += atom.mass * std::exp(-atom.loss);
    } else if (t > places_.back()) {
      out.high_p += atom.mass;
      out.high_q += atom.mass * std::exp(-atom.loss);
    } else {
      const auto above = std::upper_bound(places_.begin(), places_.end() - 1, t);
      const auto cell = static_cast<std::size_t>(above - places_.begin()) - 1;
      Merge(out.mass[cell], out.loss[cell], {atom.mass, t});
    }
  }

  void AddPiece(const DensityPiece& piece, const ShiftedMixture& mixture, LossCells& out) const {
    const Mixture& density = mixture.density();
    const double first = IsClippedLow(piece) ? density.CoordinateOf(piece.clip_low) : -kInfinity;
    const double last = IsClippedHigh(piece) ? density.CoordinateOf(piece.clip_high) : kInfinity;
    if (!(piece.weight > 0) || !(last > first)) return;
    const MixtureMasses masses(mixture, piece.weight);
    const auto [support_low, support_high] = Support(density);
    double from = first;
    std::vector<NormalTail> at_from;
    std::vector<NormalTail> at_to;
    masses.At(from, at_from);
    for (std::size_t k = 0; k <= places_.size(); ++k) {
      // k - 1 is the cell; the tails lie before the first and after the last place.
      double to = last;
      if (k < places_.size()) {
        to = std::clamp(mixture.CoordinateOf(places_[k], log_growth_[k]), from, last);
      }
      if (!(to > from)) continue;
      masses.At(to, at_to);
      const MixtureShare share = masses.Of(at_from, at_to);
      if (k == 0) {
        out.low_p += share.p;
        out.low_q += share.q;
      } else if (k == places_.size()) {
        out.high_p += std::max(share.p, std::numeric_limits<double>::min());
        out.high_q += share.q;
      } else if (share.q > kMinTail) {
        Merge(out.mass[k - 1], out.loss[k - 1], {share.p, share.loss});
      } else {
        const double a = std::max(from, support_low);
        const double b = std::min(to, support_high);
        if (b > a) {
          LossCell cell = IntegrateCell(density, a, b);
          cell.mass *= piece.weight;
          cell.loss -= out.offset;
          Merge(out.mass[k - 1], out.loss[k - 1], cell);
        }
      }
      from = to;
      std::swap(at_from, at_to);
    }
  }

  const std::vector<double>& places_;
  std::vector<double> log_growth_;
};

// Whether losses are measured from an offset: a single density, and nothing besides.
bool HasOffset(const LossPair& pair) { return pair.pieces.size() == 1 && pair.atoms.empty(); }

// The places of one piece of one pair, at equal steps of its coordinate, from and to losses that
// other pairs of the group need.
struct PieceRange {
  double low_t = kInfinity;
  double high_t = -kInfinity;
};

// Places at equal steps of the coordinate, few of them where the record hardly changes the ratio.
std::vector<double> EqualSteps(const ShiftedMixture& mixture, double a, double b,
                               std::size_t steps) {
  constexpr double kHardly = -3;  // log of the ratio
  std::vector<double> places;
  double middle = a;
  std::size_t below = 0;
  if (mixture.form() != MixtureForm::kOther) {
    const double t = std::exp(kHardly) * mixture.hit() / (1 - mixture.hit());
    const double x = mixture.form() == MixtureForm::kRemove
                         ? mixture.CoordinateOf(t, LogGrowth(t))
                         : mixture.CoordinateOf(-t, LogGrowth(t));
    middle = std::clamp(x, a, b);
    const std::size_t few = steps / 8;
    below = mixture.form() == MixtureForm::kRemove ? few : steps - few;
  }
  for (std::size_t i = 0; i < below; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(below);
    places.push_back(mixture.At(a + (middle - a) * share));
  }
  for (std::size_t i = 0; i <= steps - below; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps - below);
    places.push_back(mixture.At(middle + (b - middle) * share));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Adds to places in rising order those that are not much closer to one of them than to each other:
// the mass of a tiny cell would be a difference of nearly equal numbers.
void AddApart(const std::vector<double>& rising, std::vector<double>& places) {
  constexpr double kMinShare = 0.1;
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const double before = i > 0 ? rising[i] - rising[i - 1] : kInfinity;
    const double after = i + 1 < rising.size() ? rising[i + 1] - rising[i] : kInfinity;
    const double least = kMinShare * std::min(before, after);
    const auto above = std::lower_bound(places.begin(), places.end(), rising[i]);
    if (above != places.end() && *above - rising[i] <= least) continue;
    if (above != places.begin() && rising[i] - *(above - 1) <= least) continue;
    places.insert(above, rising[i]);
  }
}

// Where losses matter: about e^{tilt t} each, up to `focus`, and as much beyond it.
struct LossWeight {
  double focus;
  double tilt;
};
// About the slope of log delta over epsilon, times epsilon, over the log of the mass that is lost.
constexpr double kTiltShare = 0.28;

// Places between two coordinates of the first reference such that the errors of the cells, about
// mass times the square of the width times the weight, are equal: the smallest sum for as many
// cells.
std::vector<double> BalancedPlaces(std::span<const CountedPair* const> references,
                                   std::size_t piece, std::pair<double, double> ends,
                                   std::size_t steps, const LossWeight& weight) {
  constexpr std::size_t kFine = 1024;
  std::vector<ShiftedMixture> mixtures;
  for (const CountedPair* reference : references) {
    mixtures.emplace_back(*MixtureOf(reference->pair.pieces[piece]), HasOffset(reference->pair));
  }
  const double step = (ends.second - ends.first) / kFine;
  std::vector<double> fine(kFine + 1);
  for (std::size_t i = 0; i <= kFine; ++i) {
    fine[i] = mixtures.front().At(ends.first + step * static_cast<double>(i));
  }
  std::vector<double> total(kFine + 1, 0);  // of the cube roots of the errors of fine cells
  for (std::size_t i = 0; i < kFine; ++i) {
    const double middle = 0.5 * (fine[i] + fine[i + 1]);
    const double width = std::max(0.0, fine[i + 1] - fine[i]);
    double log_density = -kInfinity;
    for (const ShiftedMixture& mixture : mixtures) {
      const double x = mixture.CoordinateOf(middle, LogGrowth(middle));
      log_density = std::max(log_density, mixture.density().LogDensity(x));
    }
    const double log_weight = weight.tilt * std::min(middle, weight.focus);
    total[i + 1] =
        total[i] + std::cbrt(step * width * width) * std::exp((log_density + log_weight) / 3);
  }
  std::vector<double> places;
  std::size_t at = 0;
  for (std::size_t k = 0; k <= steps; ++k) {
    const double wanted = total[kFine] * static_cast<double>(k) / static_cast<double>(steps);
    while (at + 1 < kFine && total[at + 1] < wanted) ++at;
    const double rise = total[at + 1] - total[at];
    const double share = rise > 0 ? std::clamp((wanted - total[at]) / rise, 0.0, 1.0) : 0;
    places.push_back(fine[at] + share * (fine[at + 1] - fine[at]));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

std::vector<double> ChoosePlaces(std::span<const CountedPair* const> references, double log_lost,
                                 std::size_t cells, double focus) {
  const std::size_t pieces = references.front()->pair.pieces.size();
  const bool with_offset = HasOffset(references.front()->pair);
  std::vector<PieceRange> ranges(pieces);
  std::vector<double> places;  // of atoms, and of ends of pieces
  for (const CountedPair* reference : references) {
    LossPair ranged = reference->pair;
    ChooseRange(ranged, log_lost);
    for (std::size_t j = 0; j < pieces; ++j) {
      const DensityPiece& piece = ranged.pieces[j];
      if (!(piece.high_x > piece.low_x)) continue;
      const ShiftedMixture mixture(*MixtureOf(piece), with_offset);
      ranges[j].low_t = std::min(ranges[j].low_t, mixture.At(piece.low_x));
      ranges[j].high_t = std::max(ranges[j].high_t, mixture.At(piece.high_x));
      if (IsClippedLow(piece)) places.push_back(piece.clip_low - mixture.offset());
      if (IsClippedHigh(piece)) places.push_back(piece.clip_high - mixture.offset());
    }
    for (const LossAtom& atom : ranged.atoms) places.push_back(atom.loss);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (std::size_t j = 0; j < pieces; ++j) {
    const DensityPiece& piece = references.front()->pair.pieces[j];
    if (!(ranges[j].high_t > ranges[j].low_t)) continue;
    const ShiftedMixture mixture(*MixtureOf(piece), with_offset);
    const double a = mixture.CoordinateOf(ranges[j].low_t, LogGrowth(ranges[j].low_t));
    const double b = mixture.CoordinateOf(ranges[j].high_t, LogGrowth(ranges[j].high_t));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const std::size_t steps = std::max<std::size_t>(8, cells / pieces / 2);
    if (focus > 0) {
      const std::size_t even = 2 * steps / 5;
      const double tilt = kTiltShare * -log_lost / focus;
      AddApart(BalancedPlaces(references, j, {a, b}, 2 * steps - even, {focus, tilt}), places);
      AddApart(EqualSteps(mixture, a, b, even), places);
      continue;
    }
    AddApart(EqualSteps(mixture, a, b, steps), places);
    // The others at equal steps of the loss.
    std::vector<double> equal;
    for (std::size_t i = 0; i <= steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(steps);
      equal.push_back(ranges[j].low_t + share * (ranges[j].high_t - ranges[j].low_t));
    }
    AddApart(equal, places);
  }
  // Pairs whose range is empty: any cell will do.
  if (places.empty()) places.push_back(0);
  if (places.size() < 2) places.push_back(places.back() + 1);
  return places;
}

// Neighbours have pieces of the same form, about the same chance of a hit and about the same noise.
constexpr std::size_t kHit = 0;
constexpr std::size_t kSigma = 1;
constexpr GroupLimits kCellGroups = {{0.5, 0.12}, 32, 2000};

SimilarPair KeyOf(const CountedPair& counted) {
  const LossPair& pair = counted.pair;
  SimilarPair key{{static_cast<double>(pair.atoms.size())}, {}, &counted};
  for (const DensityPiece& piece : pair.pieces) {
    const Mixture* mixture = MixtureOf(piece);
    key.form.push_back(static_cast<double>(FormOf(*mixture)));
    key.form.push_back(static_cast<double>(mixture->numerator().size()));
    key.form.push_back(mixture->max_numerator_shift() + mixture->max_denominator_shift());
    key.form.push_back((IsClippedLow(piece) ? 1 : 0) + (IsClippedHigh(piece) ? 2 : 0));
  }
  const Mixture& first = *MixtureOf(pair.pieces.front());
  key.key[kHit] = std::log(first.HitProbability());
  key.key[kSigma] = std::log(first.sigma());
  return key;
}

CellGroup CutGroup(const std::vector<SimilarPair>& pairs, double log_lost, std::size_t cells,
                   double focus) {
  std::vector<const CountedPair*> references;
  for (const std::size_t number : {kSigma, kHit}) {
    const auto [low, high] = std::minmax_element(
        pairs.begin(), pairs.end(),
        [&](const SimilarPair& a, const SimilarPair& b) { return a.key[number] < b.key[number]; });
    references.push_back(low->pair);
    references.push_back(high->pair);
  }
  CellGroup group;
  group.mass_error = kTailError * (50 - log_lost);
  group.places = ChoosePlaces(references, log_lost, cells, focus);
  const bool with_offset = HasOffset(pairs.front().pair->pair);
  const Cutter cutter(group.places);
  for (const SimilarPair& one : pairs) group.pairs.push_back(cutter.Cut(*one.pair, with_offset));
  return group;
}

}  // namespace

bool CanBeCut(const LossPair& pair) {
  // Every atom is a place at which all densities of its group are cut.
  constexpr std::size_t kMostAtoms = 64;
  return !pair.pieces.empty() && pair.atoms.size() <= kMostAtoms &&
         std::all_of(pair.pieces.begin(), pair.pieces.end(),
                     [](const DensityPiece& piece) { return MixtureOf(piece) != nullptr; });
}

std::vector<CellGroup> CutIntoCells(std::span<const CountedPair* const> pairs, double log_lost,
                                    std::size_t cells, double focus) {
  std::vector<SimilarPair> keyed;
  keyed.reserve(pairs.size());
  for (const CountedPair* pair : pairs) keyed.push_back(KeyOf(*pair));
  std::vector<CellGroup> groups;
  for (const std::vector<SimilarPair>& group : GroupSimilarPairs(std::move(keyed), kCellGroups)) {
    groups.push_back(CutGroup(group, log_lost, cells, focus));
  }
  return groups;
}

}  // namespace sordino
