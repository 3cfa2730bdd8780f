// Mutants and the tests that kill them:
//   remainder without rejection, or < for <=      FixedSize.DrawsAgainWordsThatWouldFavourSome
//   a bound one too small or too large            FixedSize.FollowsTheScript, IsUniform...
//   shuffle of n from 0 instead of from i         FixedSize.IsUniform... (n^n outcomes do not
//                                                 divide into n! alike)
//   with replacement                              FixedSize.HasDistinctRecordsInRange
//   the swapped record is forgotten               FixedSize.HasDistinctRecordsInRange
//   a record that moved twice is lost             FixedSize.FollowsTheScript
//   an empty batch is drawn again                 Poisson.RecordsEnterIndependently
//   sorted instead of random order                FixedSize.IsUniform..., FollowsTheScript
//   rate of a float grid, or rate times 0.99      Poisson.UsesTheRateThatIsAccounted
//   a batch of rounded size instead of coins      Poisson.RecordsEnterIndependently
//   the last record left out                      Poisson.RateOne..., FixedSize.CanBeAll...
//   a place one too far, or never the last        Allocation.FollowsTheScript
//   a place by remainder alone                    Allocation.DrawsAgainWordsThatWouldFavourSome
//   shuffled into batches of one size             Allocation.PlacesAreUniformAndIndependent
//   an allocation used twice                      Allocation.PassesAreIndependent
#include "sordino/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/random/bernoulli.h"
#include "sordino/random/generator.h"
#include "sordino/sampling/sampler_component.h"

namespace sordino {
namespace {

using Indices = std::vector<std::uint64_t>;
constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

// Gives out the words of a script, then zeros, and knows how many words were drawn one by one.
class Script final : public Generator {
 public:
  explicit Script(Indices words) : words_(std::move(words)) {}
  void Fill(std::span<std::byte> out) override {
    for (std::size_t i = 0; i < out.size(); i += 8) {
      const std::uint64_t word = next_ < words_.size() ? words_[next_] : 0;
      ++next_;
      std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, out.size() - i));
    }
  }
  bool IsPrivate() const override { return false; }

 private:
  Indices words_;
  std::size_t next_ = 0;
};

// The probability that a chi-square with `degrees` degrees of freedom exceeds this is below 1e-9:
// Laurent and Massart (2000), Lemma 1, P(X >= d + 2 sqrt(d x) + 2 x) <= exp(-x), x = 20.73. A bound
// and not an approximation, so the rates of false alarms below are bounds too, up to the chi-square
// law itself, for which every cell expects at least 20.
double ChiSquareLimit(double degrees) {
  constexpr double kX = 20.73;
  return degrees + 2 * std::sqrt(degrees * kX) + 2 * kX;
}

TEST(Samplers, AreKnownByName) {
  EXPECT_EQ(Samplers().ChoiceHelp(), "poisson, fixed, full, allocation, cyclic or ordered");
  for (const char* name : {"", "Poisson", "shuffle", "fixed ", "poisson\n"}) {
    EXPECT_THROW(Samplers().Find(name), Error) << name;
  }
  try {
    Samplers().Find("poison");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the sampling is 'poison', which is not known; did you mean 'poisson'? it can be "
                 "poisson, fixed, full, allocation, cyclic or ordered.");
  }
}

TEST(Poisson, SelectsTheRecordsWhoseWordsAreBelowTheThreshold) {
  constexpr std::uint64_t kQuarter = std::uint64_t{1} << 62;
  Script generator({kQuarter - 1, kQuarter, kAllOnes, 0, kQuarter + 1, 7});
  EXPECT_EQ(SamplePoisson(generator, SamplingRate(0.25), 6), (Indices{0, 3, 5}));
}

TEST(Poisson, UsesTheRateThatIsAccounted) {
  for (const double rate : {0.5, 1.0 / 3, 256.0 / 60'000, 1e-8, 1e-30}) {
    const double effective = EffectiveRate(SamplingRate(rate)).value();
    const auto threshold = static_cast<std::uint64_t>(std::ldexp(effective, 64));
    Script generator({threshold - 1, threshold, threshold - 1, threshold});
    EXPECT_EQ(SamplePoisson(generator, SamplingRate(rate), 4), (Indices{0, 2})) << rate;
  }
}

TEST(Poisson, RateZeroIsNobodyAndRateOneEverybody) {
  InsecureSeededGenerator generator(1);
  Indices all(5000);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(SamplePoisson(generator, SamplingRate(0), 5000).empty());
    EXPECT_EQ(SamplePoisson(generator, SamplingRate(1), 5000), all);
    EXPECT_TRUE(SamplePoisson(generator, SamplingRate(1), 0).empty());
  }
  Script zeros({});
  EXPECT_TRUE(SamplePoisson(zeros, SamplingRate(0), 100).empty());
  Script ones(Indices(100, kAllOnes));
  EXPECT_EQ(SamplePoisson(ones, SamplingRate(1), 100).size(), 100u);
}

