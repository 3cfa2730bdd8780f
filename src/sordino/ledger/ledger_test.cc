#include "sordino/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"
#include "sordino/ledger/testing/ledger_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Event Noise(double noise) { return Event::Gaussian(NoiseMultiplier(noise)); }
Event Steps(std::uint64_t count) {
  return Event::Repeat(Event::Poisson(SamplingRate(0.01), Noise(1)), count);
}
RunDeclaration Declared(const Event& plan) { return {.what = "a run", .plan = plan}; }

TEST_F(LedgerTest, WhatWasChargedIsThereForTheNextProcess) {
  std::string run;
  {
    Ledger ledger = Create(8, 1e-5);
    const Begun begun = ledger.BeginRun(Declared(Steps(1000)), {.event = Steps(8)});
    ASSERT_TRUE(begun.verdict.admitted);
    run = begun.id;
    ASSERT_TRUE(ledger.Charge(run, {.event = Steps(92), .failure = 1e-30}).admitted);
    ledger.Return(run, {.event = Steps(10)});
    ledger.Note("hello");
  }
  Ledger ledger = Open();
  EXPECT_EQ(ledger.entries().size(), 6U);
  EXPECT_EQ(ledger.filter().TotalOf(run), Steps(90));
  EXPECT_EQ(ledger.filter().failure(), 1e-30);
  EXPECT_EQ(ledger.budget().epsilon, Epsilon(8));
  EXPECT_EQ(VerifyLedger(file_, Options()), 6);
  const RunDetail detail = ParseRunJson(ledger.entries()[1].detail);
  EXPECT_EQ(detail.what, "a run");
  EXPECT_FALSE(detail.who.empty());
  EXPECT_GT(detail.terms.order, 1);
}

TEST_F(LedgerTest, EpsilonOfAllRunsIsComposedAndNotASum) {
  Ledger ledger = Create(8, 1e-5);
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(ledger.BeginRun(Declared(Steps(500)), {.event = Steps(500)}).verdict.admitted);
    sum += Account(Steps(500), Delta(1e-5)).value.upper;
  }
  const Interval composed = ledger.ComposedEpsilon();
  EXPECT_NEAR(composed.upper, Account(Steps(2000), Delta(1e-5)).value.upper, 1e-6);
  EXPECT_LT(composed.upper, 0.7 * sum);
  EXPECT_LE(composed.lower, composed.upper);
}

// Counting whole is a statement about a plan that was fixed in advance.
TEST_F(LedgerTest, ARunThatChoosesAsItGoesDoesNotCountWhole) {
  // Within the budget by exact composition, and not by the filter.
  const Event plan = Noise(1.0001 / GaussianMu(3, std::log(1e-5)));
  BudgetFilter filter(Create(3, 1e-5).budget());
  RunDeclaration run = Declared(plan);
  EXPECT_TRUE(TermsOf(filter, run).whole);
  run.is_adaptive = true;
  EXPECT_FALSE(TermsOf(filter, run).whole);
}

TEST_F(LedgerTest, NothingIsChargedThatCouldNotBeRemembered) {
  namespace fs = std::filesystem;
  const auto refuses = [](const auto& call) {
    EXPECT_THAT(call, ThrowsMessage<Error>(HasSubstr("set SORDINO_STATE")));
  };
  const fs::path state = Options().witness_folder;
  LedgerOptions nowhere = Options();
  nowhere.witness_folder = folder_.Write("in-the-way", "");
  refuses([&] { Ledger::Create(file_, {.epsilon = Epsilon(8), .delta = Delta(1e-5)}, nowhere); });
  EXPECT_FALSE(fs::exists(file_));

  Ledger ledger = Create(8, 1e-5);
  const Begun begun = ledger.BeginRun(Declared(Steps(1000)), {.event = Steps(8)});
  refuses([&] { Ledger::Open(file_, nowhere); });
  // Who only looks needs no memory.
  nowhere.read_only = true;
  EXPECT_EQ(Ledger::Open(file_, nowhere).entries().size(), 3U);
  // The folder is lost while the ledger is open.
  fs::remove_all(state);
  folder_.Write(state.filename(), "in the way");
  refuses([&] { ledger.Charge(begun.id, {.event = Steps(8)}); });
  fs::remove(state);
  EXPECT_EQ(Open().entries().size(), 3U);
}

