// The bound against exact arithmetic: the arithmetic that rounding.h describes is done here with
// plain floats, in several orders, on data chosen to round badly, and compared with long double
// (64 bits of significand at least: its own rounding is 2^-40 of what is measured in float32).
#include "sordino/gradients/internal/rounding/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/testing/rounding_test_support.h"

namespace sordino {
namespace {

using Vector = std::vector<float>;
using Vectors = std::vector<Vector>;
using Order = std::function<float(const Vector&)>;

float Forwards(const Vector& terms) {
  float sum = 0;
  for (const float term : terms) {
    sum += term;
  }
  return sum;
}

float Backwards(const Vector& terms) { return Forwards(Vector(terms.rbegin(), terms.rend())); }

float Pairwise(const Vector& terms) {
  if (terms.size() < 2) {
    return terms.empty() ? 0.0F : terms[0];
  }
  const auto middle = terms.begin() + static_cast<std::ptrdiff_t>(terms.size() / 2);
  return Pairwise(Vector(terms.begin(), middle)) + Pairwise(Vector(middle, terms.end()));
}

// Eight running sums, as a vector unit keeps them.
float EightLanes(const Vector& terms) {
  Vector lanes(8, 0.0F);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    lanes[i % 8] += terms[i];
  }
  return Forwards(lanes);
}

const std::vector<Order>& Orders() {
  static const std::vector<Order> orders = {Forwards, Backwards, Pairwise, EightLanes};
  return orders;
}

double LengthOf(const Vector& gradient) {
  double sum = 0;
  for (const float entry : gradient) {
    sum += static_cast<double>(entry) * static_cast<double>(entry);
  }
  return std::sqrt(sum);
}

// The clipped sum of materialised gradients: steps (a), (c), (d) of rounding.h.
Vector ClippedSum(const Vectors& batch, double bound, std::size_t rows, const Order& order) {
  const std::size_t width = batch.empty() ? 0 : batch[0].size();
  std::vector<double> total(width, 0.0);
  for (std::size_t begin = 0; begin < batch.size(); begin += rows) {
    const std::size_t end = std::min(batch.size(), begin + rows);
    for (std::size_t j = 0; j < width; ++j) {
      Vector terms;
      for (std::size_t i = begin; i < end; ++i) {
        const double norm = LengthOf(batch[i]);
        const auto factor = static_cast<float>(std::min(1.0, bound * (1 - 0x1p-50) / norm));
        terms.push_back(norm <= kMaxNorm ? factor * batch[i][j] : 0.0F);
      }
      total[j] += static_cast<double>(order(terms));
    }
  }
  return {total.begin(), total.end()};
}

RoundingModel Materialised(std::int64_t batch, std::int64_t rows, std::int64_t coordinates) {
  RoundingModel model;
  model.largest_batch = batch;
  model.rows_per_sum = rows;
  model.coordinates = coordinates;
  return model;
}

struct AdversarialBatches {
  std::string name;
  std::function<float(std::mt19937_64&, std::size_t example, std::size_t coordinate)> entry;
};

std::vector<AdversarialBatches> AdversarialData() {
  using Random = std::mt19937_64;
  const auto uniform = [](Random& random) {
    return std::uniform_real_distribution<float>(-1, 1)(random);
  };
  return {
      {"normal", [=](Random& r, std::size_t, std::size_t) { return uniform(r); }},
      {"huge and tiny",
       [=](Random& r, std::size_t i, std::size_t) {
         return uniform(r) * std::ldexp(1.0F, static_cast<int>(i * 37 % 140) - 60);
       }},
      {"denormal", [](Random& r, std::size_t,
                      std::size_t) { return std::ldexp(static_cast<float>(r() % 1000), -149); }},
      {"duplicates", [](Random&, std::size_t, std::size_t j) { return j == 0 ? 1.1F : 0.3F; }},
      {"alternating signs",
       [](Random&, std::size_t i, std::size_t j) {
         return (i % 2 == 0 ? 1.0F : -1.0F) * (1 + static_cast<float>(j) * 0x1p-20F);
       }},
      {"infinite norms mixed in",
       [=](Random& r, std::size_t i, std::size_t) { return i % 5 == 0 ? 3e38F : uniform(r); }},
      {"just above a power of two",
       [](Random& r, std::size_t, std::size_t) {
         return 1 + static_cast<float>(r() % 7) * 0x1p-23F;
       }},
  };
}

TEST(RoundingSlack, CoversTheDistanceOfNeighbouringSumsOnAdversarialData) {
  constexpr std::size_t kExamples = 96;
  constexpr std::size_t kWidth = 17;
  std::mt19937_64 random(1);
  for (const AdversarialBatches& generator : AdversarialData()) {
    Vectors batch(kExamples, Vector(kWidth));
    for (std::size_t i = 0; i < kExamples; ++i) {
      for (std::size_t j = 0; j < kWidth; ++j) {
        batch[i][j] = generator.entry(random, i, j);
      }
    }
    for (const double bound : {0.01, 1.0, 1000.0}) {
      for (const std::size_t rows : {std::size_t{1}, std::size_t{7}, kExamples}) {
        RoundingModel model = Materialised(kExamples, static_cast<std::int64_t>(rows), kWidth);
        model.smallest_bound = bound;
        const auto limit = static_cast<long double>(bound * (1 + RoundingSlack(model)));
        for (const std::size_t removed : {std::size_t{0}, std::size_t{5}, kExamples - 1}) {
          Vectors neighbour = batch;
          neighbour.erase(neighbour.begin() + static_cast<std::ptrdiff_t>(removed));
          for (std::size_t order = 0; order < Orders().size(); ++order) {
            // The two sums may even be added up in different orders.
            const Order& other = Orders()[(order + removed) % Orders().size()];
            EXPECT_LE(Distance(ClippedSum(batch, bound, rows, Orders()[order]),
                               ClippedSum(neighbour, bound, rows, other)),
                      limit)
                << generator.name << " bound " << bound << " rows " << rows;
          }
        }
      }
    }
  }
}

// Numbers just below 1, each chosen so that adding it to the running sum rounds up by nearly half
// a unit in the last place.
Vectors AllRoundingsUp(std::size_t examples, std::size_t rows) {
  Vectors batch;
  float sum = 0;
  for (std::size_t i = 0; i < examples; ++i) {
    if (i % rows == 0) {
      sum = 0;
    }
    float best = 1;
    double gain = -1;
    for (int step = 0; step < 4096; ++step) {
      const float candidate = 1 - static_cast<float>(step) * 0x1p-24F;
      const double rounded = static_cast<double>(sum + candidate) -
                             (static_cast<double>(sum) + static_cast<double>(candidate));
      if (rounded > gain) {
        gain = rounded;
        best = candidate;
      }
    }
    sum += best;
    batch.push_back({best});
  }
  return batch;
}

long double DistanceWhenAllRoundingsGoUp(std::size_t examples, std::size_t rows) {
  const Vectors batch = AllRoundingsUp(examples, rows);
  Vectors neighbour = batch;
  neighbour.pop_back();
  // float64 is another order that the bound covers; up to 2^29 these sums are exact in it.
  double exact = 0;
  for (const Vector& gradient : neighbour) {
    exact += static_cast<double>(gradient[0]);
  }
  // The bound is a little above the norms: nothing is clipped.
  const Vector sum = ClippedSum(batch, 1.0001, rows, Forwards);
  return std::abs(static_cast<long double>(sum[0]) - static_cast<long double>(exact));
}

TEST(RoundingSlack, IsReachedToASeventhWhenAllRoundingsGoUp) {
  constexpr std::size_t kExamples = 2048;
  constexpr std::size_t kRows = 256;
  RoundingModel model = Materialised(kExamples, kRows, 1);
  model.smallest_bound = 1.0001;
  const double slack = RoundingSlack(model);
  const long double distance = DistanceWhenAllRoundingsGoUp(kExamples, kRows);
  EXPECT_LE(distance, 1.0001L * (1 + static_cast<long double>(slack)));
  EXPECT_GE(distance, 1.0001L * (1 + static_cast<long double>(slack / 7)));
  EXPECT_NEAR(slack, 2.0 * kExamples * (kRows + 1) * 0x1p-24, 1e-3 * slack);
}

TEST(RoundingSlack, ATenTimesSmallerBoundIsViolated) {
  constexpr std::size_t kExamples = 2048;
  constexpr std::size_t kRows = 256;
  const double slack = RoundingSlack(Materialised(kExamples, kRows, 1));
  EXPECT_GT(DistanceWhenAllRoundingsGoUp(kExamples, kRows),
            1.0001L * (1 + static_cast<long double>(slack / 10)));
}

TEST(RoundingSlack, ASumOfOneBlockReachesTheBoundOfOneBlock) {
  // 1 and then R - 1 terms that are a little more than half a unit in the last place of 1: each
  // addition rounds up to a whole one. gamma_R sum |terms| is reached to 99%.
  constexpr std::size_t kRows = 1000;
  Vector terms(kRows, 0x1.0001p-24F);
  terms[0] = 1;
  long double exact = 0;
  for (const float term : terms) {
    exact += static_cast<long double>(term);
  }
  const long double error = std::abs(static_cast<long double>(Forwards(terms)) - exact);
  const auto limit = static_cast<long double>(Gamma(kRows, kFloat32Roundoff)) * exact;
  EXPECT_LE(error, limit);
  EXPECT_GE(error, 0.99L * limit);
}

TEST(RoundingSlack, HoldsWithFusedMultiplyAdds) {
  // Factors times entries inside the sum, rounded once for both.
  constexpr std::size_t kExamples = 512;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> uniform(0.5F, 1.5F);
  Vector entries(kExamples);
  Vector factors(kExamples);
  for (std::size_t i = 0; i < kExamples; ++i) {
    entries[i] = uniform(random);
    factors[i] = static_cast<float>(std::min(1.0, 1 / static_cast<double>(entries[i])));
  }
  const auto sum = [&](std::size_t count) {
    float total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      total = std::fma(factors[i], entries[i], total);
    }
    return static_cast<long double>(total);
  };
  const double slack = RoundingSlack(Materialised(kExamples, kExamples, 1));
  EXPECT_LE(sum(kExamples) - sum(kExamples - 1), 1 + static_cast<long double>(slack));
}

