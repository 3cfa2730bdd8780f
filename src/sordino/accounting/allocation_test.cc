#include "sordino/accounting/allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"
#include "sordino/accounting/internal/engines/exact_release.h"

namespace sordino {
namespace {

Event Allocated(std::uint64_t batches, double sigma, std::uint64_t epochs = 1,
                Adjacency adjacency = Adjacency::kAddRemove) {
  return Event::Repeat(
      Event::Allocation(batches, Event::Gaussian(NoiseMultiplier(sigma), adjacency)), epochs);
}

Interval EpsilonOf(const Event& event, double delta) {
  return CertifiedEpsilon(event, std::log(delta)).value;
}

// Expected values: E_Q[(S/t - e^epsilon)_+] and E_Q[(1 - e^epsilon S/t)_+] with all but one ratio
// integrated by adaptive quadrature (mpmath, 25 digits for t = 2 and 18 for t = 3) and the last one
// in closed form (a call or a put on a log-normal variable).
struct TwoBatches {
  double sigma;
  double remove;  // epsilon at delta 1e-6
  double add;
};

TEST(Allocation, TwoBatchesMatchQuadrature) {
  for (const TwoBatches& row :
       {TwoBatches{1, 4.20124566314, 3.44950108667}, TwoBatches{0.7, 6.68012959751, 5.27163525261},
        TwoBatches{3, 1.02716920212, 1.0043168691}}) {
    const double log_delta = std::log(1e-6);
    const AllocationPairs pairs = PairsOfAllocation(2, row.sigma, {log_delta, 1});
    for (const bool remove : {true, false}) {
      const double truth = remove ? row.remove : row.add;
      const double upper = ExactEpsilon(remove ? pairs.remove_upper : pairs.add_upper, log_delta);
      const double lower = ExactEpsilon(remove ? pairs.remove_lower : pairs.add_lower, log_delta);
      EXPECT_GE(upper, truth) << row.sigma << remove;
      EXPECT_LE(lower, truth) << row.sigma << remove;
      EXPECT_LE(upper - lower, 8e-4 * truth) << row.sigma << remove;
    }
  }
}

// The moments of a pair are summed with the help of what its masses leave missing.
TEST(Allocation, PairsTellWhatTheirMassesMiss) {
  const AllocationPairs pairs = PairsOfAllocation(50, 1.5, {std::log(1e-6), 20});
  for (const LossPair* pair :
       {&pairs.remove_upper, &pairs.remove_lower, &pairs.add_upper, &pairs.add_lower}) {
    double p = pair->infinite_mass + pair->missing_p;
    double q = pair->absent_q;
    for (const LossAtom& atom : pair->atoms) {
      p += atom.mass;
      q += atom.mass * std::exp(-atom.loss);
    }
    EXPECT_NEAR(p, 1, 1e-13);
    EXPECT_NEAR(q, 1, 1e-13);
  }
}

struct ThreeBatches {
  double sigma;
  double epsilon;
  double remove;  // delta
  double add;
};

TEST(Allocation, ThreeBatchesMatchQuadrature) {
  for (const ThreeBatches& row : {ThreeBatches{1, 2.5, 0.000267595286902, 1.06134981034e-5},
                                  ThreeBatches{1.5, 1, 0.00223765461524, 0.00133883961508}}) {
    const AllocationPairs pairs = PairsOfAllocation(3, row.sigma, {std::log(row.remove), 1});
    for (const bool remove : {true, false}) {
      const double truth = std::log(remove ? row.remove : row.add);
      const double upper =
          ExactLogDelta(remove ? pairs.remove_upper : pairs.add_upper, row.epsilon);
      const double lower =
          ExactLogDelta(remove ? pairs.remove_lower : pairs.add_lower, row.epsilon);
      EXPECT_GE(upper, truth) << row.sigma << remove;
      EXPECT_LE(lower, truth) << row.sigma << remove;
      EXPECT_LE(upper - lower, 1e-3) << row.sigma << remove;
    }
  }
}

// The density of log(S/2) by the trapezoidal rule over the share of one ratio in S, convolved with
// itself point by point (128-bit floats, 6,000 points, P and Q sum to 1 to 12 digits). "Add" is
// smaller: 1.896e-6.
TEST(Allocation, TwoEpochsOfTwoBatchesMatchBruteForce) {
  const Interval log_delta = CertifiedLogDelta(Allocated(2, 1, 2), 4.998).value;
  const double truth = std::log(2.70985295533e-05);
  EXPECT_GE(log_delta.upper, truth);
  EXPECT_LE(log_delta.lower, truth);
  EXPECT_LE(log_delta.upper - log_delta.lower, 3e-3);
}

// Intervals of an independent implementation (first-order rounding of e^Y up and down), and the
// Poisson-sampled run of the same length beside them.
TEST(Allocation, LiesInsidePublishedIntervals) {
  const Interval one = EpsilonOf(Allocated(100, 1), 1e-6);
  EXPECT_GE(one.lower, 0.857847);
  EXPECT_LE(one.upper, 0.858124);
  EXPECT_LE(one.upper - one.lower, 5e-5);
  const Event poisson =
      Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1))), 100);
  EXPECT_NEAR(EpsilonOf(poisson, 1e-6).upper, 0.954218, 2e-6);
  const Interval ten = EpsilonOf(Allocated(100, 2, 10), 1e-6);
  EXPECT_GE(ten.lower, 0.69443);
  EXPECT_LE(ten.upper, 0.69736);
  EXPECT_LE(ten.upper - ten.lower, 1e-5);
}

