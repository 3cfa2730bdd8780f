// Cases of the trainer: samplers, adjacencies, clipping policies, ways to find norms, kinds of
// noise, micro-batches and users.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "sordino/audit/internal/dirac_training.h"
#include "sordino/audit/internal/self_audit_case.h"
#include "sordino/base/check.h"
#include "sordino/correlation/strategy.h"

namespace sordino::internal {
namespace {

constexpr std::int64_t kCanariesOfATraining = 1000;
// Of sums that are computed example by example, or from many passes.
constexpr std::int64_t kCanariesOfASlowTraining = 100;
constexpr std::int64_t kStepsOfASingleTraining = 250;
// Samples are few where delta is small, and bounds are far from the truth where it is large.
const std::vector<double>& TrainingDeltas() {
  static const std::vector<double> deltas = {1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3};
  return deltas;
}

// log(1 - q + q e^x).
double LogMixtureOf(double q, double x) {
  return x > 0 ? x + std::log(q + (1 - q) * std::exp(-x)) : std::log1p(q * std::expm1(x));
}

// The score of a canary, of what all steps released in its direction: [steps].
using Statistic = std::function<double(const std::vector<double>& sums)>;

double Added(const std::vector<double>& sums) {
  double sum = 0;
  for (const double y : sums) sum += y;
  return sum;
}

// The logarithm of the likelihood ratio where each step draws the canary, of size 1, at rate q;
// under replace-one against one of the opposite sign.
Statistic Mixtures(double q, double noise, bool replaced) {
  return [=](const std::vector<double>& sums) {
    double score = 0;
    for (const double y : sums) {
      const double squares = noise * noise;
      score += LogMixtureOf(q, (y - 0.5) / squares);
      if (replaced) score -= LogMixtureOf(q, (-y - 0.5) / squares);
    }
    return score;
  };
}

// Where every `groups`-th step draws the canary at rate q, beginning with one of the first.
Statistic OneOfTheGroups(std::size_t groups, double q, double noise) {
  return [=](const std::vector<double>& sums) {
    double mean = 0;
    for (std::size_t group = 0; group < groups; ++group) {
      double score = 0;
      for (std::size_t t = group; t < sums.size(); t += groups) {
        score += LogMixtureOf(q, (sums[t] - 0.5) / (noise * noise));
      }
      mean += std::exp(score);
    }
    return std::log(mean);
  };
}

// Where one of the steps has it.
Statistic OneOfTheSteps(double noise) {
  return [=](const std::vector<double>& sums) {
    double mean = 0;
    for (const double y : sums) mean += std::exp(y / (noise * noise));
    return std::log(mean);
  };
}

// The direction of a canary's gradient is (1, 1) / sqrt(2) in its coordinates of the two layers.
std::vector<double> InDirection(const at::Tensor& sums) {
  const at::Tensor along = ((sums[0] + sums[1]) / std::sqrt(2.0)).contiguous();
  return {along.const_data_ptr<double>(), along.const_data_ptr<double>() + along.numel()};
}

// All steps of a training make one score of each canary, or of the first `scored`.
std::vector<double> TrainingScores(const DiracTraining& training, std::int64_t scored,
                                   const Statistic& statistic, World world, std::int64_t scores,
                                   AuditRuns& runs) {
  std::vector<double> all;
  while (std::ssize(all) < scores) {
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(scored));
    TrainDiracs(training, world, /*place=*/0, runs.NextSeed(),
                [&](const Trainer&, const at::Tensor& released) {
                  const std::vector<double> along = InDirection(released);
                  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].push_back(along[i]);
                });
    for (const std::vector<double>& of_canary : sums) all.push_back(statistic(of_canary));
    runs.Tell(static_cast<double>(std::ssize(all)) / static_cast<double>(scores));
  }
  return all;
}

// Each step of a training is a score: steps of a linear loss do not depend on each other.
using StepStatistic = std::function<double(const at::Tensor& sums)>;

