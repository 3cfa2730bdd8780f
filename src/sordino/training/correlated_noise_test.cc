// Training with noise that is correlated between steps: what the plan states and charges, who takes
// part in which steps, and that the noise is that of the matrix that is charged.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/base/error.h"
#include "sordino/correlation/strategy.h"
#include "sordino/noise/noise_process.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PlanOptions Correlated(const std::string& strategy, std::int64_t records, double batch,
                       std::int64_t steps) {
  PlanOptions options;
  options.records = records;
  options.batch = batch;
  options.steps = steps;
  options.noise = {"gaussian", {{"noise-correlation", strategy}}};
  return options;
}

PlanOptions CorrelatedInOrder(const std::string& strategy, std::int64_t records, double batch,
                              std::int64_t steps) {
  PlanOptions options = Correlated(strategy, records, batch, steps);
  options.sampling = "ordered";
  options.adjacency = Adjacency::kZeroOut;
  return options;
}

PrivacyPlan PlanWith(const PlanOptions& options) {
  return {options, NoiseMultiplier(1.5), Delta(1e-5)};
}

double ColumnNorm(const std::vector<double>& column) {
  double squares = 0;
  for (const double c : column) squares += c * c;
  return std::sqrt(squares);
}

TEST(CorrelatedPlan, OfFewBandsIsSampledRoundByRound) {
  const PlanOptions options = Correlated("banded:4", 60'000, 600, 1000);
  const PrivacyPlan plan = PlanWith(options);
  EXPECT_EQ(plan.sampler().name(), "cyclic");
  EXPECT_EQ(plan.StepsPerEvent(), 4);
  EXPECT_NEAR(plan.StepRate(0).value(), 0.01, 1e-12);
  const Event event = plan.event();
  EXPECT_THAT(event.ToString(), StartsWith("add-remove: 250*poisson("));
  const Event& round = event.children()[0].first;
  EXPECT_NEAR(round.number("rate"), 0.04, 1e-12);
  const Event& release = round.children()[0].first;
  EXPECT_EQ(release.name(), "matrix");
  EXPECT_EQ(release.number("noise"), 1.5);
  const auto strategy = MakeStrategy("banded:4", {.steps = 1000, .separation = 4, .count = 250});
  EXPECT_NEAR(release.number("sensitivity"), ColumnNorm(strategy->Coefficients(4)), 1e-9);
  EXPECT_GE(release.number("sensitivity"), ColumnNorm(strategy->Coefficients(4)));
  // Rounds that are begun count.
  EXPECT_EQ(plan.EventOf(0, 1).TotalCount(), 1U);
  EXPECT_EQ(plan.EventOf(3, 5).TotalCount(), 2U);
  EXPECT_EQ(plan.EventOf(2, 10).TotalCount(), 3U);
}

TEST(CorrelatedPlan, OfManyBandsIsOneReleaseOfAllSteps) {
  for (const char* const strategy : {"bisr:4", "bifr:4", "blt:3", "tree"}) {
    const PrivacyPlan plan = PlanWith(CorrelatedInOrder(strategy, 1000, 100, 30));
    EXPECT_EQ(plan.StepsPerEvent(), 30) << strategy;
    EXPECT_EQ(plan.event().name(), "matrix") << strategy;
    EXPECT_EQ(plan.EventOf(0, 1), plan.event()) << strategy;
    const auto made = MakeStrategy(strategy, {.steps = 30, .separation = 10, .count = 3});
    EXPECT_EQ(plan.event().number("sensitivity"), made->Sensitivity()) << strategy;
  }
  // Every record in every step.
  PlanOptions full = Correlated("bisr:4", 1000, 0, 8);
  full.sampling = "full";
  const auto made = MakeStrategy("bisr:4", {.steps = 8, .separation = 1, .count = 8});
  EXPECT_EQ(PlanWith(full).event().number("sensitivity"), made->Sensitivity());
}

TEST(CorrelatedPlan, IndependentNoiseIsOneBand) {
  for (const char* const strategy : {"none", "banded:1"}) {
    const PrivacyPlan plan = PlanWith(Correlated(strategy, 1000, 100, 30));
    EXPECT_THAT(plan.event().ToString(), HasSubstr("gaussian(1.5)")) << strategy;
    EXPECT_EQ(plan.sampler().name(), "poisson") << strategy;
  }
}

// Few epochs and a large budget: the issue's own table has 0.52 of the error at epsilon 8.
TEST(CorrelatedPlan, AutoChoosesBandsThatMeetTheBudget) {
  const PlanOptions options = Correlated("auto", 10'000, 1000, 100);
  const auto plan = PrivacyPlan::ForBudget(options, Epsilon(8), Delta(1e-5));
  ASSERT_TRUE(plan.has_value());
  EXPECT_LE(plan->Epsilon(100).upper, 8);
  EXPECT_GT(plan->Epsilon(100).upper, 7.8);
  EXPECT_GT(plan->StepsPerEvent(), 1);
  EXPECT_THAT(plan->Description(), HasSubstr("correlated gaussian (banded:"));
  // With small epsilon and many epochs sampling is worth more.
  const auto small =
      PrivacyPlan::ForBudget(Correlated("auto", 10'000, 100, 2000), Epsilon(0.2), Delta(1e-5));
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->sampler().name(), "poisson");
  // Without sampling there is always something to gain.
  const auto in_order =
      PrivacyPlan::ForBudget(CorrelatedInOrder("auto", 1000, 50, 60), Epsilon(2), Delta(1e-5));
  ASSERT_TRUE(in_order.has_value());
  EXPECT_THAT(in_order->event().ToString(), HasSubstr("matrix("));
  EXPECT_THROW(PlanWith(options), Error);
}

TEST(CorrelatedPlan, RefusesWhatTheProofDoesNotCover) {
  const auto mistake = [](const std::function<void(PlanOptions&)>& change) -> std::string {
    PlanOptions options = Correlated("banded:3", 1000, 10, 100);
    change(options);
    try {
      PlanWith(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "(accepted)";
  };
  EXPECT_EQ(mistake([](auto&) {}), "(accepted)");
  EXPECT_EQ(mistake([](auto& o) { o.clip_schedule = Schedule::Parse("linear:0.5"); }),
            "(accepted)");
  EXPECT_EQ(mistake([](auto& o) { o.clipping = "adaclip"; }), "(accepted)");
  EXPECT_EQ(mistake([](auto& o) { o.clipping = "preconditioned"; }), "(accepted)");
  EXPECT_THAT(mistake([](auto& o) { o.adjacency = Adjacency::kReplaceOne; }),
              HasSubstr("add-remove and zero-out"));
  for (const char* const sampling : {"fixed", "allocation"}) {
    EXPECT_THAT(mistake([&](auto& o) {
                  o.sampling = sampling;
                  if (o.sampling.name == "fixed") o.adjacency = Adjacency::kReplaceOne;
                }),
                HasSubstr("rest between two steps"));
  }
  EXPECT_THAT(mistake([](auto& o) { o.noise_schedule = Schedule::Parse("linear:0.5"); }),
              HasSubstr("steps of equal noise"));
  EXPECT_THAT(mistake([](auto& o) { o.clipping = "adaptive"; }), HasSubstr("Gaussian noise"));
  EXPECT_THAT(mistake([](auto& o) { o.rows_per_user = 2; }), HasSubstr("one row per user"));
  EXPECT_THAT(mistake([](auto& o) { o.held_out = HeldOutPlan{.share = 0.1, .every = 10}; }),
              HasSubstr("held-out"));
  EXPECT_THAT(mistake([](auto& o) {
                o.noise = {"gaussian", {{"noise-correlation", "bandet:3"}}};
              }),
              HasSubstr("banded"));
}

// The draws w of noise n: C n, by the filter that made it.
std::vector<at::Tensor> Whitened(const Strategy& strategy, const std::vector<at::Tensor>& n) {
  std::vector<at::Tensor> w;
  std::vector<at::Tensor> buffers;
  for (std::size_t t = 0; t < n.size(); ++t) {
    const NoiseFilter filter = strategy.Filter(static_cast<std::int64_t>(t));
    at::Tensor draw = n[t].clone();
    for (std::size_t i = 0; i < std::min(t, filter.earlier_draws.size()); ++i) {
      draw -= filter.earlier_draws[i] * w[t - 1 - i];
    }
    for (std::size_t j = 0; j < std::min(t, filter.earlier_noise.size()); ++j) {
      draw += filter.earlier_noise[j] * n[t - 1 - j];
    }
    buffers.resize(filter.buffers.size(), at::zeros_like(draw));
    for (std::size_t k = 0; k < buffers.size(); ++k) draw -= filter.buffers[k].weight * buffers[k];
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      buffers[k] = filter.buffers[k].decay * buffers[k] + draw;
    }
    w.push_back(draw);
  }
  return w;
}

// A record is a row of the identity, so that it moves one weight, by its clipping norm of 1.
struct MatrixRun {
  static constexpr std::int64_t kRecords = 40;
  static constexpr std::int64_t kSteps = 13;  // three passes of 4 steps and one step more

  static Dataset Records(std::optional<std::int64_t> without = {}) {
    Dataset data = RandomFeatures(kRecords, kRecords, 1);
    data.inputs = at::eye(kRecords);
    if (without) data.inputs[*without].zero_();
    return data;
  }

  // What each step releases of the sum.
  static std::vector<at::Tensor> Releases(const PrivacyPlan& plan, const Dataset& data,
                                          std::int64_t weights = kRecords) {
    Weights model(weights);
    TrainerOptions options;
    options.insecure_seed = 17;
    Trainer trainer(plan, model.Named(), weights == kRecords ? model.Linear() : model.NoGradient(),
                    data, OptimizerOptions{.learning_rate = plan.Divisor(0)}, options);
    std::vector<at::Tensor> releases;
    at::Tensor before = model.value.detach().clone();
    trainer.Run([&](std::int64_t) {
      releases.push_back((before - model.value.detach()).to(at::kDouble));
      before = model.value.detach().clone();
      return true;
    });
    return releases;
  }

  static std::unique_ptr<Strategy> StrategyOf(const PrivacyPlan& plan, const char* text) {
    const std::int64_t separation = plan.sampler().Separation(plan.sampling());
    return MakeStrategy(
        text, {.steps = kSteps, .separation = separation, .count = (kSteps - 1) / separation + 1});
  }
};

const std::vector<const char*>& TestedStrategies() {
  static const std::vector<const char*> texts = {"banded:3", "banded:4", "bisr:3",
                                                 "bifr:4",   "blt:2",    "tree"};
  return texts;
}

// A record moves C x by no more than what is charged for, and there is one that does: seeded runs
// with and without it have the same batches and noise, so that their difference is what it adds.
TEST(CorrelatedTrainer, ARecordMovesTheMatrixByTheSensitivityThatIsCharged) {
  for (const char* const text : TestedStrategies()) {
    for (const bool in_order : {true, false}) {
      const PlanOptions options =
          in_order ? CorrelatedInOrder(text, MatrixRun::kRecords, 10, MatrixRun::kSteps)
                   : Correlated(text, MatrixRun::kRecords, 5, MatrixRun::kSteps);
      const PrivacyPlan plan(options, NoiseMultiplier(1e-4), Delta(1e-5));
      const auto strategy = MatrixRun::StrategyOf(plan, text);
      const Event event = plan.GradientEvent(0);
      const Event& release = event.name() == "poisson" ? event.children()[0].first : event;
      const double charged = release.number("sensitivity");
      const bool by_round = plan.StepsPerEvent() < MatrixRun::kSteps;
      const auto with = MatrixRun::Releases(plan, MatrixRun::Records());
      double largest = 0;
      for (std::int64_t record = 0; record < MatrixRun::kRecords; ++record) {
        const auto without = MatrixRun::Releases(plan, MatrixRun::Records(record));
        std::vector<at::Tensor> moved;
        for (std::size_t t = 0; t < with.size(); ++t) moved.push_back(with[t] - without[t]);
        double participations = 0;
        for (const at::Tensor& x : moved) participations += std::round(x.norm().item<double>());
        double squares = 0;
        for (const at::Tensor& row : Whitened(*strategy, moved)) {
          squares += row.square().sum().item<double>();
        }
        // By rounds each participation is a release of its own; windows do not overlap.
        if (by_round && participations > 0) squares /= participations;
        EXPECT_LE(std::sqrt(squares), charged * (1 + 1e-3)) << text << " " << record;
        largest = std::max(largest, std::sqrt(squares));
      }
      // Sampled records miss steps, and bounds are not attained by every pattern.
      if (in_order && std::string(text) != "tree") {
        EXPECT_GT(largest, charged * (1 - 1e-3)) << text;
      }
    }
  }
}

// C n is white, of the deviation that is charged. 20,000 values of a row: a variance is off by 1 %
// and a correlation by 0.7 % in deviations; six of them are crossed by none of some 700 with
// probability 1e-6. Noise of one band less, or of another strategy, is off by 10 % and more.
TEST(CorrelatedTrainer, NoiseIsThatOfTheMatrixThatIsCharged) {
  constexpr std::int64_t kWeights = 20'000;
  for (const char* const text : TestedStrategies()) {
    const PrivacyPlan plan =
        PlanWith(CorrelatedInOrder(text, MatrixRun::kRecords, 10, MatrixRun::kSteps));
    const auto strategy = MatrixRun::StrategyOf(plan, text);
    const std::vector<at::Tensor> draws =
        Whitened(*strategy, MatrixRun::Releases(plan, MatrixRun::Records(), kWeights));
    const double scale = std::sqrt(static_cast<double>(kWeights));
    for (std::size_t t = 0; t < draws.size(); ++t) {
      EXPECT_NEAR(draws[t].square().mean().item<double>() / (1.5 * 1.5), 1,
                  6 * std::sqrt(2.0) / scale)
          << text << " " << t;
      for (std::size_t s = 0; s < t; ++s) {
        EXPECT_NEAR((draws[t] * draws[s]).mean().item<double>() / (1.5 * 1.5), 0, 6 / scale)
            << text << " " << t << ", " << s;
      }
    }
  }
}

// A private run that is resumed inside a round, or inside the event of all steps, pays again.
TEST(CorrelatedTrainer, ARunThatIsResumedIsChargedAnew) {
  for (const char* const text : {"banded:4", "blt:2"}) {
    const PrivacyPlan plan =
        PlanWith(CorrelatedInOrder(text, MatrixRun::kRecords, 10, MatrixRun::kSteps));
    std::vector<Event> charged;
    const auto trainer_from = [&](Weights& weights) {
      TrainerOptions options;
      options.charge = [&](std::int64_t, const Event& event) { charged.push_back(event); };
      return std::make_unique<Trainer>(plan, weights.Named(), weights.Linear(),
                                       MatrixRun::Records(), OptimizerOptions{}, options);
    };
    Weights first(MatrixRun::kRecords);
    const auto begun = trainer_from(first);
    for (int step = 0; step < 6; ++step) begun->Step();
    Weights second(MatrixRun::kRecords);
    const auto resumed = trainer_from(second);
    resumed->RestoreState(begun->SaveState(), 6);
    resumed->Run();
    ASSERT_EQ(charged.size(), static_cast<std::size_t>(MatrixRun::kSteps));
    const bool by_round = std::string(text) == "banded:4";
    for (std::int64_t step = 0; step < MatrixRun::kSteps; ++step) {
      const bool pays = step == 0 || step == 6 || (by_round && step % 4 == 0);
      EXPECT_EQ(charged[static_cast<std::size_t>(step)],
                pays ? plan.StepEvent(step) : Event::None(Adjacency::kZeroOut))
          << text << " " << step;
    }
  }
}

}  // namespace
}  // namespace sordino