TEST(Poisson, IsIncreasingBelowTheNumberOfRecords) {
  InsecureSeededGenerator generator(2);
  for (std::uint64_t records = 1; records < 300; ++records) {
    const Indices batch = SamplePoisson(generator, SamplingRate(0.5), records);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ASSERT_LT(batch[i], records);
      if (i > 0) {
        ASSERT_LT(batch[i - 1], batch[i]);
      }
    }
  }
}

// All 16 subsets of 4 records by chi-square with 15 degrees of freedom, at three rates: false
// alarms below 3e-9 (the least cell, at rate 0.3, expects 0.0081 * 200,000 = 1620).
TEST(Poisson, RecordsEnterIndependently) {
  constexpr int kDraws = 200'000;
  InsecureSeededGenerator generator(3);
  for (const double rate : {0.3, 0.5, 0.7}) {
    std::vector<double> counts(16);
    for (int i = 0; i < kDraws; ++i) {
      std::size_t subset = 0;
      for (const std::uint64_t index : SamplePoisson(generator, SamplingRate(rate), 4)) {
        subset |= std::size_t{1} << index;
      }
      ++counts[subset];
    }
    double statistic = 0;
    for (std::size_t subset = 0; subset < 16; ++subset) {
      double expected = kDraws;
      for (std::size_t i = 0; i < 4; ++i) expected *= (subset >> i & 1) != 0 ? rate : 1 - rate;
      statistic += (counts[subset] - expected) * (counts[subset] - expected) / expected;
    }
    EXPECT_LT(statistic, ChiSquareLimit(15)) << rate;
  }
}

TEST(FixedSize, FollowsTheScript) {
  // Places 0 + 4 mod 5, 1 + 6 mod 4, 2 + 5 mod 3, 3 + 1 mod 2, 4 + 9 mod 1 of
  // 0 1 2 3 4, 4 1 2 3 0, 4 3 2 1 0, 4 3 0 1 2, 4 3 0 2 1.
  Script generator({4, 6, 5, 1, 9});
  EXPECT_EQ(SampleFixedSize(generator, 5, 5), (Indices{4, 3, 0, 2, 1}));
  Script zeros({});
  EXPECT_EQ(SampleFixedSize(zeros, 4, 100), (Indices{0, 1, 2, 3}));
  // The last record comes first, then place 99 holds record 0, and is drawn again.
  Script last({99, 98, 97});
  EXPECT_EQ(SampleFixedSize(last, 3, 100), (Indices{99, 0, 1}));
  // Record 0 goes to place 1, from there to place 5, and is drawn there.
  Script twice({1, 4, 3});
  EXPECT_EQ(SampleFixedSize(twice, 3, 100), (Indices{1, 5, 0}));
}

TEST(FixedSize, DrawsAgainWordsThatWouldFavourSome) {
  // 2^64 mod 3 = 1: the largest word alone is drawn again. 2^64 mod (2^63 + 1) = 2^63 - 1.
  Script thrice({kAllOnes, kAllOnes, 5});
  EXPECT_EQ(SampleFixedSize(thrice, 1, 3), Indices{2});
  Script kept({kAllOnes - 1, 5});
  EXPECT_EQ(SampleFixedSize(kept, 1, 3), Indices{(kAllOnes - 1) % 3});
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  Script many({kHalf + 1, kAllOnes, kHalf});
  EXPECT_EQ(SampleFixedSize(many, 1, kHalf + 1), Indices{kHalf});
  // A power of two loses nothing.
  Script power({kAllOnes});
  EXPECT_EQ(SampleFixedSize(power, 1, 1024), Indices{1023});
  Script all({kAllOnes});
  EXPECT_EQ(SampleFixedSize(all, 1, 1), Indices{0});
  Script largest({kAllOnes, kAllOnes - 1});
  EXPECT_EQ(SampleFixedSize(largest, 1, kAllOnes), Indices{kAllOnes - 1});
}

// Every ordered selection of every batch out of up to 5 records by chi-square: 15 tests below
// 1e-9 each, false alarms below 2e-8. Each cell expects 200.
TEST(FixedSize, IsUniformOverOrderedSelections) {
  InsecureSeededGenerator generator(4);
  for (std::uint64_t records = 1; records <= 5; ++records) {
    std::uint64_t selections = 1;
    for (std::uint64_t batch = 1; batch <= records; ++batch) {
      selections *= records - batch + 1;
      std::map<Indices, double> counts;
      for (std::uint64_t i = 0; i < 200 * selections; ++i) {
        ++counts[SampleFixedSize(generator, batch, records)];
      }
      ASSERT_EQ(counts.size(), selections);
      double statistic = 0;
      for (const auto& [selection, count] : counts)
        statistic += (count - 200) * (count - 200) / 200;
      EXPECT_LT(statistic, ChiSquareLimit(static_cast<double>(selections) - 1))
          << batch << " of " << records;
    }
  }
}

