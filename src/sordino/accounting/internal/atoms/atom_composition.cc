#include "sordino/accounting/internal/atoms/atom_composition.h"
#include "sordino/accounting/internal/rounding.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "sordino/accounting/internal/atoms/aligned_lists.h"
#include "sordino/accounting/internal/atoms/atom_list.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// So many lists decide a tilt.
constexpr std::size_t kRoughLists = 24;
// Of all aligned lists together, for the memory they take; a list may keep four atoms a cell.
constexpr std::size_t kMaxAlignedAtoms = 6000000;

bool HasLosses(const LossPair& pair) { return !pair.atoms.empty() || !pair.pieces.empty(); }

}  // namespace

bool SharesLists(std::span<const CountedPair> pairs) {
  const auto single = static_cast<std::size_t>(std::count_if(
      pairs.begin(), pairs.end(),
      [](const CountedPair& one) { return HasLosses(one.pair) && !CanBeCut(one.pair); }));
  return single > kMaxSingleLists || pairs.size() > kFewLists + single;
}

CutPairs::CutPairs(std::span<const CountedPair> pairs, double log_lost_mass, std::size_t about,
                   double focus)
    : log_lost(log_lost_mass), cells(about) {
  const bool shared = SharesLists(pairs);
  std::vector<const CountedPair*> cut;
  std::vector<const CountedPair*> others;
  for (const CountedPair& one : pairs) {
    if (shared && CanBeCut(one.pair)) {
      cut.push_back(&one);
    } else {
      (HasLosses(one.pair) ? others : single).push_back(&one);
    }
  }
  if (!cut.empty()) groups = CutIntoCells(cut, log_lost, cells, focus);
  if (others.size() <= kMaxSingleLists) {
    single.insert(single.end(), others.begin(), others.end());
  } else {
    aligned_cells = std::min(cells / 2, kMaxAlignedAtoms / others.size() / 4);
    aligned = GroupLists(others);
  }
}

AtomComposition::AtomComposition(const CutPairs& pairs, Bound bound) : bound_(bound) {
  for (const CountedPair* one : pairs.single) AddSingle(*one, pairs.log_lost, pairs.cells);
  for (const CellGroup& group : pairs.groups) {
    families_.emplace_back(group, bound);
    log_survival_ += families_.back().LogSurvival();
    work_ += families_.back().Work();
  }
  for (const std::vector<SimilarPair>& group : pairs.aligned) {
    families_.emplace_back(AlignLists(group, pairs.log_lost, pairs.aligned_cells, bound), bound);
    log_survival_ += families_.back().LogSurvival();
    work_ += families_.back().Work();
  }
}

void AtomComposition::AddSingle(const CountedPair& counted, double log_lost, std::size_t cells) {
  const auto count = static_cast<double>(counted.count);
  const double mu = counted.pair.gaussian_mu;
  if (mu > 0) mu2_ += count * mu * mu;
  if (!HasLosses(counted.pair)) {
    if (counted.pair.infinite_mass > 0) {
      log_survival_ += count * std::log1p(-counted.pair.infinite_mass);
      log_constant_ += count * std::log1p(-counted.pair.infinite_mass);
    }
    return;
  }
  AtomList list = ListAtoms(counted.pair, log_lost, cells, bound_);
  log_survival_ += count * std::log1p(-list.infinite);
  work_ += static_cast<double>(list.loss.size());
  lists_.emplace_back(std::move(list), count);
}

double AtomComposition::Infinite() const { return -std::expm1(log_survival_); }

double AtomComposition::LogMoment(double c) const {
  double sum = log_constant_ + 0.5 * mu2_ * c * (c + 1);
  for (const AtomTransform& list : lists_) sum += list.count() * std::log1p(list.Excess(c));
  for (const ListFamily& family : families_) sum += family.LogMoment(c);
  return sum;
}

double AtomComposition::RoughLogMoment(double c) const {
  const std::size_t stride = std::max<std::size_t>(1, lists_.size() / kRoughLists);
  double sum = 0;
  double seen = 0;
  double all = 0;
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    all += lists_[i].count();
    if (i % stride != 0) continue;
    sum += lists_[i].count() * std::log1p(lists_[i].Excess(c));
    seen += lists_[i].count();
  }
  if (seen > 0) sum *= all / seen;
  for (const ListFamily& family : families_) sum += family.RoughLogMoment(c);
  return log_constant_ + 0.5 * mu2_ * c * (c + 1) + sum;
}

double AtomComposition::LogMomentError(double c) const {
  double error = 0;
  for (const AtomTransform& list : lists_) {
    const double excess = list.Excess(c);
    error += list.count() * (list.ExcessError(c) / (1 + excess) +
                             2 * kUnitRoundoff * std::abs(std::log1p(excess)));
  }
  for (const ListFamily& family : families_) error += family.LogMomentError(c);
  return error + 8 * kUnitRoundoff * (0.5 * mu2_ * c * (c + 1) + std::abs(log_constant_));
}

AtomTransform::Moments AtomComposition::RoughTilted(double c) const {
  AtomTransform::Moments m{mu2_ * (c + 0.5), mu2_};
  for (const AtomTransform& list : lists_) {
    const AtomTransform::Moments one = list.Tilted(c);
    m.mean += list.count() * one.mean;
    m.variance += list.count() * one.variance;
  }
  for (const ListFamily& family : families_) {
    const AtomTransform::Moments one = family.RoughTilted(c);
    m.mean += one.mean;
    m.variance += one.variance;
  }
  return m;
}

void AtomComposition::Sharpen(double c, double size) {
  work_ = 0;
  for (const AtomTransform& list : lists_) work_ += static_cast<double>(list.size());
  for (ListFamily& family : families_) {
    family.Sharpen(c, size);
    work_ += family.Work();
  }
}

MomentLine AtomComposition::Line(double c, double step, std::size_t nodes) const {
  const std::vector<double> constant(nodes, log_constant_);
  MomentLine line{constant, constant, std::vector<double>(nodes, 0.0)};
  std::vector<std::complex<double>> excess(nodes);
  std::vector<double> error(nodes);
  for (const AtomTransform& list : lists_) {
    list.Line(c, step, excess, error);
    for (std::size_t k = 0; k < nodes; ++k) {
      const double x = excess[k].real();
      const double square = x * (2 + x) + excess[k].imag() * excess[k].imag();
      // log |M|, where M may vanish.
      const double log_one = square > -0.5
                                 ? 0.5 * std::log1p(square)
                                 : std::max(std::log(std::hypot(1 + x, excess[k].imag())), -690.0);
      const double one = std::exp(log_one);
      line.log_modulus[k] += list.count() * log_one;
      line.log_largest[k] += list.count() * (log_one + std::log1p(error[k] / one));
      line.phase[k] +=
          std::remainder(list.count() * std::atan2(excess[k].imag(), 1 + x), 2 * std::numbers::pi);
      // The remainder of a large multiple keeps the rounding of the multiple.
      line.log_largest[k] +=
          4 * kUnitRoundoff * list.count() * (std::abs(log_one) + std::abs(excess[k].imag()) / one);
    }
  }
  for (const ListFamily& family : families_) family.MultiplyInto(c, step, line);
  return line;
}

}  // namespace sordino
