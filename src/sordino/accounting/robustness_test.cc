// Random questions over the whole range that anybody asks: every answer is a certified interval,
// finite, ordered, and there within seconds of processor time.
//
// The default run asks 120 questions; SORDINO_ACCOUNTING_CONFIGS=10000 asks that many and
// SORDINO_ACCOUNTING_FIRST=n starts at question n; SORDINO_ACCOUNTING_TRACE=1 prints each. A
// question depends on its number only, so that a failure can be asked again alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/event.h"
#include "sordino/base/testing/processor_time.h"

namespace sordino {
namespace {

// Seconds of processor time: an order of magnitude above the slowest question on a core of 2.1 GHz,
// so that only a question that runs away is found here; width_sweep measures the times. A sanitizer
// makes everything several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kLongest = 200;
#else
constexpr double kLongest = 20;
#endif

struct Question {
  Event event;
  double delta;
};

Question MakeQuestion(std::uint64_t number) {
  std::mt19937_64 engine(0x5eed0000 + number);
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(engine));
  };
  const auto choice = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
  const Adjacency adjacency = choice(2) == 0   ? Adjacency::kAddRemove
                              : choice(2) == 0 ? Adjacency::kReplaceOne
                                               : Adjacency::kZeroOut;
  const double noise = log_uniform(0.05, 1000);
  const double rate = log_uniform(1e-9, 1);
  const auto steps = static_cast<std::uint64_t>(std::llround(log_uniform(1, 1e8)));
  const double delta = log_uniform(1e-300, 0.5);
  const auto leaf = [&] {
    switch (choice(6)) {
      case 0:
        return Event::Laplace(NoiseMultiplier(noise), adjacency);
      case 1:
        return Event::DiscreteGaussian(noise, 1, adjacency);
      case 2:
        return Event::DiscreteLaplace(noise, 1, adjacency);
      default:
        return Event::Gaussian(NoiseMultiplier(noise), adjacency);
    }
  }();
  Event step = leaf;
  switch (choice(5)) {
    case 0:
      break;
    case 1:
      step = Event::Fixed(SamplingRate(rate), leaf);
      break;
    default:
      step = Event::Poisson(SamplingRate(rate), leaf);
  }
  return {Event::Repeat(step, steps), delta};
}

std::uint64_t FromEnvironment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : fallback;
}

TEST(AccountingRobustness, EveryQuestionHasAFiniteOrderedPromptAnswer) {
  const std::uint64_t first = FromEnvironment("SORDINO_ACCOUNTING_FIRST", 0);
  const std::uint64_t questions = FromEnvironment("SORDINO_ACCOUNTING_CONFIGS", 120);
  double slowest = 0;
  std::string slowest_text;
  std::vector<double> widths;
  for (std::uint64_t i = first; i < first + questions; ++i) {
    const Question question = MakeQuestion(i);
    char text[400];
    std::snprintf(text, sizeof(text), "question %llu: %s at delta %.17g",
                  static_cast<unsigned long long>(i), question.event.ToString().c_str(),
                  question.delta);
    SCOPED_TRACE(text);
    const double start = ProcessorSeconds();
    const AccountReport report = Account(question.event, Delta(question.delta));
    const double seconds = ProcessorSeconds() - start;
    if (seconds > slowest) {
      slowest = seconds;
      slowest_text = text;
    }
    EXPECT_LT(seconds, kLongest);
    EXPECT_GE(report.value.lower, 0);  // false for a NaN too
    EXPECT_LE(report.value.lower, report.value.upper);
    // With continuous or full-support noise every delta above zero has a finite epsilon.
    EXPECT_TRUE(std::isfinite(report.value.upper)) << report.reason;
    for (const MethodReport& method : report.methods) {
      EXPECT_GE(method.value, 0) << method.name;
      if (method.sound) {
        EXPECT_GE(method.value, report.value.lower * (1 - 1e-9)) << method.name;
      }
    }
    const double width = report.value.upper > 0
                             ? (report.value.upper - report.value.lower) / report.value.upper
                             : 0.0;
    widths.push_back(width);
    if (std::getenv("SORDINO_ACCOUNTING_TRACE") != nullptr) {
      std::printf("%s -> [%.12g, %.12g] width %.2g by %s in %.3f s\n", text, report.value.lower,
                  report.value.upper, width, report.decided_by.c_str(), seconds);
    }
  }
  std::sort(widths.begin(), widths.end());
  const auto share_within = [&](double width) {
    return static_cast<double>(std::upper_bound(widths.begin(), widths.end(), width) -
                               widths.begin()) /
           static_cast<double>(widths.size());
  };
  std::printf(
      "%zu questions; slowest %.2f s (%s); relative width: median %.1e, 99%% %.1e, largest %.1e\n",
      widths.size(), slowest, slowest_text.c_str(), widths[widths.size() / 2],
      widths[widths.size() * 99 / 100], widths.back());
  std::printf("within 1e-3: %.1f%%, within 1e-2: %.1f%%\n", 100 * share_within(1e-3),
              100 * share_within(1e-2));
}

// Deltas far below what doubles resolve of an allocation: bounds that hold, and no more.
TEST(Robustness, AllocationsOfEnormousReachAreAnswered) {
  const Event event = Event::Parse("zero-out: 1395*allocation(222500, gaussian(0.68601))");
  for (const double epsilon : {0.538, 30.0, 200.0}) {
    const Interval found = CertifiedLogDelta(event, epsilon).value;
    EXPECT_LE(found.lower, found.upper) << epsilon;
    EXPECT_LE(found.upper, 0) << epsilon;
  }
}

// Cells that pairs of little noise need lie ten thousand deviations of the first pair from its
// centre, where its density is zero as a double: 0.1 s, and 40 s where they are integrated all the
// same.
TEST(Robustness, CellsFarFromADensityTakeNoTime) {
  const Event event = Event::Parse(
      "add-remove: compose(2643048*poisson(0.6837679451087957, gaussian(37.37350720161981)), "
      "162144*truncated-poisson(18, 0.24195189743336526, 6, gaussian(0.46033850462224796)), "
      "539980*poisson(0.0011973572896095761, tree(1.0837072522123616, 698)), "
      "1218*fixed(0.007855081622189296, laplace(2)), 12320*gaussian(0.4868623881381957))");
  const double start = ProcessorSeconds();
  const Interval found = Account(event, Delta(5.7e-99), Effort::kQuick).value;
  EXPECT_LT(ProcessorSeconds() - start, 10);
  EXPECT_GT(found.lower, 30'000);
  EXPECT_LT(found.upper, 200'000);
}

}  // namespace
}  // namespace sordino
