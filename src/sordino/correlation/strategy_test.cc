#include "sordino/correlation/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/processor_time.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kToeplitz = {"none", "banded:8", "blt:3", "bisr:4", "bifr:4"};

// n_t from w by the filters of the steps, as a process makes it.
std::vector<double> Filtered(const Strategy& strategy, const std::vector<double>& draws,
                             bool as_arma) {
  std::vector<double> noise(draws.size());
  std::vector<double> buffers(strategy.Filter(0).buffers.size(), 0.0);
  for (std::size_t t = 0; t < draws.size(); ++t) {
    const auto step = static_cast<std::int64_t>(t);
    const NoiseFilter filter = as_arma ? strategy.ArmaFilter(step) : strategy.Filter(step);
    noise[t] = draws[t];
    for (std::size_t i = 0; i < filter.earlier_draws.size() && i < t; ++i) {
      noise[t] += filter.earlier_draws[i] * draws[t - 1 - i];
    }
    for (std::size_t i = 0; i < filter.earlier_noise.size() && i < t; ++i) {
      noise[t] -= filter.earlier_noise[i] * noise[t - 1 - i];
    }
    for (std::size_t i = 0; i < filter.buffers.size(); ++i) {
      noise[t] += filter.buffers[i].weight * buffers[i];
      buffers[i] = filter.buffers[i].decay * buffers[i] + draws[t];
    }
  }
  return noise;
}

std::vector<double> Product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> product(a.size(), 0.0);
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (std::size_t s = 0; s <= t; ++s) product[t] += a[t - s] * b[s];
  }
  return product;
}

std::vector<double> NormalDraws(std::size_t count) {
  std::mt19937 draws(7);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(draws);
  return values;
}

TEST(Strategy, FiltersAreTheInverseOfItsCoefficients) {
  const std::vector<double> draws = NormalDraws(60);
  for (const std::string& text : kToeplitz) {
    const auto strategy = MakeStrategy(text, {60, 10, 6});
    const std::vector<double> inverse = strategy->NoiseCoefficients(60);
    const std::vector<double> one = Product(strategy->Coefficients(60), inverse);
    for (std::size_t t = 0; t < one.size(); ++t) EXPECT_NEAR(one[t], t == 0 ? 1 : 0, 1e-12);
    const std::vector<double> noise = Product(inverse, draws);
    for (const bool as_arma : {false, true}) {
      const std::vector<double> filtered = Filtered(*strategy, draws, as_arma);
      for (std::size_t t = 0; t < noise.size(); ++t) {
        EXPECT_NEAR(filtered[t], noise[t], 1e-10) << text << " step " << t;
      }
    }
    EXPECT_TRUE(strategy->ArmaFilter(0).buffers.empty());
  }
}

TEST(Strategy, ErrorsAreTheRowsOfTheMatrixThatAddsUp) {
  const Participation participation{40, 8, 5};
  for (const std::string& text : kToeplitz) {
    const auto strategy = MakeStrategy(text, participation);
    const std::vector<double> inverse = strategy->NoiseCoefficients(40);
    double sum = 0;
    double largest = 0;
    for (std::size_t t = 0; t < 40; ++t) {
      double square = 0;  // of row t of A C^-1
      for (std::size_t s = 0; s <= t; ++s) {
        const double entry = std::accumulate(
            inverse.begin(), inverse.begin() + static_cast<std::ptrdiff_t>(t - s) + 1, 0.0);
        square += entry * entry;
      }
      sum += square;
      largest = std::max(largest, square);
    }
    const double sensitivity = strategy->Sensitivity();
    EXPECT_NEAR(strategy->Rmse(), sensitivity * std::sqrt(sum / 40), 1e-9);
    EXPECT_NEAR(strategy->MaxError(), sensitivity * std::sqrt(largest), 1e-9);
  }
}

