// The rows of the reference table that need no privacy loss distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/gdp.h"
#include "sordino/accounting/internal/renyi/renyi_bounds.h"
#include "sordino/accounting/moments.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/testing/published_renyi.h"
#include "sordino/accounting/testing/vector_rows.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/accounting/zcdp.h"

namespace sordino {
namespace {

Event SampledSteps(double rate, double noise, double steps) {
  return Event::Repeat(Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise))),
                       static_cast<std::uint64_t>(std::llround(steps)));
}

void ExpectClose(const VectorRow& row, double actual) {
  if (std::isinf(row.expected)) {
    EXPECT_EQ(actual, row.expected) << row.id;
    return;
  }
  EXPECT_NEAR(actual, row.expected, row.rtol * std::abs(row.expected)) << row.id;
}

// The least epsilon of a curve over a row's orders.
template <typename Curve>
double EpsilonOnOrders(Curve curve, double log_delta, const std::vector<double>& orders) {
  double best = kInfinity;
  for (const double order : orders) {
    best = std::min(best, EpsilonFromRenyi(curve(order), order, log_delta));
  }
  return best;
}

// The orders that a row was computed on.
std::vector<double> OrdersOf(const VectorRow& row) {
  std::vector<double> orders;
  if (row.Mentions("orders 2..32")) {
    for (int i = 2; i <= 32; ++i) orders.push_back(i);
    return orders;
  }
  const bool short_list = row.Mentions("1.1..10.9");
  for (int i = 1; i <= 99; ++i) orders.push_back(1 + i / 10.0);
  for (int i = short_list ? 12 : 11; i <= 63; ++i) orders.push_back(i);
  if (!short_list) orders.insert(orders.end(), {128, 256, 512, 1024});
  return orders;
}

// On the row's orders the value is met; over all real orders the answer is no larger.
void CheckRenyiEpsilon(const VectorRow& row, const Event& event) {
  const double log_delta = std::log(row.Number("delta"));
  RenyiCurve curve(event);
  const RenyiEpsilonResult best = curve.ToEpsilon(log_delta);
  if (row.Mentions("continuous")) {
    ExpectClose(row, best.epsilon);
    return;
  }
  const auto function = [&curve](double order) { return curve(order); };
  ExpectClose(row, EpsilonOnOrders(function, log_delta, OrdersOf(row)));
  EXPECT_LE(best.epsilon, row.expected * (1 + 1e-9)) << row.id;
  EXPECT_GE(best.epsilon, row.expected * 0.97) << row.id;
}

// "[(1e-5,1.0,10),(1e-4,3.0,4)] q,sigma,steps"
Event TupleSteps(const std::string& params) {
  std::vector<Event> parts;
  const char* at = params.c_str();
  while ((at = std::strchr(at, '(')) != nullptr) {
    char* next = nullptr;
    const double rate = std::strtod(at + 1, &next);
    const double noise = std::strtod(next + 1, &next);
    const double steps = std::strtod(next + 1, &next);
    parts.push_back(SampledSteps(rate, noise, steps));
    at = next;
  }
  return Event::Compose(parts);
}

void CheckPoissonRenyi(const VectorRow& row) {
  if (row.params.rfind("[(", 0) == 0) {
    CheckRenyiEpsilon(row, TupleSteps(row.params));
    return;
  }
  const double rate = row.Has("q") ? row.Number("q") : row.Number("batch") / row.Number("n");
  CheckRenyiEpsilon(row, SampledSteps(rate, row.Number("sigma"), row.NumberOr("T", 1)));
}

void CheckPoissonCurve(const VectorRow& row) {
  RenyiCurve curve(SampledSteps(row.Number("q"), row.Number("sigma"), row.NumberOr("T", 1)));
  ExpectClose(row, curve(row.Number("order")));
}