// delta by drawing: t - 1 ratios under Q and one under P for "remove", all under Q for "add".
struct Drawn {
  double delta = 0;
  double error = 0;  // standard error
};

Drawn Draw(std::uint64_t batches, double sigma, int epochs, double epsilon, bool remove,
           std::uint64_t seed) {
  constexpr int kDraws = 100000;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const double s = 1 / sigma;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    double loss = 0;
    for (int e = 0; e < epochs; ++e) {
      double ratios = 0;
      for (std::uint64_t j = 0; j < batches; ++j) {
        const double u = normal(random) + (remove && j == 0 ? s : 0);
        ratios += std::exp(s * u - 0.5 * s * s);
      }
      const double log_mean = std::log(ratios / static_cast<double>(batches));
      loss += remove ? log_mean : -log_mean;
    }
    const double gain = std::max(0.0, -std::expm1(epsilon - loss));
    sum += gain;
    squares += gain * gain;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt((squares / kDraws - mean * mean) / kDraws)};
}

// Twelve comparisons at five standard errors: a false alarm in one of 10^5 seeds.
TEST(Allocation, AgreesWithDrawnLosses) {
  struct Case {
    std::uint64_t batches;
    double sigma;
    int epochs;
    double epsilon;
  };
  std::uint64_t seed = 1;
  for (const Case& c : {Case{10, 1, 1, 0.5}, Case{10, 0.5, 1, 1.5}, Case{5, 1, 3, 1},
                        Case{20, 2, 4, 0.3}, Case{50, 0.8, 1, 0.3}, Case{4, 3, 10, 0.5}}) {
    const AllocationPairs pairs = PairsOfAllocation(
        c.batches, c.sigma, {std::log(1e-2), static_cast<std::uint64_t>(c.epochs)});
    const Interval certified =
        CertifiedLogDelta(Allocated(c.batches, c.sigma, static_cast<std::uint64_t>(c.epochs)),
                          c.epsilon)
            .value;
    double largest = 0;
    double largest_error = 0;
    for (const bool remove : {true, false}) {
      const Drawn drawn = Draw(c.batches, c.sigma, c.epochs, c.epsilon, remove, seed++);
      EXPECT_LE(drawn.delta, std::exp(certified.upper) + 5 * drawn.error) << c.batches << remove;
      if (c.epochs == 1) {
        const double upper =
            std::exp(ExactLogDelta(remove ? pairs.remove_upper : pairs.add_upper, c.epsilon));
        const double lower =
            std::exp(ExactLogDelta(remove ? pairs.remove_lower : pairs.add_lower, c.epsilon));
        EXPECT_NEAR(drawn.delta, upper, 5 * drawn.error + 2e-3 * upper) << c.batches << remove;
        EXPECT_NEAR(drawn.delta, lower, 5 * drawn.error + 2e-3 * upper) << c.batches << remove;
      }
      if (drawn.delta > largest) {
        largest = drawn.delta;
        largest_error = drawn.error;
      }
    }
    EXPECT_NEAR(std::exp(certified.upper), largest, 5 * largest_error + 2e-3 * largest);
    EXPECT_NEAR(std::exp(certified.lower), largest, 5 * largest_error + 2e-3 * largest);
  }
}

