// A composition as lists of atoms, all from above or all from below: what inversion.h inverts.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ATOM_COMPOSITION_H_
#define SORDINO_ACCOUNTING_INTERNAL_ATOM_COMPOSITION_H_

#include <cstddef>
#include <span>
#include <vector>

#include "sordino/accounting/internal/atoms/atom_transform.h"
#include "sordino/accounting/internal/atoms/list_family.h"
#include "sordino/accounting/internal/atoms/loss_cells.h"
#include "sordino/accounting/internal/atoms/similar_pairs.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/grid/discretise.h"

namespace sordino {

// Up to this many pairs have lists of their own, and of more pairs as many of those that cannot be
// cut.
inline constexpr std::size_t kFewLists = 3;
inline constexpr std::size_t kMaxSingleLists = 32;
// Whether there are many pairs, most of which share lists with their neighbours.
bool SharesLists(std::span<const CountedPair> pairs);

// The pairs of a composition with about `cells` cells each; tails of P-mass e^log_lost are left
// out. Where there are many pairs, those that can be are cut at shared losses, once for both
// bounds, and many others are aligned. The pairs must outlive it.
struct CutPairs {
  // Losses up to `focus` are resolved best, where it is not 0.
  CutPairs(std::span<const CountedPair> pairs, double log_lost, std::size_t cells,
           double focus = 0);

  std::vector<CellGroup> groups;
  std::vector<std::vector<SimilarPair>> aligned;
  std::vector<const CountedPair*> single;
  double log_lost;
  std::size_t cells;
  std::size_t aligned_cells = 0;
};

class AtomComposition {
 public:
  AtomComposition(const CutPairs& pairs, Bound bound);

  // Multiplications of a frequency, and the number of factors.
  double work() const { return work_; }
  double factors() const { return static_cast<double>(lists_.size() + families_.size()); }
  double mu2() const { return mu2_; }  // of all Gaussian mechanisms together
  Bound bound() const { return bound_; }
  // P-mass at an infinite loss.
  double Infinite() const;

  // About log E[e^{cL}] of the finite part, from some of the lists, and mean and variance of the
  // loss under the tilted measure: to choose a tilt by.
  double RoughLogMoment(double c) const;
  AtomTransform::Moments RoughTilted(double c) const;

  // Needed for what follows: Re s = c, |s| up to `size`.
  void Sharpen(double c, double size);
  // log E[e^{cL}] of the finite part, and a bound on its error.
  double LogMoment(double c) const;
  double LogMomentError(double c) const;
  // The moments along s = c + i k step without those of Gaussian mechanisms.
  MomentLine Line(double c, double step, std::size_t nodes) const;

 private:
  void AddSingle(const CountedPair& counted, double log_lost, std::size_t cells);

  Bound bound_;
  std::vector<AtomTransform> lists_;
  std::vector<ListFamily> families_;
  double mu2_ = 0;
  double log_survival_ = 0;
  double log_constant_ = 0;  // log moment of what has no list
  double work_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ATOM_COMPOSITION_H_