void CheckExponential(const VectorRow& row) {
  if (row.quantity == "rdp") {
    ExpectClose(row, BoundedRangeRenyi(row.Number("eps"), row.Number("order")));
    return;
  }
  // The row was computed with R = KL + (alpha - 1) eps^2 / 8 at every step; the exact curve is
  // below that.
  const double epsilon = row.Number("eps");
  const double steps = row.Number("T");
  const auto published = [&](double order) {
    return steps * (BoundedRangeRenyi(epsilon, 1) + (order - 1) * epsilon * epsilon / 8);
  };
  const double log_delta = std::log(row.Number("delta"));
  ExpectClose(row, EpsilonOnOrders(published, log_delta, OrdersOf(row)));
  RenyiCurve curve(
      Event::Repeat(Event::Exponential(Epsilon(epsilon)), static_cast<std::uint64_t>(steps)));
  EXPECT_LE(curve.ToEpsilon(log_delta).epsilon, row.expected) << row.id;
}

void CheckRandomizedResponse(const VectorRow& row) {
  const Adjacency adjacency =
      row.Mentions("replace_special") ? Adjacency::kZeroOut : Adjacency::kReplaceOne;
  RenyiCurve curve(Event::RandomizedResponse(
      row.Number("p"), static_cast<std::uint32_t>(row.Number("k")), adjacency));
  ExpectClose(row, curve(row.Number("order")));
}

void CheckResponseComposition(const VectorRow& row) {
  // With two buckets one report is randomised response with this epsilon, exactly.
  ASSERT_EQ(row.Number("k"), 2) << row.id;
  const double p = row.Number("p");
  const StepGuarantee steps{std::log1p((1 - p) * 2 / p), -kInfinity,
                            static_cast<std::uint64_t>(row.Number("T"))};
  ExpectClose(row, OptimalEpsilon(steps, std::log(row.Number("delta"))));
}

void CheckFixedGaussian(const VectorRow& row) {
  const double rate = row.Number("q");
  const double noise = row.Number("sigma");
  const double order = row.Number("order");
  const double steps = row.NumberOr("T", 1);
  RenyiCurve curve(
      Event::Repeat(Event::Fixed(SamplingRate(rate),
                                 Event::Gaussian(NoiseMultiplier(noise), Adjacency::kReplaceOne)),
                    static_cast<std::uint64_t>(steps)));
  EXPECT_LE(curve(order), row.expected * (1 + row.rtol)) << row.id;
  const double published =
      steps * testing::PublishedFixedGaussianRenyi(rate, noise, static_cast<int>(order));
  EXPECT_LE(curve(order), published * (1 + 1e-9)) << row.id;
  // The source's own sum at order 256 leaves out the factor 2 of its last term.
  if (order != 256) {
    EXPECT_NEAR(published, row.expected, row.rtol * row.expected) << row.id;
  }
}

void CheckAnalyticGaussian(const VectorRow& row) {
  const double mu = GaussianMu(row.Number("eps"), std::log(row.Number("delta")));
  ExpectClose(row, row.NumberOr("sens", 1) / mu);
}

void CheckGaussianExact(const VectorRow& row) {
  const double mu = std::sqrt(row.NumberOr("T", 1)) / row.Number("sigma");
  if (row.quantity == "delta") {
    ExpectClose(row, std::exp(GaussianLogDelta(mu, row.Number("eps"))));
  } else {
    ExpectClose(row, GaussianEpsilon(mu, std::log(row.Number("delta"))));
  }
}

// "50x sigma=10 + 50x sigma=5;eps=4"
void CheckGaussianMixed(const VectorRow& row) {
  double squares = 0;
  const std::string& text = row.params;
  for (std::size_t at = text.find("x sigma="); at != std::string::npos;
       at = text.find("x sigma=", at + 1)) {
    std::size_t start = at;
    while (start > 0 && std::isdigit(static_cast<unsigned char>(text[start - 1])) != 0) --start;
    const double count = std::strtod(text.c_str() + start, nullptr);
    const double sigma = std::strtod(text.c_str() + at + 8, nullptr);
    squares += count / (sigma * sigma);
  }
  ExpectClose(row, std::exp(GaussianLogDelta(std::sqrt(squares), row.Number("eps"))));
}