// How often each of 1000 records is in a batch of 37, and in each place: chi-square over records.
// The counts of one batch are negatively correlated; with the variance of a place-free count,
// n p (1 - p), the statistic times (1000 - 1) / 1000 is chi-square with 999 degrees of freedom.
// Two tests: false alarms below 2e-9.
TEST(FixedSize, IncludesEveryRecordWithProbabilityBatchOverRecords) {
  constexpr double kRecords = 1000, kBatch = 37, kDraws = 20'000;
  InsecureSeededGenerator generator(5);
  std::vector<double> included(1000);
  std::vector<double> first(1000);
  for (int i = 0; i < static_cast<int>(kDraws); ++i) {
    const Indices batch = SampleFixedSize(generator, 37, 1000);
    for (const std::uint64_t index : batch) ++included[index];
    ++first[batch.back()];
  }
  const double p = kBatch / kRecords;
  double statistic = 0;
  for (const double count : included) {
    statistic += std::pow(count - kDraws * p, 2) / (kDraws * p * (1 - p));
  }
  EXPECT_LT(statistic * (kRecords - 1) / kRecords, ChiSquareLimit(kRecords - 1));
  // Here each cell expects 20: the last place of a batch.
  double places = 0;
  for (const double count : first) {
    places += std::pow(count - kDraws / kRecords, 2) / (kDraws / kRecords);
  }
  EXPECT_LT(places, ChiSquareLimit(kRecords - 1));
}

TEST(FixedSize, HasDistinctRecordsInRange) {
  InsecureSeededGenerator generator(6);
  for (std::uint64_t records = 1; records <= 60; ++records) {
    for (std::uint64_t batch = 0; batch <= records; ++batch) {
      const Indices drawn = SampleFixedSize(generator, batch, records);
      ASSERT_EQ(drawn.size(), batch);
      ASSERT_EQ(std::set<std::uint64_t>(drawn.begin(), drawn.end()).size(), batch);
      for (const std::uint64_t index : drawn) ASSERT_LT(index, records);
    }
  }
}

// A shuffle of which more and more is looked at, also where the memory after it changes its form.
TEST(FixedSize, OfASmallerBatchIsTheBeginningOfALargerOne) {
  for (const std::uint64_t records : {1, 9, 64, 1000}) {
    InsecureSeededGenerator whole(20);
    const Indices shuffled = SampleFixedSize(whole, records, records);
    for (std::uint64_t batch = 0; batch <= records; ++batch) {
      InsecureSeededGenerator again(20);
      const Indices drawn = SampleFixedSize(again, batch, records);
      ASSERT_TRUE(std::equal(drawn.begin(), drawn.end(), shuffled.begin())) << batch;
    }
  }
}

