// The table of docs/ledger.md: what a typical first release uses of a budget.
//
// SORDINO_WRITE_PAGES=1 ledger_test --gtest_filter='FirstReleaseTable.*' writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/ledger/budget_filter.h"

namespace sordino {
namespace {

constexpr double kTableDelta = 1e-6;
constexpr double kTableBudgets[] = {1, 2, 8, 30};
// Noise that is drawn for a release or a fit (random/discrete_gaussian.h).
constexpr double kDrawFailure = 0x1p-70;

struct FirstRelease {
  std::string what;
  std::function<Event(double budget)> event;
  double failure = 0;
};

Event GaussianOf(double epsilon, double delta) {
  return Event::Gaussian(NoiseMultiplier(1 / GaussianMu(epsilon, std::log(delta))));
}

Event TrainingOf(double epsilon) {
  const auto plan = [](NoiseMultiplier noise) {
    return Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(noise)), 1000);
  };
  // As a plan for a budget does it (training/privacy_plan.h).
  for (const double share : kFailureShares) {
    if (!FailuresArePaid(kDrawFailure, Epsilon(epsilon), share * kTableDelta)) continue;
    const Delta delta = DeltaForEvents(Delta(kTableDelta), share);
    return plan(CalibrateNoise(plan, Epsilon(epsilon), delta)->noise);
  }
  return plan(NoiseMultiplier(1e-3));
}

std::function<Event(double)> Always(Event event) {
  return [event = std::move(event)](double) { return event; };
}

std::vector<FirstRelease> FirstReleases() {
  const Event three = Event::Repeat(
      Event::Gaussian(NoiseMultiplier(std::sqrt(3) / GaussianMu(0.5, std::log(kTableDelta)))), 3);
  // A logistic fit of epsilon 0.1 at delta 1e-6: the same noise at the delta of the ledger.
  const Event objective = Event::Compose({Event::Approximate(Epsilon(0.1323), Delta(9.7e-10)),
                                          Event::Gaussian(NoiseMultiplier(4100))});
  return {
      {"mean, Gaussian noise, epsilon 0.1 at delta 1e-13", Always(GaussianOf(0.1, 1e-13)),
       kDrawFailure},
      {"count, Laplace noise, epsilon 0.1", Always(Event::Laplace(NoiseMultiplier(10)))},
      {"histogram, Gaussian noise, epsilon 0.5 at delta 1e-6", Always(GaussianOf(0.5, 1e-6)),
       kDrawFailure},
      {"median, epsilon 0.2", Always(Event::Exponential(Epsilon(0.2)))},
      {"`fit` by objective perturbation, epsilon 0.1 at delta 1e-6", Always(objective),
       kDrawFailure},
      {"`fit` by output perturbation, epsilon 0.02 at delta 1e-6", Always(GaussianOf(0.02, 1e-6)),
       kDrawFailure},
      {"`fit` by AdaSSP, epsilon 0.5 at delta 1e-6", Always(three), kDrawFailure},
      {"`train`, 1000 steps at rate 0.01, epsilon 0.8 at delta 1e-6", Always(TrainingOf(0.8)),
       kDrawFailure},
      {"`train`, the same, all of the budget", TrainingOf, kDrawFailure},
      {"approximate(0.5, 1e-8), charged by hand",
       Always(Event::Approximate(Epsilon(0.5), Delta(1e-8)))},
  };
}

std::string CellOf(const FirstRelease& release, double epsilon) {
  const Event event = release.event(epsilon);
  BudgetFilter filter({.epsilon = Epsilon(epsilon), .delta = Delta(kTableDelta)});
  const RunTerms terms = filter.TermsFor(event, release.failure);
  if (!filter.AdmitsPlan(event, release.failure, terms).admitted) return "refused";
  if (terms.whole) return "whole";
  return fmt::format("{:.2g} %", 100 * filter.After(event, release.failure, terms).UsedShare());
}

std::string TableText() {
  std::string text = "\n| first release | budget 1 | 2 | 8 | 30 |\n|---|---|---|---|---|\n";
  for (const FirstRelease& release : FirstReleases()) {
    text += "| " + release.what;
    for (const double budget : kTableBudgets) text += " | " + CellOf(release, budget);
    text += " |\n";
  }
  return text + "\n";
}

TEST(FirstReleaseTable, ThePageHoldsWhatTheFilterSays) {
  const std::filesystem::path file =
      std::filesystem::path(__FILE__).parent_path().parent_path().parent_path().parent_path() /
      "docs" / "ledger.md";
  std::ostringstream read;
  read << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string page = read.str();
  const std::string begin = "<!-- first releases -->\n";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find("<!-- end of first releases -->");
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to);
  const std::string rewritten = page.substr(0, from + begin.size()) + TableText() + page.substr(to);
  if (std::getenv("SORDINO_WRITE_PAGES") != nullptr) {
    std::ofstream(file, std::ios::binary) << rewritten;
  } else {
    EXPECT_EQ(page, rewritten) << "the comment of this test says how to write the page anew";
  }
}

// None of them closes a budget that is far larger than what was asked for.
TEST(FirstReleaseTable, OnlyWhatTakesTheBudgetCountsWhole) {
  for (const FirstRelease& release : FirstReleases()) {
    const bool takes_all = release.what.ends_with("all of the budget");
    for (const double budget : kTableBudgets) {
      EXPECT_EQ(CellOf(release, budget) == "whole", takes_all) << release.what << " " << budget;
      EXPECT_NE(CellOf(release, budget), "refused") << release.what << " " << budget;
    }
  }
}

}  // namespace
}  // namespace sordino
