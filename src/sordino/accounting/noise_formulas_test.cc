#include "sordino/accounting/noise_formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(NoiseFormulas, AreTheNotesFormulas) {
  const SamplingRate q(0.01);
  const double t = 10000;
  const double log_inverse = std::log(1e5);
  EXPECT_NEAR(BasicNoise(q, 10000, Epsilon(2), Delta(1e-5)),
              0.01 * t * std::sqrt(2 * std::log(1.25 * 0.01 * t / 1e-5)) / 2, 1e-10);
  EXPECT_NEAR(AdvancedNoise(q, 10000, Epsilon(2), Delta(1e-5)),
              0.01 * std::sqrt(t * log_inverse * std::log(t / 1e-5)) / 2, 1e-10);
  EXPECT_NEAR(MomentsNoise(q, 10000, Epsilon(2), Delta(1e-5), 1.5),
              1.5 * 0.01 * std::sqrt(t * log_inverse) / 2, 1e-12);
}

TEST(NoiseFormulas, TableShowsTheSquareRootOfTheSteps) {
  const std::vector<std::uint64_t> steps = {100, 10000, 1000000, 100000000};
  const auto rows = NoiseFormulaTable(SamplingRate(0.01), Epsilon(1), Delta(1e-5), steps,
                                      [](std::uint64_t t) { return static_cast<double>(t); });
  for (std::size_t i = 1; i < rows.size(); ++i) {
    // A hundred times the steps: a tenth of the ratio, up to the logarithms.
    const double fall = rows[i - 1].advanced_over_basic / rows[i].advanced_over_basic;
    EXPECT_NEAR(fall, 10, 0.5);
    EXPECT_NEAR(rows[i].ratio_times_sqrt_steps / rows[0].ratio_times_sqrt_steps, 1, 0.1);
    EXPECT_LT(rows[i].moments, rows[i].advanced);
    EXPECT_LT(rows[i].advanced, rows[i].basic);
    EXPECT_EQ(rows[i].exact, static_cast<double>(steps[i]));
  }
}

TEST(NoiseFormulas, BadInputsAreRefused) {
  EXPECT_THROW(BasicNoise(SamplingRate(0), 1, Epsilon(1), Delta(1e-5)), Error);
  EXPECT_THROW(BasicNoise(SamplingRate(1e-9), 1, Epsilon(1), Delta(0.5)), Error);
  EXPECT_THROW(AdvancedNoise(SamplingRate(0.1), 0, Epsilon(1), Delta(1e-5)), Error);
  EXPECT_THROW(MomentsNoise(SamplingRate(0.1), 1, Epsilon(0), Delta(1e-5)), Error);
  EXPECT_THROW(MomentsNoise(SamplingRate(0.1), 1, Epsilon(1), Delta(0)), Error);
}

}  // namespace
}  // namespace sordino
