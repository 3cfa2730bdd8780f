// Influence weights of the noise of each step, measured on another problem.
//
// Near the end of a run the expected loss is, to second order in the noise, L_0 + sum_t q_t s_t^2
// for multipliers s_t. Noise that is `factor` times as large in one block of steps adds
// (factor^2 - 1) s^2 sum_{t in block} q_t, so differences of final losses measure the q_t of the
// block. Theory (convergence.h) has q_t = c gamma^(T - 1 - t); c and gamma are fitted to the
// blocks by weighted least squares, which smooths what few runs leave rough.
#ifndef SORDINO_THEORY_LEARNED_INFLUENCE_H_
#define SORDINO_THEORY_LEARNED_INFLUENCE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace sordino {

// What was measured of the steps first ... first + steps - 1.
struct BlockInfluence {
  std::int64_t first = 0;
  std::int64_t steps = 0;
  double weight = 0;  // mean of q_t over the block
  double error = 0;   // standard error of it
};

struct LearnedInfluence {
  double decay = 1;             // gamma
  double kappa = 0;             // 1 / (1 - gamma), the condition number; infinite from gamma 1 on
  double scale = 0;             // c
  double scale_error = 0;       // standard error of c at this gamma
  std::vector<double> weights;  // of each step
};

// Throws Error for fewer than two blocks, for blocks outside of the steps, for errors that are not
// positive, and where c is not at least twice its standard error: then the runs were too few.
LearnedInfluence FitInfluence(std::span<const BlockInfluence> blocks, std::int64_t steps);

}  // namespace sordino

#endif  // SORDINO_THEORY_LEARNED_INFLUENCE_H_