TEST(TreeStrategy, AddsUpOneSubtreeForEachDigitOfThePrefix) {
  const auto tree = MakeStrategy("tree", {70, 1, 1});
  const std::vector<double> draws = NormalDraws(70);
  const std::vector<double> sums = PrefixSums(Filtered(*tree, draws, false));
  const std::vector<double> errors = tree->SquaredErrors(70);
  for (std::uint64_t t = 0; t < 70; ++t) {
    double sum = 0;
    int subtrees = 0;
    // Prefix of t + 1 leaves: draws of the subtrees that end at t, and at what is left of it.
    for (std::uint64_t left = t + 1; left > 0; left &= left - 1, ++subtrees) sum += draws[left - 1];
    EXPECT_NEAR(sums[t], sum, 1e-12);
    EXPECT_EQ(errors[t], subtrees);
  }
  EXPECT_NEAR(tree->Sensitivity(), std::sqrt(7.0), 1e-12);  // floor(log2 70) + 1
  EXPECT_FALSE(tree->IsToeplitz());
  EXPECT_THROW(tree->Coefficients(4), Error);
}

struct Published {
  std::int64_t steps;
  std::int64_t count;
  double error;
};

TEST(BandedStrategy, HasThePublishedErrorsInTime) {
  for (const Published& row : {Published{128, 1, 2.397178}, Published{128, 4, 5.130562},
                               Published{128, 16, 13.731299}, Published{1000, 1, 3.049049},
                               Published{1024, 8, 9.964707}, Published{2048, 16, 17.137090}}) {
    const std::int64_t separation = row.steps / row.count;
    const double start = ProcessorSeconds();
    const auto strategy =
        MakeStrategy("banded:" + std::to_string(separation), {row.steps, separation, row.count});
    EXPECT_NEAR(strategy->Rmse(), row.error, 1e-6) << row.steps << "," << row.count;
    EXPECT_LT(ProcessorSeconds() - start, 1);
  }
}

TEST(BandedStrategy, HasThePublishedLargestErrors) {
  for (const Published& row :
       {Published{128, 1, 2.610104}, Published{128, 4, 6.171712}, Published{128, 16, 18.166807}}) {
    const std::int64_t separation = row.steps / row.count;
    const auto strategy =
        MakeStrategy("banded:" + std::to_string(separation), {row.steps, separation, row.count},
                     CorrelationObjective::kMaxError);
    EXPECT_NEAR(strategy->MaxError(), row.error, 1e-6);
  }
}

TEST(BandedStrategy, IsAMinimum) {
  const Participation participation{60, 6, 10};
  const auto strategy = MakeStrategy("banded:6", participation);
  const auto error = [&](const std::vector<double>& column) {
    const std::vector<double> rows = RowNorms(PrefixSums(InverseColumn(column, 60)));
    const double square = std::inner_product(column.begin(), column.end(), column.begin(), 0.0);
    return std::sqrt(10 * square * std::accumulate(rows.begin(), rows.end(), 0.0) / 60);
  };
  std::vector<double> column = strategy->Coefficients(60);
  column.resize(6);
  EXPECT_NEAR(strategy->Rmse(), error(column), 1e-9);
  for (std::size_t j = 1; j < column.size(); ++j) {
    for (const double change : {-1e-3, 1e-3}) {
      std::vector<double> other = column;
      other[j] += change;
      EXPECT_GT(error(other), error(column));
    }
  }
}

TEST(BandedStrategy, IsNoWorseWithBandsThatOverlap) {
  const Participation participation{120, 10, 3};
  double before = MakeStrategy("banded:10", participation)->Rmse();
  for (const char* text : {"banded:15", "banded:40", "banded:120"}) {
    const auto strategy = MakeStrategy(text, participation);
    EXPECT_LE(strategy->Rmse(), before * (1 + 1e-4)) << text;
  }
  // With two participations close together, overlapping bands are worth a lot.
  EXPECT_LT(MakeStrategy("banded:40", {400, 2, 2})->Rmse(),
            0.5 * MakeStrategy("banded:2", {400, 2, 2})->Rmse());
}

