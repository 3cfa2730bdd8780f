// A kind of event that is added by a file and a line, as CONTRIBUTING.md says: half-pure(epsilon)
// has the guarantee of pure(epsilon / 2), so every answer is that of the other.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/filter.h"
#include "sordino/accounting/internal/event_kind.h"
#include "sordino/base/error.h"
#include "sordino/ledger/release_costs.h"

namespace sordino {
namespace {

constexpr std::string_view kForms[] = {"add-remove: {}",
                                       "zero-out: 7*{}",
                                       "replace-one: compose(3*{}, gaussian(2))",
                                       "add-remove: 100*poisson(0.1, {})",
                                       "replace-one: 100*poisson(0.1, {})",
                                       "replace-one: 10*fixed(0.1, {})",
                                       "zero-out: 5*fixed(0.1, {})",
                                       "add-remove: poisson(0.1, poisson(0.5, {}))",
                                       "add-remove: 3*parallel({}, laplace(4))",
                                       "add-remove: poisson(0.1, compose({}, gaussian(3)))"};

std::string Filled(std::string_view form, std::string_view leaf) {
  std::string text(form);
  return text.replace(text.find("{}"), 2, leaf);
}

TEST(EventKind, AddedByAFileAndALineIsReadAndWritten) {
  for (const std::string_view form : kForms) {
    const std::string text = Filled(form, "half-pure(0.5)");
    EXPECT_EQ(Event::Parse(text).ToString(), text);
  }
  const Event event = Event::Parse("add-remove: half-pure(0.5)");
  EXPECT_EQ(event.name(), "half-pure");
  EXPECT_EQ(event.number("epsilon"), 0.5);
  EXPECT_THROW(event.number("noise"), Error);
  EXPECT_THROW(Event::Parse("add-remove: half-pure(-1)"), Error);
  EXPECT_THROW(Event::Parse("add-remove: half-pure(1, 2)"), Error);
}

TEST(EventKind, AddedByAFileAndALineIsAccounted) {
  for (const std::string_view form : kForms) {
    const Event added = Event::Parse(Filled(form, "half-pure(0.5)"));
    const Event pure = Event::Parse(Filled(form, "pure(0.25)"));
    const Interval found = Account(added, Delta(1e-6)).value;
    const Interval expected = Account(pure, Delta(1e-6)).value;
    EXPECT_EQ(found.lower, expected.lower) << form;
    EXPECT_EQ(found.upper, expected.upper) << form;
    EXPECT_GT(found.upper, 0) << form;
    EXPECT_LT(found.upper, kInfinity) << form;
  }
}

TEST(EventKind, AddedByAFileAndALineIsChargedByFiltersAndLedgers) {
  for (const std::string_view form : kForms) {
    const Event added = Event::Parse(Filled(form, "half-pure(0.5)"));
    const Event pure = Event::Parse(Filled(form, "pure(0.25)"));
    PrivacyFilter filter = PrivacyFilter::Renyi(Epsilon(100), Delta(1e-6), RenyiOrder(4));
    PrivacyFilter other = PrivacyFilter::Renyi(Epsilon(100), Delta(1e-6), RenyiOrder(4));
    ASSERT_TRUE(filter.Charge(added)) << form;
    ASSERT_TRUE(other.Charge(pure)) << form;
    EXPECT_EQ(filter.Spent(), other.Spent()) << form;
    EXPECT_GT(filter.Spent(), 0) << form;
    const Budget budget{.epsilon = Epsilon(4), .delta = Delta(1e-6)};
    const ReleaseCosts costs = CostsOf(added, budget, 4);
    const ReleaseCosts expected = CostsOf(pure, budget, 4);
    EXPECT_EQ(costs.pure, expected.pure) << form;
    EXPECT_EQ(costs.filter, expected.filter) << form;
    EXPECT_EQ(costs.loss, expected.loss) << form;
  }
}

// A text names each kind once.
TEST(EventKind, NamesAreDistinct) {
  for (const EventKind* kind : EventKinds()) {
    for (const EventKind* other : EventKinds()) {
      EXPECT_EQ(kind->name() == other->name(), kind == other) << kind->name();
    }
  }
}

}  // namespace
}  // namespace sordino
