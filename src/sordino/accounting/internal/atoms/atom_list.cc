#include "sordino/accounting/internal/atoms/atom_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sordino/accounting/internal/contour/gauss_legendre.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Gauss-Legendre with eight points. On a cell of a third of the smooth length its error is below
// 1e-15 relative, up to nine standard deviations from the centre of the noise.
constexpr double kAtomPanel = 0.33;
// Lists of so few atoms keep their tails.
constexpr std::size_t kFewAtoms = 16;

// Atoms in any order, some of them at the same loss.
class ListBuilder {
 public:
  explicit ListBuilder(Bound bound) : bound_(bound) {}

  void Add(double loss, double mass) {
    if (mass > 0) atoms_.push_back({loss, mass});
  }
  void AddCell(const LossCell& cell, double low, double high) {
    if (bound_ == Bound::kLower || !(high > low)) {
      Add(std::clamp(cell.loss, low, high), cell.mass);
      return;
    }
    const double up = std::clamp(std::expm1(low - cell.loss) / std::expm1(low - high), 0.0, 1.0);
    Add(low, cell.mass * (1 - up));
    Add(high, cell.mass * up);
  }
  // A tail: its masses, and the end of it that the list still has.
  void AddLowTail(double p, double q, double lowest) {
    if (bound_ == Bound::kLower) {
      list_.absent_p += p;
      list_.absent_q += q;
      return;
    }
    Add(lowest, p);
    list_.absent_q += q - p * std::exp(-lowest);
  }
  void AddHighTail(double p, double q) {
    list_.absent_p += p;
    list_.absent_q += q;
    if (bound_ != Bound::kLower) list_.infinite += p;
  }

  AtomList Take(const LossPair& pair) {
    list_.absent_p += pair.infinite_mass + pair.missing_p;
    list_.infinite += pair.infinite_mass;
    list_.absent_q += pair.absent_q;
    list_.q_rounding = pair.q_rounding;
    std::sort(atoms_.begin(), atoms_.end(),
              [](const LossAtom& a, const LossAtom& b) { return a.loss < b.loss; });
    for (const LossAtom& atom : atoms_) {
      if (!list_.loss.empty() && list_.loss.back() == atom.loss) {
        list_.mass.back() += atom.mass;
      } else {
        list_.loss.push_back(atom.loss);
        list_.mass.push_back(atom.mass);
      }
    }
    return std::move(list_);
  }

 private:
  Bound bound_;
  std::vector<LossAtom> atoms_;
  AtomList list_;
};

void AddPiece(const DensityPiece& piece, std::size_t cells, ListBuilder& out) {
  const LossDensity& d = *piece.density;
  const double a = piece.low_x;
  const double b = piece.high_x;
  const bool clipped_low = piece.clip_low > -1e300;
  const bool clipped_high = piece.clip_high < 1e300;
  const double w = piece.weight;
  if (!(b > a)) {
    // Clipped down to a part of its own tail.
    if (clipped_low && clipped_high) {
      const double start = d.CoordinateOf(piece.clip_low);
      const double end = d.CoordinateOf(piece.clip_high);
      out.AddHighTail(w * std::max(0.0, d.MassAbove(start) - d.MassAbove(end)),
                      w * std::max(0.0, d.OtherMassAbove(start) - d.OtherMassAbove(end)));
    } else if (clipped_low) {
      out.AddHighTail(w * d.MassAbove(b), w * d.OtherMassAbove(b));
    } else {
      out.AddLowTail(w * d.MassBelow(a), w * d.OtherMassBelow(a), piece.clip_high);
    }
    return;
  }
  double low = clipped_low ? std::max(piece.clip_low, d.Loss(a)) : d.Loss(a);
  if (!clipped_low) out.AddLowTail(w * d.MassBelow(a), w * d.OtherMassBelow(a), low);
  // A range may end before the clip.
  if (const double end = clipped_low ? d.CoordinateOf(piece.clip_low) : a; end < a) {
    out.AddLowTail(w * std::max(0.0, d.MassBelow(a) - d.MassBelow(end)),
                   w * std::max(0.0, d.OtherMassBelow(a) - d.OtherMassBelow(end)), low);
  }
  if (const double end = clipped_high ? d.CoordinateOf(piece.clip_high) : b; end > b) {
    out.AddHighTail(w * std::max(0.0, d.MassAbove(b) - d.MassAbove(end)),
                    w * std::max(0.0, d.OtherMassAbove(b) - d.OtherMassAbove(end)));
  }
  // A tail of an endless coordinate that underflows is not zero.
  const double least = std::isfinite(d.high()) ? 0 : std::numeric_limits<double>::min();
  if (!clipped_high) out.AddHighTail(w * std::max(d.MassAbove(b), least), w * d.OtherMassAbove(b));
  const double step = (b - a) / static_cast<double>(cells);
  double from = a;
  for (std::size_t i = 0; i < cells; ++i) {
    const double to = i + 1 == cells ? b : a + step * static_cast<double>(i + 1);
    LossCell cell = IntegrateCell(d, from, to);
    cell.mass *= w;
    const double high = d.Loss(to);
    if (high >= low) out.AddCell(cell, low, high);
    from = to;
    low = std::max(low, high);
  }
}

// The first atom whose loss is not below zero, but for rounding.
std::size_t FirstFromZero(const std::vector<LossAtom>& rising) {
  if (rising.empty()) return 0;
  const double least = ZeroLoss(rising.front().loss, rising.back().loss);
  const auto found = std::find_if(rising.begin(), rising.end(),
                                  [&](const LossAtom& atom) { return atom.loss >= least; });
  return static_cast<std::size_t>(found - rising.begin());
}

