// How often the bounds of correct mechanisms exceed the truth, and how near they come to it:
//
//   false_alarms [AUDITS [DRAWS [REPETITIONS]]]
//
// First AUDITS (2000) audits at 95 % confidence: in turn the Gaussian, the Laplace and randomised
// response in two worlds with 2000 scores each, and one run with 400 canaries. At most 5 % and
// three standard errors may exceed the truth. Then REPETITIONS (1000) audits of one Gaussian step
// with epsilon 1 at delta 1e-5 by DRAWS (10^6) draws a world, none of which may exceed it at
// 99.99 % confidence; their means at 95 % are shown beside epsilon. Thresholds of Gaussian audits
// are planned for the claim. Exit code 1 where one of these fails.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/lower_bounds/canary_audit.h"
#include "sordino/lower_bounds/two_worlds.h"

namespace sordino {
namespace {

constexpr double kSignificance = 0.05;
constexpr int kScores = 2000;
constexpr int kCanaries = 400;
constexpr int kClaimLines = 100;

// Whether each of two bounds, for every mechanism and for Gaussian-DP, exceeds the truth.
struct Exceeded {
  bool epsilon = false;
  bool mu = false;
};

template <typename Draw>
std::vector<double> Sample(int count, const Draw& draw) {
  std::vector<double> scores(static_cast<std::size_t>(count));
  std::generate(scores.begin(), scores.end(), draw);
  return scores;
}

Exceeded AuditGaussian(std::mt19937_64& random) {
  constexpr double kMu = 1.5;
  constexpr double kDelta = 1e-2;
  std::normal_distribution<double> normal;
  const auto at = [&](double mean) {
    return Sample(kScores, [&] { return mean + normal(random); });
  };
  static const PlannedRanks kPlan = PlanRanks(
      PrivacyProfile(Event::Gaussian(NoiseMultiplier(1 / kMu), Adjacency::kAddRemove), kClaimLines),
      kScores, kScores, Delta(kDelta), kSignificance);
  const auto bounds = TwoWorlds(at(kMu), at(0)).PlannedBounds(Delta(kDelta), kSignificance, kPlan);
  return {bounds.epsilon > GaussianEpsilon(kMu, std::log(kDelta)), bounds.mu > kMu};
}

Exceeded AuditLaplace(std::mt19937_64& random) {
  std::exponential_distribution<double> size;
  const auto at = [&](double mean) {
    return Sample(kScores, [&] { return mean + ((random() & 1) != 0 ? 1 : -1) * size(random); });
  };
  return {TwoWorlds(at(1), at(0)).LowerBounds(Delta(0), kSignificance).epsilon > 1, false};
}

// All scores are ties.
Exceeded AuditRandomisedResponse(std::mt19937_64& random) {
  std::bernoulli_distribution truth(std::exp(1.0) / (1 + std::exp(1.0)));
  const auto with = Sample(kScores, [&] { return truth(random) ? 1.0 : 0.0; });
  const auto without = Sample(kScores, [&] { return truth(random) ? 0.0 : 1.0; });
  return {TwoWorlds(with, without).LowerBounds(Delta(0), kSignificance).epsilon > 1, false};
}

Exceeded AuditOneRun(std::mt19937_64& random) {
  constexpr double kMu = 1.5;
  constexpr double kDelta = 1e-5;
  std::normal_distribution<double> normal;
  ScoredCanaries canaries;
  for (int i = 0; i < kCanaries; ++i) {
    canaries.is_in.push_back(static_cast<char>(random() & 1));
    canaries.scores.push_back(normal(random) + (canaries.is_in.back() != 0 ? kMu / 2 : -kMu / 2));
  }
  const CanaryAudit audit = AuditCanaries(canaries, Delta(kDelta), kSignificance);
  return {audit.epsilon > GaussianEpsilon(kMu, std::log(kDelta)),
          audit.gaussian.mu > kMu || audit.signs.mu > kMu};
}

bool FewFalseAlarms(int audits) {
  constexpr std::array kMechanisms = {AuditGaussian, AuditLaplace, AuditRandomisedResponse,
                                      AuditOneRun};
  std::mt19937_64 random(1);
  int epsilon = 0;
  int mu = 0;
  for (int i = 0; i < audits; ++i) {
    const Exceeded exceeded = kMechanisms[static_cast<std::size_t>(i) % kMechanisms.size()](random);
    epsilon += exceeded.epsilon ? 1 : 0;
    mu += exceeded.mu ? 1 : 0;
  }
  const double limit =
      audits * kSignificance + 3 * std::sqrt(audits * kSignificance * (1 - kSignificance));
  std::printf(
      "of %d audits, %d bounds on epsilon and %d on mu exceed the truth; at most %.0f may\n",
      audits, epsilon, mu, limit);
  return epsilon <= limit && mu <= limit;
}

bool NeverAbove(int draws, int repetitions) {
  constexpr double kDelta = 1e-5;
  constexpr double kSure = 1e-4;
  double mu = 0;
  for (double low = 0, high = 10; high - low > 1e-12;) {  // of epsilon 1
    mu = (low + high) / 2;
    (GaussianEpsilon(mu, std::log(kDelta)) < 1 ? low : high) = mu;
  }
  const std::vector<PrivacyLine> claim =
      PrivacyProfile(Event::Gaussian(NoiseMultiplier(1 / mu), Adjacency::kAddRemove), kClaimLines);
  const PlannedRanks usual_plan = PlanRanks(claim, draws, draws, Delta(kDelta), kSignificance);
  const PlannedRanks sure_plan = PlanRanks(claim, draws, draws, Delta(kDelta), kSure);
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  double by_ratio = 0;
  double by_mu = 0;
  int above = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto with = Sample(draws, [&] { return mu + normal(random); });
    const TwoWorlds worlds(with, Sample(draws, [&] { return normal(random); }));
    const auto usual = worlds.PlannedBounds(Delta(kDelta), kSignificance, usual_plan);
    const auto sure = worlds.PlannedBounds(Delta(kDelta), kSure, sure_plan);
    by_ratio += usual.epsilon / repetitions;
    by_mu += usual.mu_epsilon / repetitions;
    above += sure.epsilon > 1 || sure.mu_epsilon > 1 ? 1 : 0;
  }
  std::printf(
      "one step of epsilon 1, %d draws a world, %d times: above it %d times at 99.99 %%; mean "
      "bounds at 95 %% %.4f (Clopper-Pearson) and %.4f (GDP)\n",
      draws, repetitions, above, by_ratio, by_mu);
  return above == 0;
}

int Number(int argc, char** argv, int place, int otherwise) {
  return argc > place ? std::atoi(argv[place]) : otherwise;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  using sordino::Number;
  const bool few = sordino::FewFalseAlarms(Number(argc, argv, 1, 2000));
  std::fflush(stdout);
  const bool never =
      sordino::NeverAbove(Number(argc, argv, 2, 1'000'000), Number(argc, argv, 3, 1000));
  return few && never ? 0 : 1;
}
