// The noise schedule that spends a budget best.
//
// A full-batch step with Gaussian noise of multiplier s_t costs 1 / s_t^2, and all steps together
// may cost the budget
//
//     R = sum_t 1 / s_t^2,
//
// twice the rho of zero-concentrated privacy. Noise enters the bound on the excess risk with
// positive influence weights q_t as R sum_t q_t s_t^2 (convergence.h, momentum.h).
//
// Lemma 3.1 of Hong, Wang and Zhou (arXiv 2101.07413). Over all schedules with sum_t 1 / s_t^2 = R
// the least value is
//
//     min R sum_t q_t s_t^2 = (sum_t sqrt(q_t))^2,   at s_t^2 = (1/R) sum_i sqrt(q_i / q_t).
//
// Proof. By the Cauchy-Schwarz inequality (sum_t sqrt(q_t))^2 = (sum_t (1/s_t) (sqrt(q_t) s_t))^2
// <= R sum_t q_t s_t^2, with equality where sqrt(q_t) s_t is proportional to 1 / s_t, which is the
// schedule above.
//
// The budget of a full batch needs no bound: the Gaussians of all steps are together one Gaussian
// of multiplier 1 / sqrt(R), whatever the schedule. BudgetOf() is therefore exact, while the
// conversion of zero-concentrated privacy (ZcdpBudgetOf) gives away a part of epsilon.
#ifndef SORDINO_THEORY_NOISE_SCHEDULE_H_
#define SORDINO_THEORY_NOISE_SCHEDULE_H_

#include <optional>
#include <span>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {

// The schedule of Lemma 3.1. Throws Error for an empty list, for a weight that is not positive and
// finite, and for a budget that is not.
std::vector<double> OptimalNoise(std::span<const double> influence, double budget);

// (sum_t sqrt(q_t))^2: what OptimalNoise reaches. Throws Error as above.
double LeastNoiseTerm(std::span<const double> influence);

// R sum_t q_t s_t^2 for any schedule; R is what the schedule spends.
double NoiseTerm(std::span<const double> influence, std::span<const double> noise);

// sum_t 1 / s_t^2. Throws Error for a multiplier that is not positive and finite.
double BudgetSpent(std::span<const double> noise);

// The largest R whose steps together spend at most epsilon at delta under add-remove, certified by
// the accountant; nullopt where none does.
std::optional<double> BudgetOf(Epsilon epsilon, Delta delta);

// The R of the conversion epsilon = rho + 2 sqrt(rho log(1 / delta)) with rho = R / 2.
double ZcdpBudgetOf(Epsilon epsilon, Delta delta);

}  // namespace sordino

#endif  // SORDINO_THEORY_NOISE_SCHEDULE_H_
