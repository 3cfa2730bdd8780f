#include "sordino/mechanisms/private_selection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

// The distribution of what is released: results stand in the order of their scores, from the worst,
// and `scores` tells which are tied.
std::vector<double> Selected(const std::vector<double>& run, const std::vector<int>& scores,
                             const RunCount& runs) {
  const double gamma = runs.gamma();
  const auto f = [&](double x) { return std::log1p(-(1 - gamma) * x) / std::log(gamma); };
  std::vector<double> released(run.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    double below = 0;
    double tied = 0;
    for (std::size_t j = 0; j < run.size(); ++j) {
      if (scores[j] < scores[i]) below += run[j];
      if (scores[j] == scores[i]) tied += run[j];
    }
    released[i] = run[i] == 0 ? 0 : run[i] / tied * (f(below + tied) - f(below));
  }
  return released;
}

double Divergence(const std::vector<double>& p, const std::vector<double>& q, double epsilon) {
  double delta = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    delta += std::max(0.0, p[i] - std::exp(epsilon) * q[i]);
  }
  return delta;
}

void ExpectDraws(const RunCount& count, std::int64_t most) {
  const SecretRuns runs(count, most);
  InsecureSeededGenerator generator(3);
  constexpr int kDraws = 200'000;
  std::vector<int> counts(static_cast<std::size_t>(most) + 1);
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t k = runs.Draw(generator);
    ASSERT_GE(k, count.IsPoisson() ? 0 : 1);
    ASSERT_LE(k, most);
    ++counts[static_cast<std::size_t>(k)];
  }
  // 150 counts at 5 standard deviations, and one for the small ones: a false alarm in 1e4 seeds.
  double below = 0;
  for (std::int64_t k = 0; k <= most; ++k) {
    const double p = k < most ? count.Probability(k) : 1 - below;
    below += p;
    EXPECT_NEAR(counts[static_cast<std::size_t>(k)], kDraws * p, 5 * std::sqrt(kDraws * p) + 1)
        << k;
  }
}

TEST(SecretRuns, AreDrawnWithTheirProbabilities) {
  ExpectDraws(RunCount::NegativeBinomialOfMean(0, 5), 60);
  ExpectDraws(RunCount::NegativeBinomialOfMean(1, 4), 20);
  ExpectDraws(RunCount::NegativeBinomialOfMean(-0.5, 3), 20);
  ExpectDraws(RunCount::Poisson(3), 12);
  ExpectDraws(RunCount::Poisson(8), 9);  // more than that is drawn as 9
}

TEST(SecretRuns, FailWithTheProbabilityOfMoreRunsThanAreMade) {
  for (const RunCount& count :
       {RunCount::NegativeBinomialOfMean(0, 5), RunCount::NegativeBinomialOfMean(2, 50),
        RunCount::NegativeBinomialOfMean(-0.9, 2), RunCount::Poisson(0.5), RunCount::Poisson(40),
        RunCount::Poisson(500)}) {
    for (const double probability : {0.3, 1e-3, 1e-9}) {
      const SecretRuns runs = SecretRuns::Within(count, probability);
      double above = 0;
      for (std::int64_t k = runs.most() + 1; k < runs.most() + 1'000'000; ++k) {
        const double p = count.Probability(k);
        above += p;
        if (p < 1e-12 * above) break;
      }
      EXPECT_LE(above, probability);
      EXPECT_GT(above + count.Probability(runs.most()), probability * (1 - 1e-5));
      EXPECT_GE(runs.Failure(), above);
      // The rounding of a draw.
      const double rounding =
          0x1p-53 * (1000 + 4 * (count.Mean() + static_cast<double>(runs.most())));
      EXPECT_LE(runs.Failure(), above * (1 + 1e-5) + rounding);
    }
  }
}

TEST(SecretRuns, MistakesGetOneSentence) {
  EXPECT_THROW(SecretRuns(RunCount::Poisson(501), 10), Error);
  EXPECT_THROW(SecretRuns(RunCount::TruncatedNegativeBinomial(1, 1e-4), 10), Error);
}

