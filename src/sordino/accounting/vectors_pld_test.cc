// The rows of the reference table that need a distribution of the privacy loss.
//
// A row passes when the certified interval contains the expected value, give or take the row's own
// tolerance, and is itself no wider than a stated share of it.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/vector_rows.h"

namespace sordino {
namespace {

// Relative width that an interval may have unless a row says otherwise.
constexpr double kWidth = 1e-5;

Event SampledGaussian(double rate, double noise, Adjacency adjacency = Adjacency::kAddRemove) {
  return Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise), adjacency));
}

Event Steps(const Event& step, double count) {
  return Event::Repeat(step, static_cast<std::uint64_t>(std::llround(count)));
}

Event SampledSteps(const VectorRow& row) {
  return Steps(SampledGaussian(row.Number("q"), row.Number("sigma")), row.NumberOr("T", 1));
}

void ExpectContains(const VectorRow& row, Interval interval, double width = kWidth) {
  EXPECT_LE(interval.lower, interval.upper) << row.id;
  EXPECT_LE(interval.lower, row.expected * (1 + row.rtol)) << row.id;
  EXPECT_GE(interval.upper, row.expected * (1 - row.rtol)) << row.id;
  EXPECT_LE(interval.upper - interval.lower, width * row.expected) << row.id;
}

Interval EpsilonOf(const VectorRow& row, const Event& event) {
  return CertifiedEpsilon(event, std::log(row.Number("delta"))).value;
}

Interval DeltaOf(const VectorRow& row, const Event& event) {
  const Interval log_delta = CertifiedLogDelta(event, row.Number("eps")).value;
  return {std::exp(log_delta.lower), std::exp(log_delta.upper)};
}

void CheckEvent(const VectorRow& row, const Event& event, double width = kWidth) {
  ExpectContains(row, row.quantity == "delta" ? DeltaOf(row, event) : EpsilonOf(row, event), width);
}

// delta of one direction of the adjacency, exact.
void CheckDirection(const VectorRow& row, const Event& event, std::size_t direction) {
  const DominatingPairs pairs = DominatingPairsOf(event);
  ASSERT_GT(pairs.upper.size(), direction) << row.id;
  const double delta = std::exp(ExactLogDelta(pairs.upper[direction], row.Number("eps")));
  EXPECT_NEAR(delta, row.expected, row.rtol * row.expected) << row.id;
}

void CheckCalibration(const VectorRow& row) {
  const double sensitivity = row.NumberOr("sens", 1);
  const auto calibrated = CalibrateNoise(
      [&](NoiseMultiplier noise) {
        return Steps(SampledGaussian(row.Number("q"), noise.value()), row.Number("T"));
      },
      Epsilon(row.Number("eps")), Delta(row.Number("delta")));
  ASSERT_TRUE(calibrated) << row.id;
  const double noise = calibrated->noise.value() * sensitivity;
  // Never below what is needed, and the tightest to 1e-4.
  EXPECT_GE(noise, row.expected * (1 - row.rtol)) << row.id;
  EXPECT_LE(noise, row.expected * (1 + row.rtol + 1e-4)) << row.id;
  EXPECT_LE(calibrated->epsilon.upper, row.Number("eps")) << row.id;
}

// The source gives noise truncated to [-cut, cut], which has outcomes that give the record away;
// the events here have no truncation, so the pair is written out.
LossPair TruncatedDiscreteGaussian(double sigma, int cut, double rate) {
  double total = 0;
  for (int x = -cut; x <= cut; ++x) total += std::exp(-0.5 * x * x / (sigma * sigma));
  const auto f = [&](int x) {
    return std::abs(x) <= cut ? std::exp(-0.5 * x * x / (sigma * sigma)) / total : 0.0;
  };
  LossPair pair;
  for (int x = -cut; x <= cut + 1; ++x) {
    const double p = (1 - rate) * f(x) + rate * f(x - 1);
    if (f(x) > 0) {
      pair.atoms.push_back({std::log(p / f(x)), p});
    } else {
      pair.infinite_mass += p;
    }
  }
  return pair;
}