TEST(Allocation, PairsAreBoundsInMass) {
  for (const double sigma : {0.3, 0.5, 1.0, 5.0}) {
    for (const std::uint64_t batches : {2U, 3U, 30U, 1000U}) {
      const AllocationPairs pairs = PairsOfAllocation(batches, sigma, {std::log(1e-7), 3});
      const auto mass = [](const LossPair& pair, double tilt) {
        double sum = tilt == 0 ? pair.infinite_mass : 0;
        for (const LossAtom& atom : pair.atoms) sum += atom.mass * std::exp(tilt * atom.loss);
        return sum;
      };
      for (const LossPair* upper : {&pairs.remove_upper, &pairs.add_upper}) {
        EXPECT_GE(mass(*upper, 0), 1 - 1e-9) << sigma << ' ' << batches;
        EXPECT_LE(mass(*upper, 0), 1 + 1e-6) << sigma << ' ' << batches;
      }
      for (const LossPair* lower : {&pairs.remove_lower, &pairs.add_lower}) {
        EXPECT_LE(mass(*lower, 0), 1) << sigma << ' ' << batches;
        EXPECT_LE(mass(*lower, -1), 1) << sigma << ' ' << batches;  // under the other law
      }
    }
  }
}

// The certified intervals cannot be out of order where the truth is in order.
TEST(Allocation, MoreNoiseMoreBatchesAndFewerEpochsSpendLess) {
  const auto ordered = [](const Event& less, const Event& more) {
    const Interval a = EpsilonOf(less, 1e-5);
    const Interval b = EpsilonOf(more, 1e-5);
    EXPECT_LE(a.lower, a.upper) << less.ToString();
    EXPECT_LE(a.lower, b.upper) << less.ToString() << " against " << more.ToString();
    EXPECT_LT(a.upper, b.upper) << less.ToString() << " against " << more.ToString();
  };
  for (const double sigma : {0.5, 1.0, 3.0}) {
    ordered(Allocated(50, sigma * 1.1), Allocated(50, sigma));
    ordered(Allocated(60, sigma), Allocated(50, sigma));
    ordered(Allocated(50, sigma, 2), Allocated(50, sigma, 3));
    // Telling the place of the record leaves one Gaussian step an epoch.
    ordered(Allocated(50, sigma, 2), Event::Repeat(Event::Gaussian(NoiseMultiplier(sigma)), 2));
  }
}

TEST(Allocation, IntervalsAreNarrowInPractice) {
  struct Case {
    std::uint64_t batches;
    double sigma;
    std::uint64_t epochs;
    double delta;
    double width;  // relative
  };
  for (const Case& c :
       {Case{100, 4, 100, 1e-6, 1e-4}, Case{1000, 0.8, 20, 1e-8, 2e-3},
        Case{10000, 1, 100, 1e-6, 5e-3}, Case{234, 1.1, 60, 1e-5, 2e-3},
        Case{100, 0.5, 5, 1e-6, 3e-3}, Case{2, 10, 50, 1e-6, 1e-4}, Case{100, 1, 1, 1e-12, 1e-3}}) {
    const Interval epsilon = EpsilonOf(Allocated(c.batches, c.sigma, c.epochs), c.delta);
    EXPECT_GT(epsilon.lower, 0);
    EXPECT_LE(epsilon.upper - epsilon.lower, c.width * epsilon.upper)
        << c.batches << ' ' << c.sigma << ' ' << c.epochs << ": " << epsilon.lower << ' '
        << epsilon.upper;
  }
}

