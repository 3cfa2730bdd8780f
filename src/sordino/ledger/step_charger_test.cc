#include "sordino/ledger/step_charger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/ledger/testing/ledger_test_support.h"

namespace sordino {
namespace {

using Clock = std::chrono::steady_clock;

class StepChargerTest : public LedgerTest {
 protected:
  static Event Step() {
    return Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1)));
  }
  static StepCosts Costs() {
    return {.event =
                [](std::int64_t first, std::int64_t last) {
                  return Event::Repeat(Step(), static_cast<std::uint64_t>(last - first));
                },
            .failure = [](std::int64_t) { return 0.0; }};
  }
  StepChargerOptions FakeTime() {
    StepChargerOptions options;
    options.ahead = false;
    options.now = [this] { return now_; };
    return options;
  }
  std::uint64_t Charged(Ledger& ledger) { return ledger.Total().TotalCount(); }
  static std::int64_t Count(const Ledger& ledger, EntryKind kind) {
    std::int64_t count = 0;
    ledger.Visit([&](const Entry& entry) { count += entry.kind == kind ? 1 : 0; });
    return count;
  }

  Clock::time_point now_;
};

TEST_F(StepChargerTest, EveryStepIsChargedBeforeItIsUsed) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 300, FakeTime());
  EXPECT_EQ(ledger.entries().size(), 1U);
  for (std::int64_t step = 0; step < 300; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    // Another reader sees it: it is in the file, not in this process.
    if (step % 50 == 0) {
      Ledger other = Open();
      EXPECT_GE(Charged(other), static_cast<std::uint64_t>(step + 1));
    }
    charger.Use(step);
    now_ += std::chrono::milliseconds(40);
  }
  EXPECT_EQ(Charged(ledger), 300U);
  charger.HandBack();
  EXPECT_EQ(Count(ledger, EntryKind::kReturn), 0);
}

TEST_F(StepChargerTest, ABlockIsAboutASecondOfTraining) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 2000, FakeTime());
  for (std::int64_t step = 0; step < 500; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    charger.Use(step);
    now_ += std::chrono::milliseconds(20);
  }
  // 8 steps, then 50 at a time.
  EXPECT_NEAR(static_cast<double>(Count(ledger, EntryKind::kCharge)), 11, 1);
  EXPECT_LE(Charged(ledger), 560U);
}

TEST_F(StepChargerTest, AThousandQuickStepsTakeAFewCharges) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 1000, FakeTime());
  for (std::int64_t step = 0; step < 1000; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    charger.Use(step);
    now_ += std::chrono::microseconds(200);
  }
  EXPECT_LE(Count(ledger, EntryKind::kCharge), 4);
  EXPECT_EQ(Charged(ledger), 1000U);
}

TEST_F(StepChargerTest, TheLastStepThatCanBePaidForIsMade) {
  Ledger ledger = Create(2, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 100000, FakeTime());
  std::int64_t step = 0;
  while (charger.Reserve(step)) {
    charger.Use(step);
    now_ += std::chrono::milliseconds(1);
    ++step;
  }
  EXPECT_THAT(charger.why(), ::testing::HasSubstr("of the budget"));
  ASSERT_GT(step, 200);
  EXPECT_EQ(Charged(ledger), static_cast<std::uint64_t>(step));
  EXPECT_FALSE(ledger.filter().Admits(charger.run(), Step(), 0).admitted);
  EXPECT_LE(ledger.ComposedEpsilon().upper, 2);
}

TEST_F(StepChargerTest, WhatWasNotUsedIsHandedBackOnce) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 100, FakeTime());
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    charger.Use(step);
  }
  EXPECT_EQ(Charged(ledger), 8U);
  charger.HandBack();
  EXPECT_EQ(Charged(ledger), 3U);
  charger.HandBack();
  EXPECT_EQ(Charged(ledger), 3U);
  EXPECT_EQ(Count(ledger, EntryKind::kReturn), 1);
}