std::vector<double> StepScores(const DiracTraining& training, const StepStatistic& statistic,
                               World world, std::int64_t scores, AuditRuns& runs) {
  std::vector<double> all;
  for (std::int64_t place = 0; std::ssize(all) < scores; ++place) {
    TrainDiracs(
        training, world, place, runs.NextSeed(),
        [&](const Trainer&, const at::Tensor& released) { all.push_back(statistic(released)); });
    runs.Tell(static_cast<double>(std::ssize(all)) / static_cast<double>(scores));
  }
  return all;
}

double AlongTheOnlyCanary(const at::Tensor& sums) { return InDirection(sums).front(); }

// The likelihood ratio of Laplace noise, up to a factor of the scale.
double NearerToTheOnlyCanary(const at::Tensor& sums) {
  return (sums.abs() - (sums - std::sqrt(0.5)).abs()).sum().item<double>();
}

SelfAuditCase CaseOf(std::string name, std::string what, const DiracTraining& training,
                     std::int64_t claimed_steps) {
  SelfAuditCase result;
  result.name = std::move(name);
  result.what = std::move(what);
  result.claim = [training, claimed_steps](Delta delta) {
    return PlanOf(training, delta).Epsilon(claimed_steps).upper;
  };
  result.deltas = TrainingDeltas();
  result.is_gaussian = training.plan.sampling.name == "full" && training.plan.noise == "gaussian" &&
                       training.plan.rows_per_user == 0;
  return result;
}

SelfAuditCase MakeCase(std::string name, std::string what, const DiracTraining& training,
                       const Statistic& statistic, std::int64_t quick_scores) {
  SelfAuditCase result = CaseOf(std::move(name), std::move(what), training, training.plan.steps);
  result.quick_scores = quick_scores;
  result.score = [=](World world, std::int64_t scores, AuditRuns& runs) {
    return TrainingScores(training, training.canaries, statistic, world, scores, runs);
  };
  return result;
}

DiracTraining FullBatches(Adjacency adjacency) {
  DiracTraining training;
  training.plan.sampling = "full";
  training.plan.adjacency = adjacency;
  training.plan.steps = 1;
  training.canaries = kCanariesOfATraining;
  return training;
}

DiracTraining Sampled(std::string_view sampling, double rate, std::int64_t steps,
                      Adjacency adjacency) {
  DiracTraining training = FullBatches(adjacency);
  training.plan.sampling = std::string(sampling);
  training.plan.steps = steps;
  training.plan.batch = rate * static_cast<double>(training.canaries);
  return training;
}