void CheckZcdp(const VectorRow& row) {
  const double rho = row.Number("rho");
  const double log_delta = std::log(row.Number("delta"));
  const double epsilon = ZcdpEpsilon(rho, log_delta).epsilon;
  if (!row.Mentions("Bun-Steinke")) return ExpectClose(row, epsilon);
  ExpectClose(row, rho + 2 * std::sqrt(-rho * log_delta));
  EXPECT_LE(epsilon, row.expected * (1 + row.rtol)) << row.id;
}

void CheckOptimal(const VectorRow& row) {
  const StepGuarantee steps{row.Number("eps"), std::log(row.Number("delta")),
                            static_cast<std::uint64_t>(row.Number("k"))};
  ExpectClose(row, OptimalEpsilon(steps, std::log(row.Number("total_delta"))));
}

void CheckTree(const VectorRow& row) {
  const double noise = row.Number("sigma");
  const auto steps = static_cast<std::uint64_t>(row.Number("steps"));
  const Event tree = Event::Tree(NoiseMultiplier(noise), steps);
  if (row.Mentions("exact")) {
    const double mu = 1 / EquivalentGaussian(tree).value();
    ExpectClose(row, GaussianEpsilon(mu, std::log(row.Number("delta"))));
  } else {
    CheckRenyiEpsilon(row, tree);
  }
}

// No event stands for a record that comes back to a tree, so every pattern is tried: the sum over
// all pairs of participations of the complete subtrees that hold both.
void CheckTreeSensitivity(const VectorRow& row) {
  const int steps = static_cast<int>(row.Number("steps"));
  const int most = static_cast<int>(row.Number("max_participation"));
  const int separation = static_cast<int>(row.Number("min_separation"));
  const auto common = [steps](int a, int b) {
    int nodes = 0;
    for (int h = 0; h < 30; ++h) nodes += a >> h == b >> h && ((a >> h) + 1) << h <= steps;
    return nodes;
  };
  int best = 0;
  std::vector<int> places;
  const std::function<void(int, int)> extend = [&](int from, int sum) {
    best = std::max(best, sum);
    for (int next = from; next < steps && std::ssize(places) < most; ++next) {
      int more = common(next, next);
      for (const int place : places) more += 2 * common(place, next);
      places.push_back(next);
      extend(next + separation + 1, sum + more);
      places.pop_back();
    }
  };
  extend(0, 0);
  ExpectClose(row, best);
}

void CheckRepeatAndSelect(const VectorRow& row) {
  RenyiCurve laplace(Event::Laplace(NoiseMultiplier(1 / row.Number("eps"))));
  ASSERT_EQ(row.Number("shape"), 1);
  const RunCount runs = RunCount::TruncatedNegativeBinomial(1, 1 / row.Number("mean"));
  ExpectClose(row, BestOfNegativeBinomialRenyi([&](double order) { return laplace(order); }, runs,
                                               row.Number("order")));
}

