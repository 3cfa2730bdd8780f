#include "sordino/accounting/internal/atoms/aligned_lists.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/accounting/internal/atoms/atom_list.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Of a mass in a list, relative (atom_transform.cc).
constexpr double kListMassError = 2e-13;
// How far apart the losses of a group may be, relative.
constexpr double kWidestLoss = 0.01;
// There are about this many groups at most; where that is too few for narrow ones, they are wider.
constexpr std::size_t kMaxAlignedGroups = 256;

double LogOf(double x) { return x > 0 && std::isfinite(x) ? std::log(x) : 0; }

// The ends of the losses, where there are densities.
std::array<double, 2> KeyOfEnds(const LossPair& pair) {
  double lowest = 0;
  double highest = 0;
  const auto add = [&](double loss) {
    lowest = std::min(lowest, loss);
    highest = std::max(highest, loss);
  };
  for (const LossAtom& atom : pair.atoms) add(atom.loss);
  for (const DensityPiece& piece : pair.pieces) {
    add(std::max(piece.density->Loss(piece.density->low()), piece.clip_low));
    add(std::min(piece.density->LargestLoss(), piece.clip_high));
  }
  return {LogOf(highest), LogOf(-lowest)};
}

// The size of the losses and the weight of the large ones: where a lattice ends says little.
std::array<double, 2> KeyOfAtoms(const LossPair& pair) {
  double square = 0;
  double fourth = 0;
  for (const LossAtom& atom : pair.atoms) {
    const double one = atom.loss * atom.loss;
    square += atom.mass * one;
    fourth += atom.mass * one * one;
  }
  return {0.5 * LogOf(square), 0.5 * (LogOf(fourth) - 2 * LogOf(square))};
}

SimilarPair KeyOfList(const CountedPair& counted) {
  const LossPair& pair = counted.pair;
  SimilarPair key{{static_cast<double>(pair.pieces.size())}, {}, &counted};
  for (const DensityPiece& piece : pair.pieces) {
    key.form.push_back((piece.clip_low > -1e300 ? 1 : 0) + (piece.clip_high < 1e300 ? 2 : 0));
  }
  key.key = pair.pieces.empty() ? KeyOfAtoms(pair) : KeyOfEnds(pair);
  return key;
}

}  // namespace

std::vector<std::vector<SimilarPair>> GroupLists(std::span<const CountedPair* const> pairs) {
  std::vector<SimilarPair> keyed;
  keyed.reserve(pairs.size());
  for (const CountedPair* pair : pairs) keyed.push_back(KeyOfList(*pair));
  const std::size_t least = std::max<std::size_t>(1, pairs.size() / kMaxAlignedGroups);
  return GroupSimilarPairs(std::move(keyed), {{kWidestLoss, kWidestLoss}, least, pairs.size()});
}

CellGroup AlignLists(std::span<const SimilarPair> pairs, double log_lost, std::size_t cells,
                     Bound bound) {
  struct Aligned {
    AtomList list;
    std::size_t below = 0;  // atoms below zero
  };
  std::size_t together = 1;
  for (const SimilarPair& one : pairs) {
    together = std::max(together, AtomsOfCell(one.pair->pair, log_lost, cells));
  }
  std::vector<Aligned> lists;
  std::size_t below = 0;
  std::size_t above = 0;
  for (const SimilarPair& one : pairs) {
    Aligned next{ListAtoms(one.pair->pair, log_lost, cells, bound, together)};
    const std::vector<double>& loss = next.list.loss;
    if (!loss.empty()) {
      const auto zero =
          std::lower_bound(loss.begin(), loss.end(), ZeroLoss(loss.front(), loss.back()));
      next.below = static_cast<std::size_t>(zero - loss.begin());
    }
    below = std::max(below, next.below);
    above = std::max(above, loss.size() - next.below);
    lists.push_back(std::move(next));
  }
  CellGroup group;
  group.aligned = true;
  group.mass_error = kListMassError;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const AtomList& list = lists[i].list;
    LossCells& out = group.pairs.emplace_back();
    out.count = static_cast<double>(pairs[i].pair->count);
    out.infinite = list.infinite;
    out.missing_p = list.absent_p - list.infinite;
    out.absent_q = list.absent_q;
    out.q_rounding = list.q_rounding;
    out.mass.assign(below + above, 0);
    out.loss.assign(below + above, 0);
    const auto first = static_cast<std::ptrdiff_t>(below - lists[i].below);
    std::copy(list.mass.begin(), list.mass.end(), out.mass.begin() + first);
    std::copy(list.loss.begin(), list.loss.end(), out.loss.begin() + first);
  }
  return group;
}

}  // namespace sordino