void CheckTruncatedDiscreteGaussian(const VectorRow& row) {
  const LossPair pair = TruncatedDiscreteGaussian(
      row.Number("sigma"), static_cast<int>(row.Number("trunc")), row.NumberOr("q", 1));
  const double delta = std::exp(ExactLogDelta(pair, row.Number("eps")));
  EXPECT_NEAR(delta, row.expected, row.rtol * row.expected) << row.id;
}

// Ten groups of ten steps, sigma from 1.6 to 1.8 and q from 0.05 to 0.06; the second row's "same"
// names the first.
void CheckSchedule(const VectorRow& row) {
  std::vector<std::pair<Event, std::uint64_t>> groups;
  groups.reserve(10);
  for (int i = 0; i < 10; ++i) {
    groups.emplace_back(SampledGaussian(0.05 + 0.01 * i / 9, 1.6 + 0.2 * i / 9), 10);
  }
  CheckEvent(row, Event::Compose(groups));
}

// The row says "same" of a row that is not in the table: sampling for which Poisson batches spend
// about 1. At these parameters they spend 0.947.
void CheckFixedIsNotPoisson(const VectorRow& row) {
  const double log_delta = std::log(1e-6);
  const Event poisson = Steps(SampledGaussian(0.001, 0.8), 10000);
  // Fixed batches count in units of the replace-one sensitivity, 2.
  const Event fixed =
      Steps(Event::Fixed(SamplingRate(0.001),
                         Event::Gaussian(NoiseMultiplier(0.4), Adjacency::kReplaceOne)),
            10000);
  EXPECT_LE(CertifiedEpsilon(poisson, log_delta).value.upper, 1) << row.id;
  EXPECT_GE(CertifiedEpsilon(fixed, log_delta).value.lower, row.expected) << row.id;
}