TEST(FixedSize, CanBeAllRecordsAndNone) {
  InsecureSeededGenerator generator(7);
  Indices all = SampleFixedSize(generator, 3000, 3000);
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  for (std::uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(all[i], i);
  EXPECT_TRUE(SampleFixedSize(generator, 0, 3000).empty());
  EXPECT_TRUE(SampleFixedSize(generator, 0, 0).empty());
}

// A pass over the records at each draw would take hours.
TEST(FixedSize, CostsTheBatchAndNotTheRecords) {
  InsecureSeededGenerator generator(8);
  constexpr std::uint64_t kRecords = 100'000'000'000;
  std::uint64_t above_half = 0;
  for (int i = 0; i < 200; ++i) {
    for (const std::uint64_t index : SampleFixedSize(generator, 256, kRecords)) {
      ASSERT_LT(index, kRecords);
      above_half += index >= kRecords / 2 ? 1 : 0;
    }
  }
  // Binomial with 51,200 trials: 6 standard deviations are 679, false alarms 2e-9.
  EXPECT_NEAR(static_cast<double>(above_half), 25'600, 679);
}

TEST(FixedSize, RefusesABatchLargerThanTheData) {
  InsecureSeededGenerator generator(9);
  EXPECT_THROW(SampleFixedSize(generator, 11, 10), Error);
  EXPECT_THROW(SampleFixedSize(generator, 1, 0), Error);
  EXPECT_THROW(SampleFixedSize(generator, kAllOnes, 10), Error);
}

TEST(Samplers, RepeatWithASeedAndDifferFromStepToStep) {
  InsecureSeededGenerator first(10);
  InsecureSeededGenerator second(10);
  const Indices fixed = SampleFixedSize(first, 50, 10'000);
  EXPECT_EQ(fixed, SampleFixedSize(second, 50, 10'000));
  EXPECT_NE(fixed, SampleFixedSize(first, 50, 10'000));
  InsecureSeededGenerator third(11);
  EXPECT_NE(SamplePoisson(third, SamplingRate(0.01), 10'000),
            SamplePoisson(third, SamplingRate(0.01), 10'000));
}

using Batches = std::vector<Indices>;

TEST(Allocation, FollowsTheScript) {
  Script generator({3, 0, 7, 2, 4, 3});  // modulo 4
  EXPECT_EQ(SampleAllocation(generator, 4, 6), (Batches{{1, 4}, {}, {3}, {0, 2, 5}}));
  Script one(Indices(3, kAllOnes));
  EXPECT_EQ(SampleAllocation(one, 1, 3), (Batches{{0, 1, 2}}));
  EXPECT_EQ(SampleAllocation(one, 3, 0), Batches(3));
  EXPECT_THROW(SampleAllocation(one, 0, 3), Error);
}

TEST(Allocation, DrawsAgainWordsThatWouldFavourSome) {
  // 2^64 mod 3 is 1: the largest word is drawn again, the one before it is not.
  Script generator({kAllOnes, 1, kAllOnes - 1, 0});
  EXPECT_EQ(SampleAllocation(generator, 3, 3), (Batches{{2}, {0}, {1}}));
}

TEST(Allocation, EveryRecordIsInExactlyOneBatch) {
  InsecureSeededGenerator generator(21);
  for (const std::uint64_t batches : {1U, 2U, 7U, 100U, 5000U}) {
    for (const std::uint64_t records : {0U, 1U, 2U, 99U, 3000U}) {
      const Batches allocated = SampleAllocation(generator, batches, records);
      ASSERT_EQ(allocated.size(), batches);
      Indices seen;
      for (const Indices& batch : allocated) {
        EXPECT_TRUE(std::is_sorted(batch.begin(), batch.end()));
        seen.insert(seen.end(), batch.begin(), batch.end());
      }
      std::sort(seen.begin(), seen.end());
      Indices all(records);
      std::iota(all.begin(), all.end(), std::uint64_t{0});
      EXPECT_EQ(seen, all);
    }
  }
}

// All 4^3 ways to allocate three records are equally likely: places are uniform, and one record
// says nothing about another. False alarm: below 1e-9.
TEST(Allocation, PlacesAreUniformAndIndependent) {
  InsecureSeededGenerator generator(22);
  constexpr int kDraws = 64'000;
  std::vector<double> counts(64, 0);
  for (int i = 0; i < kDraws; ++i) {
    const Batches allocated = SampleAllocation(generator, 4, 3);
    std::size_t code = 0;
    for (std::size_t place = 0; place < 4; ++place) {
      for (const std::uint64_t record : allocated[place]) code += place << (2 * record);
    }
    ++counts[code];
  }
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 1000) * (count - 1000) / 1000;
  EXPECT_LT(chi_square, ChiSquareLimit(63));
}

// The places of one record in two passes, over all 5 x 5 pairs. False alarm: below 1e-9.
TEST(Allocation, PassesAreIndependent) {
  InsecureSeededGenerator generator(23);
  constexpr int kRecords = 50'000;
  const auto places = [&] {
    std::vector<std::size_t> place(kRecords);
    const Batches allocated = SampleAllocation(generator, 5, kRecords);
    for (std::size_t i = 0; i < 5; ++i) {
      for (const std::uint64_t record : allocated[i]) place[record] = i;
    }
    return place;
  };
  const std::vector<std::size_t> first = places();
  const std::vector<std::size_t> second = places();
  std::vector<double> counts(25, 0);
  for (std::size_t i = 0; i < kRecords; ++i) ++counts[5 * first[i] + second[i]];
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 2000) * (count - 2000) / 2000;
  EXPECT_LT(chi_square, ChiSquareLimit(24));
}

TEST(Samplers, ARateOfAnAllocationIsOneOverAWholeNumber) {
  for (const std::int64_t batches : {1, 2, 3, 7, 234, 1'000'003}) {
    EXPECT_EQ(AllocationBatches(SamplingRate(1.0 / static_cast<double>(batches))), batches);
  }
  for (const double rate : {0.0, 0.7, 0.3, 0.00426, 0.999999}) {
    EXPECT_THROW(AllocationBatches(SamplingRate(rate)), Error) << rate;
  }
}

}  // namespace
}  // namespace sordino