TEST(RoundingSlack, HoldsForFloat64Sums) {
  constexpr std::size_t kExamples = 4096;
  std::mt19937_64 random(5);
  std::vector<double> terms(kExamples);
  for (double& term : terms) {
    term = 1 - std::ldexp(static_cast<double>(random() % 64), -53);
  }
  double all = 0;
  long double exact = 0;
  for (std::size_t i = 0; i < kExamples; ++i) {
    all += terms[i];
    exact += static_cast<long double>(i + 1 < kExamples ? terms[i] : 0.0);
  }
  RoundingModel model = Materialised(kExamples, kExamples, 1);
  model.product_roundoff = kFloat64Roundoff;
  model.norm_roundoff = kFloat64Roundoff;
  model.sum_roundoff = kFloat64Roundoff;
  model.result_roundoff = kFloat64Roundoff;
  const double slack = RoundingSlack(model);
  EXPECT_LT(slack, 1e-8);
  EXPECT_LE(static_cast<long double>(all) - exact, 1 + static_cast<long double>(slack));
}

TEST(RoundingSlack, HoldsForProductsOfBfloat16Inputs) {
  // Both inputs of f a b cut to 8 bits: the contribution of one example exceeds its bound by up to
  // (1 + 2^-8)^2.
  const auto to_bfloat16 = [](float value) {
    int exponent = 0;
    const float fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
  };
  RoundingModel model = Materialised(1, 1, 1);
  model.input_roundoff = kBfloat16Roundoff;
  const double slack = RoundingSlack(model);
  float largest = 0;
  for (int i = 0; i < 4096; ++i) {
    const float a = 1 + static_cast<float>(i) * 0x1p-12F;
    const auto b = static_cast<float>((1 - 0x1p-50) / static_cast<double>(a));
    largest = std::max(largest, to_bfloat16(a) * to_bfloat16(b));
  }
  EXPECT_LE(static_cast<double>(largest), 1 + slack);
  EXPECT_GT(static_cast<double>(largest), 1 + 1.2 * kBfloat16Roundoff);
}

