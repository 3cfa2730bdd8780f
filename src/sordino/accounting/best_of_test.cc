#include "sordino/accounting/best_of.h"

#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(BestOf, ReadsBothKindsOfNumbers) {
  const Event run = Event::Gaussian(NoiseMultiplier(4));
  EXPECT_EQ(BestOf("tnb:-0.5:0.1", run).ToString(), "add-remove: best-tnb(-0.5, 0.1, gaussian(4))");
  EXPECT_EQ(BestOf("poisson:10", run), Event::BestPoisson(10, run));
  EXPECT_EQ(Event::Parse("add-remove: best-tnb(0, 0.1, 3*gaussian(4))"),
            BestOf("tnb:0:0.1", Event::Repeat(run, 3)));
}

TEST(BestOf, RefusesOtherText) {
  const Event run = Event::Gaussian(NoiseMultiplier(4));
  for (const char* text : {"", "tnb", "tnb:1", "tnb:1:0.1:2", "tnb:1:x", "tnb:1:", "poisson:",
                           "poisson:inf", "geometric:3", "tnb:-1:0.1", "tnb:1:0", "tnb:1:1",
                           "poisson:0", "poisson:-2", "tnb 1 0.1", "poisson:1e3000"}) {
    EXPECT_THROW(BestOf(text, run), Error) << text;
  }
}

TEST(BestOf, HoldsNoOtherSelection) {
  const Event best = BestOf("tnb:0:0.1", Event::Gaussian(NoiseMultiplier(4)));
  EXPECT_THROW(BestOf("poisson:3", Event::Compose({Event::Pure(Epsilon(1)), best})), Error);
}

// The best of nothing is nothing.
TEST(BestOf, NothingStaysNothing) { EXPECT_TRUE(BestOf("tnb:1:0.1", Event::None()).IsNone()); }

}  // namespace
}  // namespace sordino
