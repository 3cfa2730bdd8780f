#include "sordino/accounting/internal/engines/short_profile.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Sampled;
using testing::Steps;

std::vector<Event> ShortEvents() {
  return {
      Steps(Sampled(0.1, 1.2), 10),
      Steps(Sampled(0.3, 0.7, Adjacency::kReplaceOne), 3),
      Steps(Event::Poisson(SamplingRate(0.2), Event::Laplace(NoiseMultiplier(1))), 6),
      Steps(Event::TruncatedPoisson(1000, SamplingRate(0.1), 110,
                                    Event::Gaussian(NoiseMultiplier(2))),
            8),
      Event::Compose({Steps(Sampled(0.05, 0.8), 5), Event::Gaussian(NoiseMultiplier(3))}),
  };
}

// Quick grids are wide enough to tell their two sides apart.
TEST(ShortProfile, IsNeverBelowWhatIsAttained) {
  for (const Event& event : ShortEvents()) {
    std::optional<ShortProfile> quick = ShortProfile::Of(event, Effort::kQuick);
    std::optional<ShortProfile> full = ShortProfile::Of(event, Effort::kFull);
    ASSERT_TRUE(quick && full) << event.ToString();
    for (const double epsilon : {1.1, 0.3, 2.3, 0.0}) {
      const Interval certified = CertifiedLogDelta(event, epsilon).value;
      const double upper = full->LogDelta(epsilon);
      EXPECT_GE(quick->LogDelta(epsilon), certified.lower) << event.ToString() << ' ' << epsilon;
      EXPECT_GE(upper, certified.lower) << event.ToString() << ' ' << epsilon;
      EXPECT_LE(upper, certified.upper + 1e-4) << event.ToString() << ' ' << epsilon;
    }
  }
}

TEST(ShortProfile, LeavesOtherEventsToOthers) {
  const Event gaussian = Event::Gaussian(NoiseMultiplier(2));
  for (const Event& event :
       {gaussian, Steps(gaussian, 10), Sampled(0.1, 1), Steps(Sampled(0.01, 1), 1000),
        Steps(Event::Pure(Epsilon(0.5)), 4), Event::BestPoisson(3, Steps(Sampled(0.1, 1), 5))}) {
    EXPECT_FALSE(ShortProfile::Of(event, Effort::kFull)) << event.ToString();
  }
}

}  // namespace
}  // namespace sordino