TEST_F(StepChargerTest, ARunThatGoesOnIsChargedAgainForWhatWasLost) {
  Ledger ledger = Create(8, 1e-5);
  std::string run;
  {
    StepCharger charger(ledger, {.what = "run"}, Costs(), 100, FakeTime());
    for (std::int64_t step = 0; step < 5; ++step) {
      ASSERT_TRUE(charger.Reserve(step));
      charger.Use(step);
    }
    run = charger.run();
  }
  ledger.Rejoin(run, Costs().event(0, 100).ToString());
  StepCharger charger(ledger, run, 4, Costs(), 100, FakeTime());
  for (std::int64_t step = 4; step < 100; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    charger.Use(step);
    now_ += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(Charged(ledger), 8U + 96U);
  EXPECT_EQ(Count(ledger, EntryKind::kRun), 1);
}

class ChargingAhead : public StepChargerTest {
 protected:
  StepChargerOptions Ahead() {
    StepChargerOptions options = FakeTime();
    options.ahead = true;
    return options;
  }

  void MakeStepsAndMoveTheFile(StepCharger& charger, std::int64_t steps) {
    for (std::int64_t step = 0; step < steps; ++step) {
      ASSERT_TRUE(charger.Reserve(step));
      charger.Use(step);
      if (step == 2) std::filesystem::rename(file_, folder_ / "moved.db");
      now_ += std::chrono::milliseconds(100);
    }
  }
};

TEST_F(ChargingAhead, EveryStepIsChargedBeforeItIsUsed) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 400, Ahead());
  for (std::int64_t step = 0; step < 400; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    if (step % 20 == 0) {
      Ledger other = Open();
      EXPECT_GE(Charged(other), static_cast<std::uint64_t>(step + 1));
    }
    charger.Use(step);
    now_ += std::chrono::milliseconds(40);
  }
  charger.HandBack();
  EXPECT_EQ(Charged(ledger), 400U);
}

TEST_F(ChargingAhead, TheNextBlockIsChargedWhileHalfOfThisOneIsLeft) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 400, Ahead());
  for (std::int64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(charger.Reserve(step));
    charger.Use(step);
    now_ += std::chrono::milliseconds(100);
  }
  charger.Settle();
  EXPECT_EQ(Charged(ledger), 18U);  // 8, and ten of a tenth of a second
  charger.HandBack();
  EXPECT_EQ(Charged(ledger), 5U);
}

TEST_F(ChargingAhead, TheLastStepThatCanBePaidForIsMade) {
  Ledger ledger = Create(2, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 100000, Ahead());
  std::int64_t step = 0;
  while (charger.Reserve(step)) {
    charger.Use(step);
    now_ += std::chrono::milliseconds(1);
    ++step;
  }
  EXPECT_FALSE(charger.why().empty());
  EXPECT_EQ(Charged(ledger), static_cast<std::uint64_t>(step));
  EXPECT_FALSE(ledger.filter().Admits(charger.run(), Step(), 0).admitted);
}

TEST_F(ChargingAhead, WhatGoesWrongIsToldBeforeAStepThatIsNotPaidFor) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 400, Ahead());
  MakeStepsAndMoveTheFile(charger, 8);
  EXPECT_THROW(charger.Reserve(8), Error);
  EXPECT_THROW(charger.Reserve(8), Error);
  charger.HandBack();
  Ledger moved = Ledger::Open(folder_ / "moved.db", Options());
  EXPECT_EQ(Charged(moved), 8U);
}

// Steps that were paid for as they were planned are not made in another way.
TEST_F(ChargingAhead, NothingIsLeftToUseAfterAFailureIsHandedBack) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 400, Ahead());
  MakeStepsAndMoveTheFile(charger, 6);
  charger.HandBack();
  EXPECT_THROW(charger.Reserve(6), Error);
}

using StepChargerDeathTest = StepChargerTest;

TEST_F(StepChargerDeathTest, AStepThatIsNotPaidForStopsTheProgram) {
  Ledger ledger = Create(8, 1e-5);
  StepCharger charger(ledger, {.what = "run"}, Costs(), 100, FakeTime());
  EXPECT_DEATH(charger.Use(0), "not paid for");
  ASSERT_TRUE(charger.Reserve(0));
  charger.Use(0);
  EXPECT_DEATH(charger.Use(0), "not paid for");
  EXPECT_DEATH(charger.Use(2), "not paid for");
  for (std::int64_t step = 1; step < 8; ++step) charger.Use(step);
  EXPECT_DEATH(charger.Use(8), "not paid for");
}

}  // namespace
}  // namespace sordino
