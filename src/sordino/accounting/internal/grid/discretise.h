// A privacy loss on an equally spaced grid, from above or from below.
//
// kUpper, connect the dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, arXiv 2207.04380): the
//   mass at a loss l between two grid points goes to both, so that its P-mass and its Q-mass are
//   kept. The result dominates the pair, and with T steps and spacing h its epsilon is too high by
//   order c T h^2 only.
// kLower, merging: neighbouring losses are merged into one outcome (post-processing, so dominated
//   by the pair), with the ends of each run chosen such that the merged loss is a grid point:
//   integral over the run of (1 - e^{l_i - L}) dP = 0. Where a run would grow too long its first
//   part is rounded down instead.
//
// kSpread, the same grid as kUpper read as a lower bound. It is the loss plus an independent error
//   a step that lies in an interval of length h and has a mean of at most h^2/8 (given the loss);
//   by Hoeffding the errors of T steps exceed t + T h^2/8 with a probability of at most
//   e^{-2 t^2 / (T h^2)}. grid.h shifts epsilon by that much and charges the probability. It is
//   the better one for isolated atoms, which merging can only round down.
//
// Masses are stored tilted, p_i e^{c l_i - log_scale}, so that a delta of 1e-300 does not drown in
// rounding.
#ifndef SORDINO_ACCOUNTING_INTERNAL_DISCRETISE_H_
#define SORDINO_ACCOUNTING_INTERNAL_DISCRETISE_H_

#include <cstdint>
#include <vector>

#include "sordino/accounting/loss_pair.h"

namespace sordino {

// kLower: how far below its grid point a merged loss may lie, in cells.
inline constexpr double kMergeError = 1e-9;

enum class Bound : std::uint8_t { kLower, kSpread, kUpper };

struct GridSpec {
  double spacing = 0;
  double offset = 0;     // losses are offset + i * spacing
  double tilt = 0;       // c
  double log_scale = 0;  // about log E_P[e^{cL}], so that the masses sum to about one
};

struct GridMass {
  std::int64_t first = 0;    // index of mass[0]
  std::vector<double> mass;  // tilted
  double infinite_mass = 0;  // P-mass at an infinite loss, not tilted
};

// Restricts the coordinates of a pair's continuous pieces to where P has all but a mass of
// e^log_lost at either end and where the clips allow.
void ChooseRange(LossPair& pair, double log_lost);

// A Gaussian mechanism by its density: a mixture of a single part.
LossPair DensityOfGaussian(double mu);

GridMass Discretise(const LossPair& pair, const GridSpec& spec, Bound bound);

// The log of the mean of e^{d loss} under the tilted masses, no less than it is.
double LogMomentOf(const GridMass& grid, const GridSpec& spec, double d);

// Weighted losses (log P-mass and loss) that represent the pair well enough to choose a tilt by.
struct LossNodes {
  std::vector<double> log_mass;
  std::vector<double> loss;
  double LogMoment(double c) const;
  struct Moments {
    double mean;
    double variance;
  };
  Moments Tilted(double c) const;  // of the loss under the tilted measure
};
LossNodes SampleNodes(const LossPair& pair);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_DISCRETISE_H_