TEST(BandedStrategy, OfAHundredThousandStepsTakesSeconds) {
  const double start = ProcessorSeconds();
  const auto strategy = MakeStrategy("banded:32", {100'000, 100'000, 1});
  EXPECT_LT(ProcessorSeconds() - start, 5);
  EXPECT_LT(strategy->Rmse(), 40.072);
}

TEST(BifrStrategy, HasThePublishedErrors) {
  const std::vector<std::pair<int, double>> rows = {
      {2, 15.248619}, {4, 14.708124}, {8, 13.725592}, {16, 12.761807}, {32, 12.260923}};
  for (const auto& [bands, error] : rows) {
    const double start = ProcessorSeconds();
    const auto strategy = MakeStrategy("bifr:" + std::to_string(bands), {1000, 100, 10});
    EXPECT_NEAR(strategy->Rmse(), error, 1e-6);
    EXPECT_LT(ProcessorSeconds() - start, 1);
    EXPECT_GT(MakeStrategy("bisr:" + std::to_string(bands), {1000, 100, 10})->Rmse(), error);
  }
  // C^-1 = 1 - gamma x.
  EXPECT_NEAR(-MakeStrategy("bifr:2", {1000, 100, 10})->NoiseCoefficients(2)[1], 0.95305, 1e-5);
}

TEST(BltStrategy, IsNearlyAsGoodAsAllBands) {
  const Participation once{1000, 1000, 1};
  const double all = MakeStrategy("banded:1000", once)->Rmse();
  EXPECT_LT(MakeStrategy("blt:4", once)->Rmse(), 1.001 * all);
  double before = kInfinity;
  for (const char* text : {"blt:1", "blt:2", "blt:3", "blt:4"}) {
    const auto strategy = MakeStrategy(text, once);
    EXPECT_LT(strategy->Rmse(), before);
    before = strategy->Rmse();
    for (const NoiseBuffer& buffer : strategy->Filter(0).buffers) {
      EXPECT_GE(buffer.decay, 0);
      EXPECT_LT(buffer.decay, 1);
      EXPECT_LT(buffer.weight, 0);
    }
  }
}

TEST(NoStrategy, HasTheErrorsOfIndependentNoise) {
  const auto none = MakeStrategy("none", {100, 10, 4});
  EXPECT_NEAR(none->Rmse(), std::sqrt(4 * 101 / 2.0), 1e-10);
  EXPECT_NEAR(none->MaxError(), std::sqrt(4 * 100.0), 1e-10);
}

TEST(MakeStrategy, ReadsAndRefuses) {
  const Participation participation{50, 10, 5};
  for (const char* text : {"none", "banded:4", "blt:2", "bisr:4", "bifr:4", "tree"}) {
    EXPECT_EQ(MakeStrategy(text, participation)->text(), text);
  }
  EXPECT_EQ(MakeStrategy("banded", participation)->text(), "banded:10");
  const auto sentence = [&](const char* text) -> std::string {
    try {
      MakeStrategy(text, participation);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(sentence("bandet:4"), HasSubstr("did you mean 'banded'"));
  EXPECT_THAT(sentence("banded:"), HasSubstr("whole number"));
  EXPECT_THAT(sentence("banded:0"), HasSubstr("whole number"));
  EXPECT_THAT(sentence("banded:4x"), HasSubstr("whole number"));
  EXPECT_THAT(sentence("banded:51"), HasSubstr("at most 50"));
  EXPECT_THAT(sentence("tree:2"), HasSubstr("takes no number"));
  EXPECT_THAT(sentence("blt:13"), HasSubstr("at most 12"));
}

TEST(MakeStrategy, AnswersForOneAndTwoSteps) {
  for (const std::int64_t steps : {1, 2}) {
    for (const char* text : {"none", "banded", "blt", "bisr", "bifr", "tree"}) {
      const auto strategy = MakeStrategy(text, {steps, 1, 1});
      EXPECT_GE(strategy->Rmse(), 1) << text;
      EXPECT_TRUE(std::isfinite(strategy->MaxError())) << text;
    }
  }
}

}  // namespace
}  // namespace sordino
