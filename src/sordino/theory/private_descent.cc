#include "sordino/theory/private_descent.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Steps without noise that find the minimum to far more digits than noise leaves.
constexpr std::size_t kExactSteps = 2000;

// A problem with its least loss, measured over its initial gap.
class Risk {
 public:
  explicit Risk(const DescentProblem& problem) : problem_(problem) {
    std::mt19937_64 unused(0);
    least_ = problem.Loss(Descend(problem, std::vector<double>(kExactSteps, 0.0), unused));
    gap_ = problem.Loss(problem.Start()) - least_;
  }

  double Of(const DescentPoint& point) const { return (problem_.Loss(point) - least_) / gap_; }

  ConvergenceProblem Theory(double budget) const {
    return ConvergenceProblem::Of({.records = problem_.records(),
                                   .dimension = static_cast<double>(problem_.dimension()),
                                   .lipschitz = 1,
                                   .smoothness = problem_.smoothness(),
                                   .strong_convexity = problem_.strong_convexity(),
                                   .initial_gap = gap_,
                                   .budget = budget});
  }

 private:
  const DescentProblem& problem_;
  double least_ = 0;
  double gap_ = 0;
};

void RefuseZeroSteps(std::int64_t steps, const DescentProblem& problem) {
  if (steps > 0) return;
  throw Error(
      fmt::format("the best number of steps for {:g} records is 0: the noise of one step costs "
                  "more than it gains; "
                  "give more records or a larger budget.",
                  problem.records()));
}

std::vector<double> SameNoise(std::int64_t steps, double budget) {
  return std::vector<double>(static_cast<std::size_t>(steps),
                             std::sqrt(static_cast<double>(steps) / budget));
}

}  // namespace

std::unique_ptr<DescentProblem> MakeDescentProblem(std::size_t name, double records) {
  if (!(records >= 1) || records > kMaxDescentRecords || records != std::floor(records)) {
    throw Error(fmt::format("the number of records is {:g}; give a whole number from 1 to {:g}.",
                            records, kMaxDescentRecords));
  }
  if (name == 0) return std::make_unique<QuadraticDescent>(records);
  return std::make_unique<LogisticDescent>(static_cast<std::int64_t>(records), 7);
}

DescentPoint Descend(const DescentProblem& problem, const std::vector<double>& noise,
                     std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  DescentPoint at = problem.Start();
  for (const double multiplier : noise) {
    const DescentPoint gradient = problem.Gradient(at);
    for (std::size_t j = 0; j < at.size(); ++j) {
      const double noised = gradient[j] + multiplier / problem.records() * normal(random);
      at[j] -= noised / problem.smoothness();
    }
  }
  return at;
}

DescentPoint DescendWithMomentum(const DescentProblem& problem, const std::vector<double>& noise,
                                 double beta, double step, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  DescentPoint at = problem.Start();
  DescentPoint mean(at.size(), 0);
  double power = 1;
  for (const double multiplier : noise) {
    const DescentPoint gradient = problem.Gradient(at);
    power *= beta;
    for (std::size_t j = 0; j < at.size(); ++j) {
      const double noised = gradient[j] + multiplier / problem.records() * normal(random);
      mean[j] = beta * mean[j] + (1 - beta) * noised;
      at[j] -= step / problem.smoothness() * mean[j] / (1 - power);
    }
  }
  return at;
}

MeasuredRisk MeasureRisk(const DescentProblem& problem, double budget, int seeds) {
  const Risk risk(problem);
  const ConvergenceProblem theory = risk.Theory(budget);
  const Horizon uniform = BestUniform(theory);
  const Horizon dynamic = BestDynamic(theory);
  RefuseZeroSteps(std::min(uniform.steps, dynamic.steps), problem);
  MeasuredRisk measured{.uniform_steps = uniform.steps,
                        .dynamic_steps = dynamic.steps,
                        .uniform_bound = uniform.bound,
                        .dynamic_bound = dynamic.bound};
  const std::vector<double> same = SameNoise(uniform.steps, budget);
  const std::vector<double> best = OptimalNoise(theory.Influence(dynamic.steps), budget);
  for (int seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    measured.uniform += risk.Of(Descend(problem, same, random)) / seeds;
    measured.dynamic += risk.Of(Descend(problem, best, random)) / seeds;
  }
  return measured;
}

MeasuredRisk MeasureMomentumRisk(const DescentProblem& problem, double budget, double beta,
                                 int seeds) {
  const Risk risk(problem);
  const MomentumProblem theory(risk.Theory(budget), beta);
  const MomentumProblem::Best best = theory.Minima();
  RefuseZeroSteps(std::min(best.uniform.steps, best.dynamic.steps), problem);
  MeasuredRisk measured{.uniform_steps = best.uniform.steps,
                        .dynamic_steps = best.dynamic.steps,
                        .uniform_bound = best.uniform.bound,
                        .dynamic_bound = best.dynamic.bound};
  const std::vector<double> same = SameNoise(best.uniform.steps, budget);
  const std::vector<double> scheduled = OptimalNoise(theory.Influence(best.dynamic.steps), budget);
  for (int seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    measured.uniform +=
        risk.Of(DescendWithMomentum(problem, same, beta, theory.step(), random)) / seeds;
    measured.dynamic +=
        risk.Of(DescendWithMomentum(problem, scheduled, beta, theory.step(), random)) / seeds;
  }
  return measured;
}

MeasuredInfluence MeasureInfluence(const DescentProblem& problem, double budget, int seeds) {
  const Risk risk(problem);
  const ConvergenceProblem theory = risk.Theory(budget);
  const std::int64_t steps = BestDynamic(theory).steps;
  RefuseZeroSteps(steps, problem);
  MeasuredInfluence influence;
  // R q_t of the bound, for a noise of 1.
  for (const double q : theory.Influence(steps)) influence.predicted.push_back(budget * q);
  std::mt19937_64 unused(0);
  std::vector<double> noise(static_cast<std::size_t>(steps), 0.0);
  const double without = risk.Of(Descend(problem, noise, unused));
  for (std::size_t t = 0; t < noise.size(); ++t) {
    noise[t] = 1;
    double sum = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      // Noise and its mirror image: what is linear in it cancels.
      for (const double sign : {1.0, -1.0}) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        noise[t] = sign;
        sum += risk.Of(Descend(problem, noise, random)) - without;
      }
    }
    influence.measured.push_back(sum / (2 * seeds));
    noise[t] = 0;
  }
  return influence;
}

}  // namespace sordino