TEST_F(LedgerTest, OneOfARunIsRememberedWhereThatIsPossible) {
  namespace fs = std::filesystem;
  LedgerOptions options = Options();
  options.witness = WitnessUse::kWherePossible;
  const Budget budget{.epsilon = Epsilon(8), .delta = Delta(1e-5)};
  Ledger ledger = Ledger::Create(file_, budget, options);
  EXPECT_TRUE(ledger.HasWitness());
  const fs::path old = folder_ / "old.db";
  fs::copy_file(file_, old);
  const Begun begun = ledger.BeginRun(Declared(Steps(1000)), {.event = Steps(8)});
  EXPECT_THAT([&] { Ledger::Open(old, options); }, ThrowsMessage<Error>(HasSubstr("older copy")));

  options.witness_folder = folder_.Write("in-the-way", "");
  Ledger forgotten = Ledger::Open(old, options);
  EXPECT_FALSE(forgotten.HasWitness());
  EXPECT_TRUE(forgotten.BeginRun(Declared(Steps(1000)), {.event = Steps(8)}).verdict.admitted);
  // The folder is lost while the ledger is open: the run goes on.
  const fs::path state = Options().witness_folder;
  fs::remove_all(state);
  folder_.Write(state.filename(), "in the way");
  EXPECT_TRUE(ledger.Charge(begun.id, {.event = Steps(8)}).admitted);
  EXPECT_FALSE(ledger.HasWitness());
}

TEST_F(LedgerTest, AnEmptyNameIsNoLedger) {
  // SQLite would make a database that is forgotten when it is closed.
  const Budget budget{.epsilon = Epsilon(8), .delta = Delta(1e-5)};
  EXPECT_THAT([&] { Ledger::Create("", budget, Options()); },
              ThrowsMessage<Error>(HasSubstr("is empty")));
}

// SQLite would take some for a URI or for a database in memory.
TEST_F(LedgerTest, NamesAreNames) {
  namespace fs = std::filesystem;
  const Budget budget{.epsilon = Epsilon(8), .delta = Delta(1e-5)};
  const fs::path here = fs::current_path();
  fs::current_path(folder_);
  for (const char* name : {"file:m.db?mode=memory", "file:m.db", ":memory:", "file::memory:"}) {
    Ledger::Create(name, budget, Options()).Note("kept");
    EXPECT_TRUE(fs::exists(folder_ / name)) << name;
    EXPECT_EQ(Ledger::Open(name, Options()).size(), 2) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "m.db"));
  EXPECT_THAT([&] { Ledger::Open("file:ledger.db", Options()); },
              ThrowsMessage<Error>(HasSubstr("does not exist")));
  fs::current_path(here);
}

TEST_F(LedgerTest, ARefusedChargeChangesNoByte) {
  Ledger ledger = Create(1, 1e-5);
  const Begun begun = ledger.BeginRun(Declared(Noise(10)), {.event = Noise(10)});
  ASSERT_TRUE(begun.verdict.admitted);
  const std::string before = Bytes();
  const Verdict verdict = ledger.Charge(begun.id, {.event = Noise(1)});
  EXPECT_FALSE(verdict.admitted);
  EXPECT_THAT(verdict.reason, HasSubstr("% of the budget of epsilon 1"));
  EXPECT_FALSE(ledger.BeginRun(Declared(Noise(1)), {.event = Noise(1)}).verdict.admitted);
  EXPECT_FALSE(ledger.Preview(Declared(Noise(1))).verdict.admitted);
  EXPECT_TRUE(ledger.Preview(Declared(Noise(20))).verdict.admitted);
  EXPECT_EQ(Bytes(), before);
  // A refusal is not a failure: smaller ones still fit.
  EXPECT_TRUE(ledger.Charge(begun.id, {.event = Noise(20)}).admitted);
}

TEST_F(LedgerTest, TwoWhoShareItSeeEachOthersCharges) {
  Ledger one = Create(1, 1e-5);
  Ledger two = Open();
  const Event half = Noise(5);
  ASSERT_TRUE(one.BeginRun(Declared(half), {.event = half}).verdict.admitted);
  EXPECT_FALSE(two.BeginRun(Declared(half), {.event = half}).verdict.admitted);
  two.Note("from the other one");
  one.Refresh();
  EXPECT_EQ(one.head().hash, two.head().hash);
}