TEST(RoundingSlack, IsSmallerWhenOtherRowsKeepTheirPlaces) {
  // Zero-out: the record's place holds a zero, every other block of rows is computed as before.
  constexpr std::size_t kExamples = 2048;
  constexpr std::size_t kRows = 64;
  RoundingModel model = Materialised(kExamples, kRows, 1);
  const double anywhere = RoundingSlack(model);
  model.beside = kRows;
  model.smallest_bound = 1.0001;
  const double in_place = RoundingSlack(model);
  EXPECT_LT(in_place, anywhere / 10);
  const Vectors batch = AllRoundingsUp(kExamples, kRows);
  for (const std::size_t record : {std::size_t{0}, std::size_t{65}, kExamples - 1}) {
    Vectors neighbour = batch;
    neighbour[record] = {0.0F};
    EXPECT_LE(Distance(ClippedSum(batch, 1.0001, kRows, Forwards),
                       ClippedSum(neighbour, 1.0001, kRows, Forwards)),
              1.0001L * (1 + static_cast<long double>(in_place)));
  }
}

TEST(LongestSum, IsTheLastThatFits) {
  RoundingModel model = GhostModel(100, 4, 2);
  model.largest_batch = 256;
  for (const double slack : {1e-3, 0.01, 0.1}) {
    const std::int64_t longest = LongestSum(model, slack);
    ASSERT_GT(longest, 0);
    model.rows_per_sum = longest;
    EXPECT_LE(RoundingSlack(model), slack);
    model.rows_per_sum = longest + 1;
    EXPECT_GT(RoundingSlack(model), slack);
  }
  EXPECT_EQ(LongestSum(model, 1e-6), 0);
  EXPECT_EQ(LongestSum(model, 1e6), 1 << 20);
}