void AddSamplers(std::vector<SelfAuditCase>& cases) {
  cases.push_back(
      MakeCase("full", "full batches", FullBatches(Adjacency::kAddRemove), Added, 20'000));
  cases.push_back(MakeCase("full-zero-out", "full batches, zero-out",
                           FullBatches(Adjacency::kZeroOut), Added, 20'000));
  cases.push_back(MakeCase("full-replace-one", "full batches, replace-one",
                           FullBatches(Adjacency::kReplaceOne), Added, 20'000));
  constexpr double kRate = 0.25;
  cases.push_back(MakeCase("poisson", "8 Poisson batches",
                           Sampled("poisson", kRate, 8, Adjacency::kAddRemove),
                           Mixtures(kRate, 1, false), 20'000));
  cases.push_back(MakeCase("poisson-replace-one", "4 Poisson batches, replace-one",
                           Sampled("poisson", kRate, 4, Adjacency::kReplaceOne),
                           Mixtures(kRate, 1, true), 20'000));
  DiracTraining cyclic = Sampled("cyclic", kRate, 4, Adjacency::kAddRemove);
  cyclic.plan.sampling.options.Set("groups", std::int64_t{2});
  cases.push_back(MakeCase("cyclic", "2 groups of records in turn, 4 steps", cyclic,
                           OneOfTheGroups(2, 2 * kRate, 1), 20'000));
  cases.push_back(MakeCase("allocation", "an epoch of 4 allocated batches",
                           Sampled("allocation", kRate, 4, Adjacency::kAddRemove), OneOfTheSteps(1),
                           20'000));
}

void AddUnits(std::vector<SelfAuditCase>& cases) {
  DiracTraining users = Sampled("poisson", 0.5, 1, Adjacency::kAddRemove);
  users.rows = 2;
  users.canaries = kCanariesOfATraining / 2;
  users.plan.rows_per_user = users.rows;
  users.noise = NoiseMultiplier(2);
  users.plan.batch = 0.5 * static_cast<double>(users.Records());
  cases.push_back(MakeCase("users", "users with 2 rows, Poisson batches", users, Added, 20'000));

  DiracTraining micro = FullBatches(Adjacency::kReplaceOne);
  micro.plan.micro_batch = 2;
  micro.fillers = 1;
  micro.canaries = kCanariesOfATraining / 2;
  cases.push_back(MakeCase("micro-batch", "micro-batches of 2, replace-one", micro, Added, 20'000));
}

// One record alone, so that a slip that concerns one example of a batch is seen in every score; it
// stands at each place of a batch of 8.
void AddOneRecord(std::vector<SelfAuditCase>& cases) {
  DiracTraining training = FullBatches(Adjacency::kAddRemove);
  training.canaries = 1;
  training.fillers = 7;
  training.plan.steps = kStepsOfASingleTraining;
  SelfAuditCase one = CaseOf("one-record", "one gradient in a batch of 8", training, 1);
  one.quick_scores = 4000;
  one.score = [training](World world, std::int64_t scores, AuditRuns& runs) {
    return StepScores(training, AlongTheOnlyCanary, world, scores, runs);
  };
  cases.push_back(std::move(one));
}

// Batches of one of four records. The others have the opposite gradient, which is there whenever
// the record is not drawn: the pair of worlds that the accounting of fixed sizes is exact for.
void AddFixedSize(std::vector<SelfAuditCase>& cases) {
  DiracTraining training = FullBatches(Adjacency::kReplaceOne);
  training.plan.sampling = "fixed";
  training.plan.batch = 1;
  training.plan.steps = kStepsOfASingleTraining;
  training.canaries = 1;
  training.fillers = 3;
  training.filler_size = -training.size;
  training.noise = NoiseMultiplier(0.5);
  SelfAuditCase one = CaseOf("fixed", "batches of fixed size, replace-one", training, 1);
  one.quick_scores = 4000;
  one.score = [training](World world, std::int64_t scores, AuditRuns& runs) {
    return StepScores(training, AlongTheOnlyCanary, world, scores, runs);
  };
  cases.push_back(std::move(one));
}

// Kinds of noise on a single direction: the model has two numbers. Noise whose unit is an L1
// distance has the sqrt(2) of two numbers in it, which the canary, (1, 1) / sqrt(2), moves whole.
void AddNoises(std::vector<SelfAuditCase>& cases) {
  for (const NoiseComponent* const kind : Noises().all()) {
    DiracTraining training = FullBatches(Adjacency::kAddRemove);
    training.canaries = 1;
    training.plan.steps = kStepsOfASingleTraining;
    training.plan.noise = std::string(kind->name());
    SelfAuditCase one = CaseOf(fmt::format("noise-{}", kind->name()),
                               fmt::format("{} noise", kind->name()), training, 1);
    if (!kind->IsGaussian()) one.deltas.insert(one.deltas.begin(), 0);
    one.quick_scores = 3000;
    const StepStatistic statistic = kind->IsGaussian() ? AlongTheOnlyCanary : NearerToTheOnlyCanary;
    one.score = [=](World world, std::int64_t scores, AuditRuns& runs) {
      return StepScores(training, statistic, world, scores, runs);
    };
    cases.push_back(std::move(one));
  }
}

// What steps released in the direction of a canary, as C makes it one release: the score of a
// canary that is in the steps of `pattern`, along what these move C x by.
Statistic AlongTheMatrix(std::vector<double> column, const std::vector<std::int64_t>& pattern,
                         std::int64_t steps) {
  const auto times_c = [column](const std::vector<double>& x) {
    std::vector<double> product(x.size());
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t s = 0; s <= t; ++s) product[t] += column[t - s] * x[s];
    }
    return product;
  };
  std::vector<double> taken(static_cast<std::size_t>(steps));
  for (const std::int64_t step : pattern) taken[static_cast<std::size_t>(step)] = 1;
  return [=, moved = times_c(taken)](const std::vector<double>& sums) {
    const std::vector<double> released = times_c(sums);
    return std::inner_product(moved.begin(), moved.end(), released.begin(), 0.0);
  };
}

// Batches in order, and noise that is correlated between steps: one participation in a round of 4
// steps, where bands are few, and all steps, where they are many. Of batches in order the canaries
// of the first are scored.
void AddCorrelations(std::vector<SelfAuditCase>& cases) {
  const auto add = [&](const char* name, const char* strategy, bool by_round) {
    DiracTraining training = FullBatches(Adjacency::kZeroOut);
    training.plan.steps = 4;
    training.plan.noise = {"gaussian", {{"noise-correlation", std::string(strategy)}}};
    std::vector<std::int64_t> pattern = {0, 1, 2, 3};
    if (by_round) {
      training.plan.sampling = "ordered";
      training.plan.batch = static_cast<double>(training.canaries) / 4;
      pattern = {0};
    }
    const Participation steps{.steps = 4,
                              .separation = by_round ? 4 : 1,
                              .count = static_cast<std::int64_t>(pattern.size())};
    const std::int64_t scored = training.canaries / (by_round ? 4 : 1);
    const Statistic statistic =
        AlongTheMatrix(MakeStrategy(strategy, steps)->Coefficients(4), pattern, 4);
    SelfAuditCase one =
        CaseOf(name,
               fmt::format("{}, noise correlated by '{}'",
                           by_round ? "batches in order" : "full batches", strategy),
               training, training.plan.steps);
    one.quick_scores = 20'000;
    one.score = [=](World world, std::int64_t scores, AuditRuns& runs) {
      return TrainingScores(training, scored, statistic, world, scores, runs);
    };
    cases.push_back(std::move(one));
  };
  add("ordered", "none", true);
  add("correlated-round", "banded:4", true);
  add("correlated-run", "bisr:3", false);
}

void AddNorms(std::vector<SelfAuditCase>& cases) {
  for (const NormsComponent* const norms : NormMethods().all()) {
    if (norms->name() == PlanOptions().norms.name) continue;  // that of all others
    DiracTraining training = FullBatches(Adjacency::kAddRemove);
    training.canaries = kCanariesOfASlowTraining;
    training.plan.norms = std::string(norms->name());
    cases.push_back(MakeCase(fmt::format("norms-{}", norms->name()),
                             fmt::format("norms by '{}'", norms->name()), training, Added,
                             norms->AreExact() ? 4000 : 1000));
  }
}

// Adaptive policies release the counts of their groups beside the gradients, and an attacker reads
// them off the bounds, which are part of the state of a run. The canary is above the bound, so that
// it takes 1/2 from the count of each group. Bounds move slowly enough for it to stay there.
struct AdaptiveAttack {
  static constexpr double kSlow = 1e-4;
  static constexpr double kCovered = 0.25;
  static constexpr double kCountShare = 0.6;  // of the squared shift that the noise allows

  explicit AdaptiveAttack(std::string_view policy, std::int64_t the_groups) : groups(the_groups) {
    training = FullBatches(Adjacency::kAddRemove);
    training.canaries = 1;
    training.plan.steps = kStepsOfASingleTraining;
    count_noise = std::sqrt(static_cast<double>(groups) / kCountShare) / 2;
    training.plan.clipping = {
        std::string(policy),
        {{"quantile", kCovered}, {"clip-rate", kSlow}, {"count-noise", count_noise}}};
  }

  static std::vector<double> Bounds(const Trainer& trainer) {
    for (const auto& [name, value] : trainer.SaveState()) {
      if (name != "clip.bounds") continue;
      return {value.const_data_ptr<double>(), value.const_data_ptr<double>() + value.numel()};
    }
    SORDINO_CHECK(false, "an adaptive policy saves no bounds");
    return {};
  }

  // The logarithm of the likelihood ratio of a step, up to a constant.
  double Score(const std::vector<double>& before, const std::vector<double>& after,
               const at::Tensor& sums, double gradient_noise) const {
    double squares = 0;
    for (const double bound : before) squares += bound * bound;
    double score = 0;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const double own =
          before.size() == 1 ? before[0] / std::sqrt(2.0) : before[static_cast<std::size_t>(layer)];
      score += sums[layer][0].item<double>() * own / (squares * gradient_noise * gradient_noise);
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double fraction = kCovered - std::log(after[i] / before[i]) / kSlow;
      score -= (fraction - 0.5) / 2 / (count_noise * count_noise);  // the batch is 1
    }
    return score;
  }

  std::vector<double> Scores(World world, std::int64_t scores, AuditRuns& runs) const {
    const double noise = PlanOf(training, Delta(1e-2)).GradientNoise(0, groups).value();
    std::vector<double> all;
    while (std::ssize(all) < scores) {
      std::vector<double> before(
          static_cast<std::size_t>(groups),
          training.plan.clip.value() / std::sqrt(static_cast<double>(groups)));
      TrainDiracs(training, world, 0, runs.NextSeed(),
                  [&](const Trainer& trainer, const at::Tensor& sums) {
                    const std::vector<double> after = Bounds(trainer);
                    all.push_back(Score(before, after, sums, noise));
                    before = after;
                  });
      runs.Tell(static_cast<double>(std::ssize(all)) / static_cast<double>(scores));
    }
    return all;
  }

  DiracTraining training;
  std::int64_t groups;
  double count_noise;
};

SelfAuditCase AdaptiveCase(std::string name, std::string what, const AdaptiveAttack& attack) {
  SelfAuditCase one = CaseOf(std::move(name), std::move(what), attack.training, 1);
  one.quick_scores = 4000;
  one.score = [attack](World world, std::int64_t scores, AuditRuns& runs) {
    return attack.Scores(world, scores, runs);
  };
  return one;
}

void AddClipping(std::vector<SelfAuditCase>& cases) {
  for (const ClippingComponent* const policy : ClippingPolicies().all()) {
    std::string name = fmt::format("clipping-{}", policy->name());
    std::string what = fmt::format("{} clipping", policy->name());
    if (policy->Has("count-noise")) {
      const std::int64_t groups = policy->name() == "adaptive" ? 1 : 2;
      cases.push_back(AdaptiveCase(std::move(name), std::move(what) + ", with its counts",
                                   AdaptiveAttack(policy->name(), groups)));
      continue;
    }
    DiracTraining training = FullBatches(Adjacency::kAddRemove);
    training.plan.clipping = std::string(policy->name());
    if (policy->Has("clip-threshold")) {
      // The largest gradient that is kept: sqrt(2) of the row.
      training.plan.clipping.options.Set("clip-threshold", 5.0);
      training.size = 0.999 * 5 / std::sqrt(2.0);
    }
    cases.push_back(MakeCase(std::move(name), std::move(what), training, Added, 20'000));
  }
}

}  // namespace

std::vector<SelfAuditCase> TrainingCases() {
  std::vector<SelfAuditCase> cases;
  AddSamplers(cases);
  AddFixedSize(cases);
  AddOneRecord(cases);
  AddUnits(cases);
  AddClipping(cases);
  AddNorms(cases);
  AddNoises(cases);
  AddCorrelations(cases);
  return cases;
}

}  // namespace sordino::internal