TEST(Allocation, DeltaAndEpsilonAreInverse) {
  const Event event = Allocated(100, 2, 10);
  for (const double epsilon : {0.2, 0.6959, 1.2}) {
    const Interval log_delta = CertifiedLogDelta(event, epsilon).value;
    EXPECT_LE(log_delta.upper - log_delta.lower, 0.01);
    EXPECT_LE(CertifiedEpsilon(event, log_delta.upper).value.lower, epsilon * (1 + 1e-9));
    EXPECT_GE(CertifiedEpsilon(event, log_delta.lower).value.upper, epsilon * (1 - 1e-9));
  }
}

TEST(Allocation, ZeroOutIsAddRemove) {
  const Interval a = EpsilonOf(Allocated(20, 1.5, 4), 1e-6);
  const Interval b = EpsilonOf(Allocated(20, 1.5, 4, Adjacency::kZeroOut), 1e-6);
  EXPECT_EQ(a.upper, b.upper);
  EXPECT_EQ(a.lower, b.lower);
}

TEST(Allocation, ComposesWithOtherReleases) {
  const Event alone = Allocated(100, 2, 10);
  const Event gaussian = Event::Gaussian(NoiseMultiplier(5));
  const Interval both = EpsilonOf(Event::Compose({alone, gaussian}), 1e-6);
  EXPECT_GT(both.lower, EpsilonOf(alone, 1e-6).upper);
  EXPECT_LT(both.upper, EpsilonOf(alone, 5e-7).upper + EpsilonOf(gaussian, 5e-7).upper);
  EXPECT_LE(both.upper - both.lower, 1e-3 * both.upper);
}

TEST(Allocation, LittleNoiseAndManyBatchesHaveABound) {
  // Where the lattice does not reach, the interval is wide and still ordered.
  for (const Event& event : {Allocated(100, 0.05), Allocated(100, 0.2, 3), Allocated(2, 0.3, 4),
                             Allocated(2, 1000), Allocated(1000, 1e5, 7), Allocated(50, 1e9),
                             Allocated(44, 40, 5), Allocated(std::uint64_t{1} << 40, 1, 2)}) {
    for (const double delta : {1e-15, 1e-6, 0.3}) {
      const Interval epsilon = SpentEpsilon(event, Delta(delta));
      EXPECT_LE(epsilon.lower, epsilon.upper) << event.ToString();
      EXPECT_TRUE(std::isfinite(epsilon.upper)) << event.ToString();
    }
  }
  EXPECT_TRUE(std::isinf(CertifiedEpsilon(Allocated(100, 1), -kInfinity).value.lower));
}

// A second lattice for smaller ratios would lose the bulk of them.
TEST(Allocation, RatiosCloseToOneNeedOneLattice) {
  const Interval value =
      CertifiedEpsilon(Event::Parse("add-remove: 792*allocation(46182, gaussian(12.1825))"),
                       std::log(1.45581e-11))
          .value;
  EXPECT_GT(value.lower, 0.0364);  // at a noise of 20
  EXPECT_LT(value.upper, 0.0942);  // at a noise of 8
  EXPECT_LE(value.upper - value.lower, 0.01 * value.upper);
}

TEST(Allocation, EveryMethodBoundsTheLowerEnd) {
  const AccountReport report = Account(Allocated(100, 1, 2), Delta(1e-6));
  EXPECT_EQ(report.decided_by, "pld");
  for (const MethodReport& method : report.methods) {
    EXPECT_TRUE(method.sound) << method.name;
    EXPECT_GE(method.value, report.value.lower) << method.name;
  }
}

TEST(Allocation, NoiseIsCalibratedToABudget) {
  const auto found = CalibrateNoise(
      [](NoiseMultiplier noise) {
        return Event::Repeat(Event::Allocation(100, Event::Gaussian(noise)), 10);
      },
      Epsilon(1), Delta(1e-6));
  ASSERT_TRUE(found.has_value());
  EXPECT_LE(found->epsilon.upper, 1);
  EXPECT_GE(found->epsilon.lower, 0.9995);
}

}  // namespace
}  // namespace sordino