TEST_F(LedgerTest, AnotherAdjacencyOrUnitIsAMistake) {
  Ledger ledger = Create(8, 1e-5);
  const Event replaced = Event::Gaussian(NoiseMultiplier(5), Adjacency::kReplaceOne);
  EXPECT_THAT([&] { ledger.BeginRun(Declared(replaced), {.event = replaced}); },
              ThrowsMessage<Error>(HasSubstr("replace-one")));
  RunDeclaration users = Declared(Noise(5));
  users.unit = ProtectedUnit::kUser;
  EXPECT_THAT([&] { ledger.BeginRun(users, {.event = Noise(5)}); },
              ThrowsMessage<Error>(HasSubstr("protects a user")));
  EXPECT_EQ(ledger.entries().size(), 1U);
  EXPECT_TRUE(ledger.BeginRun(Declared(Noise(5)), {.event = Noise(5)}).verdict.admitted);
}

TEST_F(LedgerTest, AFileThatIsThereIsNotWrittenOver) {
  { Create(8, 1e-5); }
  const std::string before = Bytes();
  EXPECT_THAT([&] { Create(80, 1e-5); }, ThrowsMessage<Error>(HasSubstr("exists already")));
  EXPECT_EQ(Bytes(), before);
  EXPECT_EQ(Open().budget().epsilon, Epsilon(8));
}

TEST_F(LedgerTest, WhoOnlyLooksCannotCharge) {
  { Create(8, 1e-5); }
  LedgerOptions options = Options();
  options.read_only = true;
  Ledger ledger = Ledger::Open(file_, options);
  const std::string before = Bytes();
  EXPECT_THAT([&] { ledger.BeginRun(Declared(Noise(5)), {.event = Noise(5)}); },
              ThrowsMessage<Error>(HasSubstr("to look at")));
  EXPECT_THROW(ledger.Note("x"), Error);
  EXPECT_EQ(Bytes(), before);
}

TEST_F(LedgerTest, ARunIsGoneOnWithOnlyUnderItsPlan) {
  Ledger ledger = Create(8, 1e-5);
  const std::string run = ledger.BeginRun(Declared(Steps(1000)), {.event = Steps(8)}).id;
  Ledger later = Open();
  EXPECT_EQ(later.Rejoin(run, Steps(1000).ToString()).order, ledger.filter().order());
  EXPECT_THROW(later.Rejoin(run, Steps(999).ToString()), Error);
  EXPECT_THROW(later.Rejoin("00", Steps(1000).ToString()), Error);
  EXPECT_TRUE(later.Charge(run, {.event = Steps(8)}).admitted);
  ledger.Refresh();
  EXPECT_EQ(ledger.filter().TotalOf(run), Steps(16));
}

TEST_F(LedgerTest, KeptHashesAreFoundAgain) {
  Ledger ledger = Create(8, 1e-5);
  const std::string first = ledger.head().hash;
  ledger.Note("x");
  EXPECT_TRUE(Open().Contains(first));
  EXPECT_TRUE(Open().Contains(ledger.head().hash));
  EXPECT_FALSE(Open().Contains(std::string(kNoHash)));
}

TEST_F(LedgerTest, AMistakenReturnChangesNothing) {
  Ledger ledger = Create(8, 1e-5);
  const std::string run = ledger.BeginRun(Declared(Steps(100)), {.event = Steps(8)}).id;
  EXPECT_THROW(ledger.Return(run, {.event = Steps(9)}), Error);
  EXPECT_EQ(ledger.entries().size(), 3U);
  EXPECT_EQ(ledger.Total(), Steps(8));
  EXPECT_TRUE(ledger.Charge(run, {.event = Steps(1)}).admitted);
  EXPECT_EQ(Open().Total(), Steps(9));
}

TEST_F(LedgerTest, ALedgerThatDoesNotExistIsASentence) {
  EXPECT_THAT([&] { Open(); }, ThrowsMessage<Error>(HasSubstr("does not exist")));
  EXPECT_THAT([&] { Ledger::Open(folder_, Options()); },
              ThrowsMessage<Error>(HasSubstr("is a folder")));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(LedgerTest, EntriesCannotBeChangedByAccident) {
  Ledger ledger = Create(8, 1e-5);
  // Through the same library: the triggers are part of the file.
  EXPECT_THAT(Bytes(), HasSubstr("entries of a ledger are never changed"));
  EXPECT_THAT(Bytes(), HasSubstr("entries of a ledger are never removed"));
}

}  // namespace
}  // namespace sordino
