// Moments of many lists of atoms at the same losses, by a few transforms.
//
// The lists of a group of neighbouring pairs (loss_cells.h) are vectors: masses v_ik at losses
// offset_i + t_k, the absent P-mass, and what the Q-masses are away from one. The moments
//   M_i(s) = e^{s offset_i} (1 + E[v_i](s)),
//   E[v](s) = -absent - s gap + sum over k of v_k (phi(s t_k) + s phi(-t_k)),
// (phi(x) = e^x - 1 - x; atom_list.h, with gap = sum of v_k (e^{-t_k} - 1)) are linear in v.
// Neighbouring vectors are nearly linear combinations of a few: Gram-Schmidt with pivoting gives
// basis vectors u_r and coefficients a_ir with v_i = sum over r of a_ir u_r + rho_i, so that
//   E[v_i](s) = sum over r of a_ir E[u_r](s) + E[rho_i](s),
// and only the E[u_r] have to be transformed. This is an identity for every choice of u_r and a_ir;
// what is left out has the bound, with c = Re s >= 0,
//   |phi(s t) + s phi(-t)| <= (|s|^2 + |s|) t^2/2 e^{max(0, ct, -t)}
//                          <= e^{ct} + 1 + |s| (|t| + phi(-t)),
// summed over the absolute values of rho_i. Nothing is assumed about the pairs: where they are not
// alike the basis grows up to the number of vectors, and rho vanishes.
//
// The logarithm of the product of all 1 + E[v_i] does not need every list either. With D the mean
// of these and x_i = (1 + E[v_i]) / D - 1, whose sum is zero,
//   sum of log(1 + x_i) = -1/2 sum of x_i^2 + rest,  |rest| <= max |x_i| sum |x_i|^2 / (3 (1 -
//   max)),
// and the sums of squares are quadratic forms of the E[u_r]. Where the bound on the rest is not
// small, as for steps that move the loss much, the lists are multiplied one by one.
//
// kUpper  each cell's mass goes to its two places such that P-mass and Q-mass are kept.
// kLower  each cell is one outcome, whose loss l differs a little from pair to pair. Its mass goes
//         to the lowest and the highest of these losses, a and b, such that P-mass and Q-mass are
//         kept. That is no bound from below, but an interpolation of u^-s in u = e^-l, whose error
//         of at most |s (s + 1)| (b - a)^2/8 e^{cb + 2(b - a)} times the mass is charged.
//         What is at b is kept as mass that was moved there from a: rounding of the losses counts
//         for as little as it changes.
// Aligned lists (aligned_lists.h) are treated like the cells of kLower: where they are bounds from
// above, moving the mass of an atom to both sides of it (connect the dots) leaves them so, and
// nothing is charged.
#ifndef SORDINO_ACCOUNTING_INTERNAL_LIST_FAMILY_H_
#define SORDINO_ACCOUNTING_INTERNAL_LIST_FAMILY_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "sordino/accounting/internal/atoms/atom_transform.h"
#include "sordino/accounting/internal/atoms/loss_cells.h"
#include "sordino/accounting/internal/grid/discretise.h"

namespace sordino {

// The product of the moments of independent losses along s = c + i k step.
struct MomentLine {
  std::vector<double> log_modulus;
  // A bound: the product is within e^{log_largest} - e^{log_modulus} of what modulus and phase say.
  std::vector<double> log_largest;
  std::vector<double> phase;
};

class ListFamily {
 public:
  ListFamily(const CellGroup& group, Bound bound);

  double LogSurvival() const { return log_survival_; }  // log of one less the mass at infinity
  // The sum of count log M_i(c), and of mean and variance under the tilted measures, as if all
  // lists were their average: to choose a tilt by.
  double RoughLogMoment(double c) const;
  AtomTransform::Moments RoughTilted(double c) const;

  // Makes the basis, good for Re s = c and |s| up to `size`. Needed for what follows, which holds
  // for every s but has larger errors elsewhere.
  void Sharpen(double c, double size);
  // Multiplications of a frequency.
  double Work() const;
  // The sum of count log M_i(c), and a bound on its error.
  double LogMoment(double c) const;
  double LogMomentError(double c) const;
  // Multiplies the line by all M_i.
  void MultiplyInto(double c, double step, MomentLine& line) const;

 private:
  // A bound on the sum of count |E[rho_i](s)| for Re s = c, where |s| is up to `largest`.
  class LeftOut {
   public:
    LeftOut(const ListFamily& family, double c, double largest);
    double At(double size) const {
      return (size * (size + 1) * square_ + constant_ + size * linear_) * (1 + 1e-9);
    }

   private:
    double square_ = 0;
    double constant_ = 0;
    double linear_ = 0;
  };
  // The lists along a line (list_family_line.cc).
  class Line;

  // E[v_i](c) of every list, the smallest 1 + E[v_i](c), and a bound on the sum of their errors;
  // least is 0 where e^{ct} leaves the range of doubles.
  struct RealMoments {
    std::vector<double> excess;
    double least = 0;
    double error = 0;
  };

  void SetUpper(const CellGroup& group);
  void SetMoving(const CellGroup& group, Bound bound);
  void SetMean();
  // A bound on |phi(st) + s phi(-t)| of a place, 1 of the absent mass, |s| of the gap.
  double Weight(std::size_t column, double c, double size) const;
  std::vector<std::vector<double>> ChooseDirections(const std::vector<double>& weight) const;
  // Whether a column holds mass that is moved here from the place before.
  bool IsMove(std::size_t column) const { return moving_ && column % 2 == 1; }
  AtomList ListOf(std::vector<double> vector) const;
  void SumCoefficients();
  RealMoments MomentsAt(double c) const;
  // The sums over r of a_ir times a number of each basis vector.
  std::vector<double> Combine(const std::vector<double>& of_basis) const;

  std::vector<double> place_;    // t of the masses
  std::vector<double> vectors_;  // rows of masses, absent and gap
  double largest_place_ = 0;
  bool moving_;        // places come in pairs, between which the losses of a cell move
  double mass_error_;  // of every mass, relative
  std::optional<AtomTransform> average_;
  std::vector<double> coefficient_;  // rows a_i of stride_ numbers
  std::size_t stride_ = 0;
  std::vector<AtomTransform> basis_;
  std::vector<double> weight_;      // sum over lists of count |a_ir|
  std::vector<double> left_out_;    // sum over lists of count |rho_ik|
  std::vector<double> mean_;        // of a_ir over all lists
  std::vector<double> covariance_;  // sums of count (a_ir - mean_r) (a_iq - mean_q)
  std::vector<double> largest_;     // of |a_ir - mean_r|
  std::vector<double> count_;
  std::vector<double> spread_;  // what interpolation adds to the coefficient of |s| (|s| + 1)
  double total_count_ = 0;
  double offset_sum_ = 0;   // of count offset
  double offset_size_ = 0;  // of count |offset|
  double q_rounding_ = 0;   // sum over lists
  double log_survival_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_LIST_FAMILY_H_