const RowCheckers& PldCheckers() {
  static const RowCheckers checkers = {
      {"poisson_gaussian PLD", [](const VectorRow& row) { CheckEvent(row, SampledSteps(row)); }},
      {"poisson_gaussian PLD calibrate", CheckCalibration},
      {"poisson_gaussian calibrate", CheckCalibration},
      {"poisson_gaussian PLD calibrate (discrete)",
       [](const VectorRow& row) {
         const auto steps = CalibrateSteps(SampledGaussian(row.Number("q"), row.Number("sigma")),
                                           Epsilon(row.Number("eps")), Delta(row.Number("delta")));
         ASSERT_TRUE(steps) << row.id;
         EXPECT_EQ(static_cast<double>(steps->steps), row.expected) << row.id;
       }},
      {"poisson_gaussian remove",
       [](const VectorRow& row) {
         CheckDirection(row, SampledGaussian(row.Number("q"), row.Number("sigma")), 0);
         CheckEvent(row, SampledGaussian(row.Number("q"), row.Number("sigma")));
       }},
      {"poisson_gaussian add",
       [](const VectorRow& row) {
         CheckDirection(row, SampledGaussian(row.Number("q"), row.Number("sigma")), 1);
       }},
      {"poisson_gaussian replace-one",
       [](const VectorRow& row) {
         const Event event = SampledGaussian(
             row.Number("q"), row.Number("sigma") / row.Number("sens"), Adjacency::kReplaceOne);
         CheckDirection(row, event, 0);
         CheckEvent(row, event);
       }},
      {"gaussian substitution pair",
       [](const VectorRow& row) {
         CheckEvent(row, Steps(SampledGaussian(row.Number("q"), row.Number("sigma"),
                                               Adjacency::kReplaceOne),
                               row.Number("T")));
       }},
      {"heterogeneous poisson_gaussian", CheckSchedule},
      {"fourier accountant",
       [](const VectorRow& row) {
         const Interval epsilon = EpsilonOf(row, SampledSteps(row));
         const double high = std::strtod(
             row.expected_text.substr(row.expected_text.find("..") + 2).c_str(), nullptr);
         EXPECT_GE(epsilon.lower, row.expected) << row.id;
         EXPECT_LE(epsilon.upper, high) << row.id;
       }},
      {"poisson vs WOR", CheckFixedIsNotPoisson},
      {"basic composition eps-delta PLD",
       [](const VectorRow& row) {
         CheckEvent(row,
                    Event::Compose(std::vector<Event>{Event::Approximate(Epsilon(1), Delta(0.1)),
                                                      Event::Approximate(Epsilon(2), Delta(0.2))}));
       }},
      {"laplace composition",
       [](const VectorRow& row) {
         CheckEvent(row, Steps(Event::Laplace(NoiseMultiplier(row.Number("b"))), row.Number("T")),
                    1e-4);
       }},
      {"laplace x40 + gaussian",
       [](const VectorRow& row) {
         CheckEvent(row,
                    Event::Compose({{Event::Laplace(NoiseMultiplier(3)), 40},
                                    {Event::Gaussian(NoiseMultiplier(5)), 1}}),
                    1e-4);
       }},
      {"laplace heterogeneous",
       [](const VectorRow& row) {
         CheckEvent(row, Event::Compose({{Event::Laplace(NoiseMultiplier(1)), 3},
                                         {Event::Laplace(NoiseMultiplier(2)), 2}}));
       }},
      {"laplace",
       [](const VectorRow& row) {
         CheckEvent(row, Event::Laplace(NoiseMultiplier(row.Number("b") / row.Number("sens"))));
       }},
      {"poisson_laplace",
       [](const VectorRow& row) {
         CheckEvent(row, Steps(Event::Poisson(SamplingRate(row.Number("q")),
                                              Event::Laplace(NoiseMultiplier(row.Number("b")))),
                               row.Number("T")));
       }},
      {"poisson_laplace add",
       [](const VectorRow& row) {
         CheckDirection(
             row,
             Event::Poisson(SamplingRate(row.Number("q")),
                            Event::Laplace(NoiseMultiplier(row.Number("b") / row.Number("sens")))),
             1);
       }},
      {"discrete_laplace",
       [](const VectorRow& row) {
         CheckEvent(row, Event::DiscreteLaplace(1 / row.Number("a"),
                                                static_cast<std::uint64_t>(row.Number("sens"))));
       }},
      {"discrete_gaussian", CheckTruncatedDiscreteGaussian},
      {"mixture_gaussian",
       [](const VectorRow& row) {
         const Event first =
             Event::MixtureGaussian(NoiseMultiplier(1), {{0, 0.2}, {1, 0.6}, {2, 0.2}});
         const Event second =
             Event::MixtureGaussian(NoiseMultiplier(2), {{0, 0.33}, {2, 0.34}, {3, 0.33}});
         CheckEvent(row, Event::Compose({{first, 3}, {second, 2}}), 1e-4);
       }},
      {"truncated_poisson",
       [](const VectorRow& row) {
         // The source adds the two ways in which a full batch differs; the pair here takes batches
         // that are full or nearly so together, and also covers one record more than the dataset
         // has.
         const auto truncated = [](std::uint64_t dataset) {
           return Event::TruncatedPoisson(dataset, SamplingRate(0.5), 2,
                                          Event::Gaussian(NoiseMultiplier(1)));
         };
         const Interval epsilon =
             EpsilonOf(row, Event::Compose({{truncated(4), 3}, {truncated(3), 2}}));
         EXPECT_LE(epsilon.upper, row.expected) << row.id;
         EXPECT_NEAR(epsilon.upper, 10.6659, 2e-3) << row.id;
         EXPECT_LE(epsilon.lower, epsilon.upper) << row.id;
       }},
  };
  return checkers;
}

TEST(AccountingVectors, EveryPrivacyLossRowHolds) { CheckVectorRows(PldCheckers(), true, 30); }

// A replace-one release whose upper and lower rows are in the table through randomised response:
// the distribution agrees with the composition theorem that vectors_test.cc checks.
TEST(AccountingVectors, RandomisedResponseRowHoldsOnTheGridToo) {
  // Row V141: p = 0.9, two buckets, a thousand reports, delta 1e-5.
  const Event event = Steps(Event::RandomizedResponse(0.9, 2, Adjacency::kReplaceOne), 1000);
  const Interval epsilon = CertifiedEpsilon(event, std::log(1e-5)).value;
  EXPECT_LE(epsilon.lower, 46.08477562 * (1 + 1e-8));
  EXPECT_GE(epsilon.upper, 46.08477562 * (1 - 1e-8));
  EXPECT_LE(epsilon.upper - epsilon.lower, 1e-5 * epsilon.upper);
}

}  // namespace
}  // namespace sordino
