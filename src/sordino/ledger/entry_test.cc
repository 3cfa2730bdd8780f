#include "sordino/ledger/entry.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

Entry Sample() {
  return {.number = 7,
          .kind = EntryKind::kCharge,
          .time = 1763200000123,
          .run = "00112233445566778899aabbccddeeff",
          .event = "add-remove: gaussian(2)",
          .failure = 1e-30,
          .detail = R"({"text":"steps 0 to 7"})",
          .previous = std::string(kNoHash)};
}

TEST(Entry, EveryFieldIsInTheHash) {
  std::set<std::string> hashes = {EntryHash(Sample())};
  const std::vector<std::function<void(Entry&)>> changes = {
      [](Entry& e) { e.number = 8; },
      [](Entry& e) { e.kind = EntryKind::kReturn; },
      [](Entry& e) { e.time += 1; },
      [](Entry& e) { e.run[0] = '1'; },
      [](Entry& e) { e.event = "add-remove: gaussian(3)"; },
      [](Entry& e) { e.failure = 1.0000000000000002e-30; },
      [](Entry& e) { e.detail = "{}"; },
      [](Entry& e) { e.previous[63] = '1'; },
      // A byte that moves from one field to the next.
      [](Entry& e) {
        e.run += "a";
        e.event = e.event.substr(1);
      },
  };
  for (const auto& change : changes) {
    Entry entry = Sample();
    change(entry);
    EXPECT_TRUE(hashes.insert(EntryHash(entry)).second);
  }
  Entry same = Sample();
  same.hash = "whatever";
  EXPECT_EQ(EntryHash(same), EntryHash(Sample()));
}

// Computed with another program from the documented text, so that ledgers can be read for ever.
TEST(Entry, HashIsThatOfTheDocumentedText) {
  EXPECT_EQ(EntryHash(Sample()),
            "adf847f09c16fc23ac87c1e2bb28de7fe74b516d66facabeb1e8eb03682c83b9");
}

TEST(Entry, DetailsOfABudgetComeBackAsTheyWere) {
  BudgetDetail detail;
  detail.ledger = "00112233445566778899aabbccddeeff";
  detail.budget = {.epsilon = Epsilon(0.1),
                   .delta = Delta(1e-5),
                   .adjacency = Adjacency::kReplaceOne,
                   .unit = ProtectedUnit::kUser,
                   .filter = FilterKind::kRenyi,
                   .order = RenyiOrder(3.3)};
  const BudgetDetail back = ParseBudgetJson(BudgetJson(detail));
  EXPECT_EQ(back.ledger, detail.ledger);
  EXPECT_EQ(back.budget.epsilon, detail.budget.epsilon);
  EXPECT_EQ(back.budget.delta, detail.budget.delta);
  EXPECT_EQ(back.budget.adjacency, detail.budget.adjacency);
  EXPECT_EQ(back.budget.unit, detail.budget.unit);
  EXPECT_EQ(back.budget.filter, detail.budget.filter);
  EXPECT_EQ(back.budget.order, detail.budget.order);

  detail.budget = {.epsilon = Epsilon(kInfinity), .delta = Delta(1e-5)};
  EXPECT_EQ(ParseBudgetJson(BudgetJson(detail)).budget.epsilon, Epsilon(kInfinity));
}

TEST(Entry, DetailsOfARunComeBackAsTheyWere) {
  const RunDetail detail = {.what = "train \"x\" on y\n",
                            .who = "anna",
                            .is_private = false,
                            .terms = {.whole = true, .order = 3.25}};
  const RunDetail back = ParseRunJson(RunJson(detail));
  EXPECT_EQ(back.what, detail.what);
  EXPECT_EQ(back.who, detail.who);
  EXPECT_EQ(back.is_private, detail.is_private);
  EXPECT_EQ(back.terms.whole, detail.terms.whole);
  EXPECT_EQ(back.terms.order, detail.terms.order);
}

TEST(Entry, DetailsThatAreNotWhatTheyShouldBeAreRefused) {
  for (const char* text : {"", "[]", "{}", "{\"version\":1}", "{\"version\":2}",
                           R"({"version":1,"ledger":"a","epsilon":-1,"delta":0.1,)"
                           R"("adjacency":"add-remove","unit":"record","filter":"renyi"})",
                           R"({"version":1,"ledger":"a","epsilon":1,"delta":1e-5,)"
                           R"("adjacency":"add-remove","unit":"record","filter":"other"})"}) {
    EXPECT_THROW(ParseBudgetJson(text), Error) << text;
    EXPECT_THROW(ParseRunJson(text), Error) << text;
    EXPECT_THROW(ParseTextJson(text), Error) << text;
  }
  EXPECT_THROW(ParseRunJson(R"({"what":"","who":"","whole":false,"order":0.5})"), Error);
}

TEST(Entry, TimesAreShownInUtc) {
  EXPECT_EQ(TimeText(0), "1970-01-01 00:00:00 UTC");
  EXPECT_EQ(TimeText(1763206327999), "2025-11-15 11:32:07 UTC");
  EXPECT_EQ(TimeText(-1), "1969-12-31 23:59:59 UTC");
}

TEST(Entry, ABudgetFromBeforeHasNoShareForLosses) {
  const BudgetDetail now = {.budget = {.epsilon = Epsilon(2), .delta = Delta(1e-5)},
                            .ledger = "0123"};
  EXPECT_EQ(ParseBudgetJson(BudgetJson(now)).budget.loss_share, kLossShare);
  const std::string old =
      R"({"version":1,"ledger":"0123","epsilon":2.0,"delta":1e-05,"adjacency":"add-remove",)"
      R"("unit":"record","filter":"renyi"})";
  const BudgetDetail before = ParseBudgetJson(old);
  EXPECT_EQ(before.budget.loss_share, 0);
  EXPECT_EQ(BudgetJson(before), old);
  BudgetFilter filter(before.budget);
  EXPECT_FALSE(filter.AdmitsPlan(Event::Approximate(Epsilon(0.1), Delta(1e-9)), 0).admitted);
}

}  // namespace
}  // namespace sordino
