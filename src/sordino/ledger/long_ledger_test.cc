// Ledgers of years: a charge costs the same at any size, and a check of everything finds sums that
// are not those of the charges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/release_tally.h"
#include "sordino/ledger/testing/ledger_test_support.h"
#include "sordino/ledger/testing/long_ledger.h"

namespace sordino {
namespace {

class LongLedgerTest : public LedgerTest {
 protected:
  void Make(const LongLedger& wanted) {
    Create(8, 1e-5);
    WriteLongLedger(file_, Open().budget(), wanted);
  }
  static LedgerCharge Small() { return {.event = Event::Gaussian(NoiseMultiplier(3000))}; }
  static double Seconds(const std::function<void()>& act) {
    const auto start = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // A process that opens the ledger and charges it.
  Begun ChargeOnce() const {
    return Open().BeginRun({.what = "one more", .plan = Small().event}, Small());
  }
};

// The limits are for a machine that does other things too; what it took is printed.
TEST_F(LongLedgerTest, AChargeTakesNoTimeAfterAHundredThousandReleases) {
  Make({.releases = 100'000});
  // A busy disk may take seconds for one sync: what depends on the size is in all of them.
  std::vector<double> took;
  for (int i = 0; i < 5; ++i) {
    took.push_back(Seconds([&] { EXPECT_TRUE(ChargeOnce().verdict.admitted); }));
  }
  const auto [fastest, slowest] = std::minmax_element(took.begin(), took.end());
  std::cout << "[ COUNTED  ] 5 openings and charges: " << *fastest << " to " << *slowest << " s\n";
  EXPECT_LT(*fastest, 0.5);
  Ledger ledger = Open();
  EXPECT_EQ(ledger.size(), 200'011);
  EXPECT_EQ(ledger.filter().sums().releases, 100'005U);
  const double composing = Seconds([&] { EXPECT_LT(ledger.ComposedEpsilon().upper, 8); });
  std::cout << "[ COUNTED  ] composed epsilon: " << composing << " s\n";
  EXPECT_LT(composing, 10);
}

TEST_F(LongLedgerTest, IsTheSameFromSumsAndFromAllEntries) {
  Make({.releases = 300});
  const Begun begun = ChargeOnce();
  Ledger quick = Open();
  LedgerOptions whole = Options();
  whole.read_whole = true;
  Ledger slow = Ledger::Open(file_, whole);
  EXPECT_EQ(quick.filter().sums(), slow.filter().sums());
  EXPECT_EQ(quick.filter().UsedShare(), slow.filter().UsedShare());
  EXPECT_EQ(quick.Total(), slow.filter().Total());
  EXPECT_EQ(VerifyLedger(file_, Options()), 603);
  // A run that began before is charged, and returns, as if it had been read.
  EXPECT_EQ(quick.Rejoin(begun.id, Small().event.ToString()).order, slow.filter().order());
  EXPECT_EQ(quick.filter().TotalOf(begun.id), Small().event);
  Ledger other = Open();
  other.Return(begun.id, Small());
  EXPECT_THROW(other.Return(begun.id, Small()), Error);
  EXPECT_TRUE(quick.Charge(begun.id, Small()).admitted);
  EXPECT_EQ(quick.filter().TotalOf(begun.id), Small().event);
  EXPECT_EQ(VerifyLedger(file_, Options()), 605);
}

TEST_F(LongLedgerTest, OneOfAnOlderProgramIsReadWholeAndThenHasSums) {
  Make({.releases = 300, .has_sums = false});
  const double before = Open().filter().UsedShare();
  const Begun begun = ChargeOnce();
  EXPECT_TRUE(begun.verdict.admitted);
  Ledger ledger = Open();
  ASSERT_TRUE(SumsOf(ledger.head()).has_value());
  EXPECT_EQ(SumsOf(ledger.head())->releases, 301U);
  EXPECT_GT(ledger.filter().UsedShare(), before);
  EXPECT_EQ(VerifyLedger(file_, Options()), 603);
}

TEST_F(LongLedgerTest, SumsThatAreNotThoseOfTheChargesAreFoundByVerify) {
  Make({.releases = 300, .change = [](Entry& entry) {
          const std::optional<BudgetSums> sums = SumsOf(entry);
          if (!sums || entry.number < 401) return;
          BudgetSums less = *sums;  // one charge is left out from here on
          less.filter.Subtract(sums->filter.high() / static_cast<double>(sums->releases));
          entry.detail = WithSums(entry.detail, less);
        }});
  EXPECT_NO_THROW(Open()) << "the entries before the last are not read";
  EXPECT_THAT([&] { VerifyLedger(file_, Options()); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("its sums are not those")));
}

// A charge that is admitted is in the sums of its entry.
TEST_F(LongLedgerTest, EveryChargeIsInTheSums) {
  Ledger ledger = Create(8, 1e-5);
  const std::string run = ledger.BeginRun({.what = "run", .plan = Small().event}, Small()).id;
  for (int i = 2; i <= 200; ++i) {
    ASSERT_TRUE(ledger.Charge(run, Small()).admitted);
    ASSERT_EQ(SumsOf(ledger.head())->releases, static_cast<std::uint64_t>(i));
  }
  ledger.Note("still there");
  Ledger again = Open();
  EXPECT_EQ(SumsOf(again.head())->releases, 200U);
  EXPECT_EQ(again.filter().sums(), ledger.filter().sums());
}

TEST(ReleaseTally, ManyGaussiansComposeAsOne) {
  ReleaseTally tally;
  double mu_squared = 0;
  for (int i = 0; i < 5000; ++i) {
    const double noise = 200 + i;
    tally.Add(Event::Gaussian(NoiseMultiplier(noise)), 2);
    mu_squared += 2 / (noise * noise);
  }
  const auto composed = tally.ComposedEpsilon(Adjacency::kAddRemove, Delta(1e-5), 0);
  ASSERT_TRUE(composed.has_value());
  const Interval one =
      Account(Event::Gaussian(NoiseMultiplier(1 / std::sqrt(mu_squared))), Delta(1e-5)).value;
  EXPECT_NEAR(composed->upper, one.upper, 1e-6);
  EXPECT_LE(composed->lower, one.upper);
  EXPECT_GE(composed->upper, one.lower);
  EXPECT_EQ(tally.Releases(), 10'000U);
}

TEST(ReleaseTally, TooManyOthersAreComposedOnlyWhereThatIsAskedFor) {
  ReleaseTally tally;
  for (int i = 1; i <= 40; ++i) tally.Add(Event::Laplace(NoiseMultiplier(100 + i)));
  EXPECT_FALSE(tally.ComposedEpsilon(Adjacency::kAddRemove, Delta(1e-5), 0).has_value());
  const auto exact = tally.ComposedEpsilon(Adjacency::kAddRemove, Delta(1e-5), 0, true);
  ASSERT_TRUE(exact.has_value());
  EXPECT_LT(exact->upper, 1);
  tally.Subtract(tally.Total(Adjacency::kAddRemove));
  EXPECT_TRUE(tally.counts().empty());
}

}  // namespace
}  // namespace sordino