TEST(PrivateSelection, CostsTwiceThePureEpsilonOfARunWhateverTheNumberOfRuns) {
  InsecureSeededGenerator generator(11);
  const auto uniform = [&] { return static_cast<double>(generator.Next64() >> 11U) * 0x1p-53; };
  double largest = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const double epsilon = 0.1 + 2 * uniform();
    const RunCount runs = RunCount::NegativeBinomialOfMean(0, 1.05 + std::exp(6 * uniform()));
    // A pair whose ratios are within e^epsilon: weights in [1, e^epsilon] of a common measure,
    // normalised, may differ by more; so the true loss is computed and compared.
    const std::size_t size = 2 + generator.Next64() % 5;
    std::vector<double> p(size);
    std::vector<double> q(size);
    std::vector<int> scores(size);
    double sum_p = 0;
    double sum_q = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double base = std::exp(-8 * uniform());
      sum_p += p[i] = base * (generator.Next64() % 2 == 0 ? std::exp(epsilon) : 1);
      sum_q += q[i] = base * (generator.Next64() % 2 == 0 ? std::exp(epsilon) : 1);
      scores[i] = static_cast<int>(generator.Next64() % size);
    }
    double loss = 0;
    for (std::size_t i = 0; i < size; ++i) {
      p[i] /= sum_p;
      q[i] /= sum_q;
      loss = std::max(loss, std::abs(std::log(p[i] / q[i])));
    }
    const std::vector<double> a = Selected(p, scores, runs);
    const std::vector<double> b = Selected(q, scores, runs);
    for (std::size_t i = 0; i < size; ++i) {
      const double selected = std::abs(std::log(a[i] / b[i]));
      EXPECT_LE(selected, 2 * loss + 1e-11);
      if (loss > 0.05) largest = std::max(largest, selected / loss);
    }
  }
  EXPECT_GT(largest, 1.9);  // the factor is needed
}

TEST(PrivateSelection, KeepsToTheDeltaOfTheTheorem) {
  // Runs of randomised response with a leak: with probability delta the dataset is told.
  for (const double epsilon : {0.2, 1.0, 3.0}) {
    for (const double delta : {1e-6, 1e-3, 1e-2}) {
      for (const double mean : {1.5, 5.0, 50.0}) {
        const RunCount runs = RunCount::NegativeBinomialOfMean(0, mean);
        const double heads = std::exp(epsilon) / (1 + std::exp(epsilon));
        for (const std::vector<int>& scores :
             {std::vector<int>{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 3, 3}, {2, 0, 3, 1}}) {
          const std::vector<double> p = {delta, 0, (1 - delta) * heads, (1 - delta) * (1 - heads)};
          const std::vector<double> q = {0, delta, (1 - delta) * (1 - heads), (1 - delta) * heads};
          const double bound = mean * delta * (1 + std::exp(2 * epsilon)) / (1 + std::exp(epsilon));
          EXPECT_LE(Divergence(Selected(p, scores, runs), Selected(q, scores, runs), 2 * epsilon),
                    bound * (1 + 1e-9));
          EXPECT_LE(Divergence(Selected(q, scores, runs), Selected(p, scores, runs), 2 * epsilon),
                    bound * (1 + 1e-9));
        }
      }
    }
  }
}

TEST(PlanSelection, SpendsTheBudgetByTheTheorem) {
  const std::optional<SelectionBudget> budget =
      PlanSelection(Epsilon(2), Delta(1e-6), 10, Adjacency::kReplaceOne);
  ASSERT_TRUE(budget.has_value());
  EXPECT_NEAR(budget->run_epsilon.value(), 1, 1e-9);
  const double back = 10 * budget->run_delta.value() * (1 + std::exp(2.0)) / (1 + std::exp(1.0));
  EXPECT_LE(back, 1e-6);
  EXPECT_GT(back, 0.999e-6);
  EXPECT_EQ(budget->event.adjacency(), Adjacency::kReplaceOne);
  EXPECT_LE(SpentEpsilon(budget->event, Delta(1e-6), budget->failure).upper, 2 * (1 + 1e-9));
  // A pure budget has nothing that pays for the drawing.
  EXPECT_FALSE(PlanSelection(Epsilon(1), Delta(0), 10, Adjacency::kAddRemove).has_value());
  // And large ones do not overflow.
  EXPECT_TRUE(PlanSelection(Epsilon(5), Delta(1e-3), 1000, Adjacency::kAddRemove).has_value());
}

TEST(PlanSelection, MistakesGetOneSentence) {
  for (const double runs : {0.0, 1.0, -3.0, 1e9, std::nan("")}) {
    EXPECT_THROW(PlanSelection(Epsilon(1), Delta(1e-6), runs, Adjacency::kAddRemove), Error);
  }
  EXPECT_THROW(PlanSelection(Epsilon(0), Delta(1e-6), 5, Adjacency::kAddRemove), Error);
}

}  // namespace
}  // namespace sordino