const RowCheckers& Checkers() {
  static const RowCheckers checkers = {
      {"poisson_gaussian", CheckPoissonCurve},
      {"poisson_gaussian RDP", CheckPoissonRenyi},
      {"poisson_gaussian moments accountant",
       [](const VectorRow& row) {
         const MomentsResult result =
             MomentsAccountant(SampledSteps(row.Number("q"), row.Number("sigma"), row.Number("T")),
                               std::log(row.Number("delta")));
         ExpectClose(row, result.epsilon);
       }},
      {"gaussian",
       [](const VectorRow& row) {
         RenyiCurve curve(Event::Gaussian(NoiseMultiplier(row.Number("sigma"))));
         ExpectClose(row, curve(row.Number("order")));
       }},
      {"gaussian RDP",
       [](const VectorRow& row) {
         CheckRenyiEpsilon(row, Event::Repeat(Event::Gaussian(NoiseMultiplier(row.Number("sigma"))),
                                              static_cast<std::uint64_t>(row.NumberOr("T", 1))));
       }},
      {"rdp_to_dp gaussian",
       [](const VectorRow& row) {
         CheckRenyiEpsilon(row, Event::Gaussian(NoiseMultiplier(row.Number("sigma"))));
       }},
      {"gaussian exact", CheckGaussianExact},
      {"gaussian heterogeneous", CheckGaussianMixed},
      {"gaussian trade-off",
       [](const VectorRow& row) {
         ExpectClose(row, GaussianTruePositiveRate(row.Number("mu"), row.Number("fpr")));
       }},
      {"analytic_gaussian", CheckAnalyticGaussian},
      {"exponential_mechanism", CheckExponential},
      {"exponential mechanism", CheckExponential},
      {"randomized_response", CheckRandomizedResponse},
      {"RR self-composition", CheckResponseComposition},
      {"wor_gaussian", CheckFixedGaussian},
      {"gdp_clt poisson",
       [](const VectorRow& row) {
         const GdpResult gdp =
             GdpOf(SampledSteps(row.Number("q"), row.Number("sigma"), row.Number("T")));
         EXPECT_FALSE(gdp.sound) << row.id;
         ExpectClose(row, GaussianEpsilon(gdp.mu, std::log(row.Number("delta"))));
       }},
      {"gdp dual",
       [](const VectorRow& row) {
         ExpectClose(row, GaussianEpsilon(row.Number("mu"), std::log(row.Number("delta"))));
       }},
      {"zcdp_to_dp", CheckZcdp},
      {"KOV", CheckOptimal},
      {"advanced composition DRV",
       [](const VectorRow& row) {
         const double epsilon = row.Number("eps");
         const double k = row.Number("k");
         const double log_slack = std::log(row.Number("delta'"));
         ExpectClose(row,
                     epsilon * std::sqrt(-2 * k * log_slack) + k * epsilon * std::expm1(epsilon));
         const StepGuarantee steps{epsilon, -kInfinity, static_cast<std::uint64_t>(k)};
         EXPECT_LE(AdvancedEpsilon(std::span(&steps, 1), log_slack), row.expected) << row.id;
       }},
      {"laplace composition pure",
       [](const VectorRow& row) {
         // At delta 0 epsilons add: b = k sens / eps.
         const double scale = row.expected / row.Number("sens");
         const MethodResult result =
             BasicComposition(Event::Repeat(Event::Laplace(NoiseMultiplier(scale)),
                                            static_cast<std::uint64_t>(row.Number("k"))),
                              -kInfinity);
         EXPECT_NEAR(result.epsilon, row.Number("eps"), row.rtol * row.Number("eps")) << row.id;
       }},
      {"tree aggregation", CheckTree},
      {"tree sensitivity", CheckTreeSensitivity},
      {"repeat_and_select", CheckRepeatAndSelect},
      {"PureDP",
       [](const VectorRow& row) {
         RenyiCurve curve(Event::Pure(Epsilon(row.Number("eps"))));
         ExpectClose(row, curve(row.Number("order")));
       }},
  };
  return checkers;
}

TEST(AccountingVectors, EveryClassicalRowHolds) { CheckVectorRows(Checkers(), false, 50); }

TEST(AccountingVectors, TheKeptCopyHoldsEveryFactOfTheSharedTable) {
  const auto files = LoadVectorFiles();
  const std::vector<VectorRow>& kept = files[0].second;
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].first != "shared") continue;
    for (const VectorRow& row : files[i].second) {
      const bool same = std::any_of(kept.begin(), kept.end(), [&](const VectorRow& other) {
        return other.id == row.id && other.mechanism == row.mechanism &&
               other.params == row.params && other.expected_text == row.expected_text;
      });
      EXPECT_TRUE(same) << row.id << " is missing or differs in the kept copy";
    }
  }
}

}  // namespace
}  // namespace sordino
