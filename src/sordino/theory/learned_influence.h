// Influence weights of the noise of each step, measured on another problem.
//
// Near the end of a run the expected loss is, to second order in the noise, L_0 + sum_t q_t s_t^2
// for multipliers s_t. Noise that is `factor` times as large in one block of steps adds
// (factor^2 - 1) s^2 sum_{t in block} q_t, so differences of final losses measure the q_t of the
// block. Theory (convergence.h) has q_t = c gamma^(T - 1 - t); c and gamma are fitted to the
// blocks by weighted least squares, which smooths what few runs leave rough.
//
// Before that, TestDecay says whether the blocks differ by more than chance: a schedule that was
// fitted to chance is worse than equal noise. A fit always finds some gamma; it is a decay only
// below 1, where early noise dies away. Where there is none, the schedule is equal noise, too.
#ifndef SORDINO_THEORY_LEARNED_INFLUENCE_H_
#define SORDINO_THEORY_LEARNED_INFLUENCE_H_

#include <cstdint>
#include <optional>
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
  double decay = 1;             // gamma, at most 1
  double kappa = 0;             // 1 / (1 - gamma), the condition number; infinite for gamma 1
  double scale = 0;             // c
  double scale_error = 0;       // standard error of c at this gamma
  std::vector<double> weights;  // of each step
};

// Student's t-test of "the influence does not change over the steps". For each seed the slope of a
// straight line through its blocks is computed; where the influence is the same in all blocks, the
// slopes of the seeds are independent with mean 0, whatever the blocks of one seed have in common.
struct DecayTest {
  double slope = 0;             // mean over the seeds, of q_t over t
  double error = 0;             // standard error of it
  double p_value = 1;           // of both sides: exact for normal slopes
  bool is_significant = false;  // p_value is at most kDecayLevel
};

// The error rate: of influences that do not change, so many are taken for one that does.
inline constexpr double kDecayLevel = 0.05;

// `measured` has the influence of each block for each seed, [blocks][seeds]. Throws Error as
// FitDecay does, and for fewer than two seeds.
DecayTest TestDecay(std::span<const BlockInfluence> blocks,
                    std::span<const std::vector<double>> measured, std::int64_t steps);

// The same weight in every step: gamma 1, and c the mean of the blocks, weighted by their errors.
LearnedInfluence EqualInfluence(std::span<const BlockInfluence> blocks, std::int64_t steps);

// nullopt where no decay can be fitted: gamma is not below 1, or c is not finite or not at least
// twice its standard error. Throws Error for fewer than two blocks, for blocks outside of the steps
// and for errors that are not positive.
std::optional<LearnedInfluence> FitDecay(std::span<const BlockInfluence> blocks,
                                         std::int64_t steps);

// Why a schedule is equal noise.
enum class EqualNoise : std::uint8_t {
  kNot,      // it is not: a decay was fitted
  kChance,   // the test of the decay is not significant
  kNoDecay,  // FitDecay has none
};

struct InfluenceSchedule {
  LearnedInfluence influence;
  std::vector<double> noise;  // factors of the noise of each step; their budget is that of ones
  double gain = 1;            // the noise term of equal noise over that of the schedule
  EqualNoise equal = EqualNoise::kNot;
};

// The best schedule (noise_schedule.h) for the decay that is fitted to the blocks, or equal noise.
// Throws Error as FitDecay does.
InfluenceSchedule ScheduleOf(std::span<const BlockInfluence> blocks, const DecayTest& test,
                             std::int64_t steps);

}  // namespace sordino

#endif  // SORDINO_THEORY_LEARNED_INFLUENCE_H_