std::vector<LossAtom> InRisingOrder(std::vector<LossAtom> atoms) {
  std::erase_if(atoms, [](const LossAtom& atom) { return !(atom.mass > 0); });
  std::sort(atoms.begin(), atoms.end(),
            [](const LossAtom& a, const LossAtom& b) { return a.loss < b.loss; });
  return atoms;
}

// What is left of atoms in rising order without tails of P-mass e^log_lost each.
struct KeptAtoms {
  std::size_t first = 0;
  std::size_t last = 0;
};

KeptAtoms WithoutTails(const std::vector<LossAtom>& rising, double log_lost) {
  KeptAtoms kept{0, rising.size()};
  if (rising.size() <= kFewAtoms) return kept;
  const double lost = std::exp(log_lost);
  for (double p = 0; kept.last > 1 && p + rising[kept.last - 1].mass <= lost;) {
    p += rising[--kept.last].mass;
  }
  for (double p = 0; kept.first + 1 < kept.last && p + rising[kept.first].mass <= lost;) {
    p += rising[kept.first++].mass;
  }
  return kept;
}

std::size_t AtomsOfCell(const KeptAtoms& kept, std::size_t cells) {
  const std::size_t left = kept.last - kept.first;
  return left <= 4 * cells ? 1 : (left + cells - 1) / cells;
}

// P-mass and Q-mass of some atoms.
std::pair<double, double> MassesOf(const std::vector<LossAtom>& atoms, std::size_t first,
                                   std::size_t last) {
  std::pair<double, double> masses{0, 0};
  for (std::size_t i = first; i < last; ++i) {
    masses.first += atoms[i].mass;
    masses.second += atoms[i].mass * std::exp(-atoms[i].loss);
  }
  return masses;
}

// `group` neighbours together in a cell.
void AddAtoms(const std::vector<LossAtom>& rising, const KeptAtoms& kept, std::size_t group,
              ListBuilder& out) {
  if (const auto [p, q] = MassesOf(rising, kept.last, rising.size()); p > 0) out.AddHighTail(p, q);
  if (const auto [p, q] = MassesOf(rising, 0, kept.first); p > 0) {
    out.AddLowTail(p, q, rising[kept.first].loss);
  }
  // Counted from a loss of zero, so that neighbouring pairs are grouped alike.
  const std::size_t zero = FirstFromZero(rising);
  std::size_t end = kept.first;
  for (std::size_t i = kept.first; i < kept.last; i = end) {
    end = std::min(kept.last, i + group - (i + rising.size() * group - zero) % group);
    const double reference = rising[i].loss;
    LossCell cell;
    double excess = 0;
    for (std::size_t j = i; j < end; ++j) {
      cell.mass += rising[j].mass;
      excess += rising[j].mass * std::expm1(reference - rising[j].loss);
    }
    cell.loss = reference - std::log1p(excess / cell.mass);
    out.AddCell(cell, reference, rising[end - 1].loss);
  }
}

}  // namespace

std::size_t AtomsOfCell(const LossPair& pair, double log_lost, std::size_t cells) {
  if (pair.atoms.size() <= 4 * cells) return 1;
  return AtomsOfCell(WithoutTails(InRisingOrder(pair.atoms), log_lost), cells);
}

LossCell IntegrateCell(const LossDensity& density, double a, double b) {
  if (LossCell closed; density.Integrate(a, b, &closed.mass, &closed.loss)) return closed;
  double reference = 0;
  density.At(0.5 * (a + b), nullptr, &reference);
  LossCell cell;
  double excess = 0;  // of Q-mass e^reference over P-mass
  for (double from = a; from < b;) {
    double to = from + kAtomPanel * density.SmoothLength(from);
    if (!(to > from) || to > b - 1e-3 * (to - from)) to = b;
    const double half = 0.5 * (to - from);
    for (std::size_t k = 0; k < kLegendreNodesOfEight.size(); ++k) {
      for (const int side : {-1, 1}) {
        double log_density = 0;
        double loss = 0;
        density.At(from + half + side * half * kLegendreNodesOfEight[k], &log_density, &loss);
        const double mass = half * kLegendreWeightsOfEight[k] * std::exp(log_density);
        cell.mass += mass;
        excess += mass * std::expm1(reference - loss);
      }
    }
    from = to;
  }
  cell.loss = cell.mass > 0 ? reference - std::log1p(excess / cell.mass) : reference;
  return cell;
}

double ExpRest(double x) {
  if (std::abs(x) > 0.5) return std::expm1(x) - x;
  constexpr std::array<double, 17> kInverse = [] {
    std::array<double, 17> inverse = {};
    for (int k = 1; k <= 16; ++k) inverse[static_cast<std::size_t>(k)] = 1.0 / k;
    return inverse;
  }();
  double s = 1;
  for (std::size_t k = 16; k >= 3; --k) s = 1 + s * x * kInverse[k];
  return 0.5 * x * x * s;
}

AtomList ListAtoms(const LossPair& pair, double log_lost, std::size_t cells, Bound bound,
                   std::size_t atoms_of_cell) {
  LossPair ranged = pair;
  ChooseRange(ranged, log_lost);
  ListBuilder out(bound);
  const std::vector<LossAtom> rising = InRisingOrder(std::move(ranged.atoms));
  const KeptAtoms kept = WithoutTails(rising, log_lost);
  AddAtoms(rising, kept, atoms_of_cell > 0 ? atoms_of_cell : AtomsOfCell(kept, cells), out);
  for (const DensityPiece& piece : ranged.pieces) {
    if (piece.weight > 0) AddPiece(piece, cells, out);
  }
  return out.Take(pair);
}

}  // namespace sordino