TEST(RoundingSlack, GrowsWithEveryHazard) {
  RoundingModel base = GhostModel(100, 4, 2);
  base.largest_batch = 64;
  base.rows_per_sum = 32;
  const double slack = RoundingSlack(base);
  const auto grows = [&](const std::function<void(RoundingModel&)>& change) {
    RoundingModel model = base;
    change(model);
    EXPECT_GT(RoundingSlack(model), slack);
  };
  grows([](RoundingModel& m) { m.product_roundoff *= 2; });
  grows([](RoundingModel& m) { m.norm_roundoff *= 2; });
  grows([](RoundingModel& m) { m.sum_roundoff *= 2; });
  grows([](RoundingModel& m) { m.input_roundoff = kTf32Roundoff; });
  grows([](RoundingModel& m) { m.result_roundoff *= 2; });
  grows([](RoundingModel& m) { m.rows_per_sum *= 2; });
  grows([](RoundingModel& m) { m.cancellation *= 2; });
  grows([](RoundingModel& m) { m.largest_batch *= 2; });
  grows([](RoundingModel& m) { m.features *= 2; });
  grows([](RoundingModel& m) { m.rows *= 2; });
  grows([](RoundingModel& m) { m.norm_roundings = 200; });
  // Convolutions have no Gram matrices in float32, but products that are computed twice.
  base.features = 0;
  base.norm_roundings = 0;
  const double products = RoundingSlack(base);
  RoundingModel longer = base;
  longer.rows *= 64;
  EXPECT_GT(RoundingSlack(longer), products);
  RoundingModel in_parts = longer;
  in_parts.product_rows = 4;
  EXPECT_LT(RoundingSlack(in_parts), RoundingSlack(longer));
  EXPECT_GT(RoundingSlack(in_parts), products);
  base.features = 100;
  grows([](RoundingModel& m) { m.coordinates = 1 << 30; });
  grows([](RoundingModel& m) { m.uses *= 100; });
  grows([](RoundingModel& m) { m.largest_factor = 100; });
  grows([](RoundingModel& m) { m.smallest_bound = 1e-3; });
}

TEST(RoundingSlack, RefusesWhatItCannotBound) {
  const auto refuses = [](const std::function<void(RoundingModel&)>& change) {
    RoundingModel model;
    change(model);
    EXPECT_THROW(RoundingSlack(model), Error);
  };
  refuses([](RoundingModel& m) { m.rows_per_sum = 1 << 23; });
  refuses([](RoundingModel& m) { m.features = 1 << 23; });
  refuses([](RoundingModel& m) { m.rows_per_sum = 0; });
  refuses([](RoundingModel& m) { m.largest_batch = 0; });
  refuses([](RoundingModel& m) { m.beside = -1; });
  refuses([](RoundingModel& m) { m.rows = 0; });
  refuses([](RoundingModel& m) { m.product_rows = -1; });
  refuses([](RoundingModel& m) { m.norm_roundings = -1; });
  refuses([](RoundingModel& m) { m.cancellation = 0.5; });
  refuses([](RoundingModel& m) { m.cancellation = kInfinity; });
  refuses([](RoundingModel& m) { m.smallest_bound = 1e-13; });
  refuses([](RoundingModel& m) { m.sum_roundoff = -1; });
}

}  // namespace
}  // namespace sordino
