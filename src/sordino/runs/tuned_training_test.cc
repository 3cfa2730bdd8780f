#include "sordino/runs/tuned_training.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/testing/points_config.h"
#include "sordino/runs/testing/run_files.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using SeenSteps = std::vector<std::pair<std::int64_t, std::int64_t>>;

void Silent(std::int64_t, std::int64_t) {}

class TunedTraining : public ::testing::Test {
 protected:
  TunedTraining() {
    WritePoints(root_ / "train.csv", 400);
    WritePoints(root_ / "test.csv", 100);
  }

  TuneSettings Settings() const {
    TuneSettings settings;
    settings.config =
        PointsConfig(root_ / "train.csv", 400, "logistic", /*epsilon=*/8, root_ / "run");
    settings.config.data.test = (root_ / "test.csv").string();
    settings.config.privacy.sampling = "full";  // an event that is accounted for in no time
    settings.config.training.steps = 10;
    settings.tries = {"lr=0.000001,2"};
    settings.expected = 3;
    return settings;
  }

  // The names of the files and what they say, but for names, numbers and chosen values.
  static std::vector<std::string> ShapeOf(const fs::path& folder) {
    std::vector<std::string> shape;
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      std::string text = fs::relative(file.path(), folder).string();
      if (text == "statement.txt" || text == "record.json" || text == "metrics.jsonl" ||
          text == "config.toml" || text == "event.txt") {
        std::string content = ReadRunFile(file.path());
        content = std::regex_replace(content, std::regex(R"(run\d+)"), "run");
        content = std::regex_replace(content, std::regex(R"(-?[0-9][0-9.e+-]*)"), "0");
        content = std::regex_replace(content, std::regex(R"(\s+)"), " ");
        text += ": " + content;
      }
      shape.push_back(text);
    }
    std::sort(shape.begin(), shape.end());
    return shape;
  }

  const TestFolder root_;
};

std::string TuningMistakeOf(const TuneSettings& settings) {
  try {
    PreparedTuning tuning = PrepareTuning(settings);
    RunTuning(tuning, Silent);
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

TEST_F(TunedTraining, IsOneChargeOfTheBestOfItsTries) {
  TuneSettings settings = Settings();
  const fs::path file = root_ / "points.db";
  Ledger::Create(file, {.epsilon = Epsilon(20), .delta = Delta(1e-4)});
  settings.config.run.ledger = file.string();
  PreparedTuning tuning = PrepareTuning(settings);
  EXPECT_EQ(tuning.event, Event::BestPoisson(3, tuning.run.plan.event()));
  EXPECT_EQ(tuning.failure,
            tuning.tries.Failure() + 3 * tuning.run.plan.Failure(tuning.run.plan.steps()));
  const TunedResult result = RunTuning(tuning, Silent);
  EXPECT_LE(result.run.epsilon.upper, 8);
  EXPECT_GT(result.run.epsilon.upper, 7.99);
  EXPECT_TRUE(result.run.is_private);
  // A try has more noise than a run of the same budget.
  EXPECT_GT(result.run.noise_multiplier, 1.05 * PrepareRun(settings.config).plan.noise().value());

  Ledger ledger = Ledger::Open(file);
  std::vector<std::string> charges;
  for (const Entry& entry : ledger.entries()) {
    EXPECT_NE(entry.kind, EntryKind::kReturn);
    if (entry.kind == EntryKind::kCharge) charges.push_back(entry.event);
  }
  EXPECT_EQ(charges, std::vector<std::string>{tuning.event.ToString()});
  EXPECT_EQ(result.run.facts.ledger_head, ledger.head().hash);

  const std::string event = ReadRunFile(root_ / "run/event.txt");
  const Event read = Event::Parse(event.substr(0, event.find('\n')));
  EXPECT_EQ(read, tuning.event);
  const auto record = nlohmann::json::parse(ReadRunFile(root_ / "run/record.json"));
  EXPECT_EQ(record["privacy"]["failure"], tuning.failure);
  EXPECT_EQ(record["privacy"]["epsilon"], result.run.epsilon.upper);
  EXPECT_EQ(SpentEpsilon(read, Delta(1e-5), tuning.failure).upper, result.run.epsilon.upper);
  // What fails takes next to nothing of delta.
  EXPECT_NEAR(SpentEpsilon(read, Delta(1e-5)).upper, result.run.epsilon.upper, 0.01);
  EXPECT_THAT(ReadRunFile(root_ / "run/statement.txt"), HasSubstr("best of several tries"));
}

TEST_F(TunedTraining, TheNumberOfTriesMayBeNegativeBinomial) {
  TuneSettings settings = Settings();
  settings.distribution = "tnb:1";
  settings.config.privacy.delta = 1e-4;
  const PreparedTuning tuning = PrepareTuning(settings);
  EXPECT_EQ(tuning.event.name(), "best-tnb");
  EXPECT_EQ(tuning.event.number("eta"), 1);
  EXPECT_NEAR(tuning.event.number("gamma"), 1.0 / 3, 1e-12);  // the mean of a geometric one
  EXPECT_LE(tuning.run.facts.epsilon.upper, 8);
  EXPECT_GT(tuning.run.facts.epsilon.upper, 7.99);
}

// K above the number of tries that are made is what delta pays for.
TEST_F(TunedTraining, MakesEnoughTriesForWhatDeltaPays) {
  for (const char* distribution : {"poisson", "tnb:0", "tnb:1"}) {
    TuneSettings settings = Settings();
    settings.distribution = distribution;
    const PreparedTuning tuning = PrepareTuning(settings);
    double above = 1;
    for (std::int64_t k = 0; k <= tuning.tries.most(); ++k) {
      above -= tuning.tries.count().Probability(k);
    }
    EXPECT_LE(above, tuning.failure + 1e-14) << distribution;
    EXPECT_LE((1 + std::exp(8.0)) * tuning.failure, 1e-5 / 256) << distribution;
  }
}

// No file, no message and no step that is made tells K.
TEST_F(TunedTraining, ShowsNothingOfTheNumberOfTriesThatCount) {
  std::vector<std::vector<std::string>> shapes;
  std::vector<SeenSteps> progress;
  std::int64_t made = 0;
  TuneSettings settings = Settings();
  settings.config.run.insecure_seed = 7;
  PreparedTuning tuning = PrepareTuning(settings);
  for (int i = 0; i < 4; ++i) {
    tuning.run.config.run.out = (root_ / fmt::format("run{}", i)).string();
    made = tuning.tries.most();
    const std::int64_t counted[] = {0, 1, 3, made};
    SeenSteps& seen = progress.emplace_back();
    const TunedResult result = internal::RunTuningWith(
        tuning, counted[i], [&](std::int64_t at, std::int64_t all) { seen.emplace_back(at, all); });
    EXPECT_EQ(result.chosen.size(), 1U);
    shapes.push_back(ShapeOf(result.run.folder));
  }
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(shapes[i], shapes[0]);
    EXPECT_EQ(progress[i], progress[0]);
  }
  EXPECT_EQ(progress[0].size(), static_cast<std::size_t>(10 * made));
  EXPECT_EQ(progress[0].back(), std::make_pair(10 * made, 10 * made));
}

// With the same seed the tries are the same, and one more of them counts each time.
TEST_F(TunedTraining, ReleasesTheBestOfThoseThatCount) {
  TuneSettings settings = Settings();
  settings.tries = {"lr=0.000001..2:log"};
  settings.expected = 1.5;
  settings.config.training.steps = 4;
  settings.config.run.insecure_seed = 11;
  double accuracy = 0;
  std::string weights;
  std::set<std::string> released;
  PreparedTuning tuning = PrepareTuning(settings);
  for (std::int64_t counted = 1; counted <= tuning.tries.most(); ++counted) {
    tuning.run.config.run.out = (root_ / fmt::format("best{}", counted)).string();
    const TunedResult result = internal::RunTuningWith(tuning, counted, Silent);
    const std::string now = WeightsOfRun(result.run.folder);
    if (counted > 1) {
      EXPECT_GE(*result.run.test_accuracy, accuracy);
      // Of equal scores the first one stays.
      EXPECT_EQ(*result.run.test_accuracy == accuracy, now == weights);
    }
    accuracy = *result.run.test_accuracy;
    weights = now;
    released.insert(now);
  }
  EXPECT_GT(released.size(), 1U);
  EXPECT_GT(accuracy, 0.75);
}

TEST_F(TunedTraining, ATryThatLearnsNothingDoesNotWin) {
  PreparedTuning tuning = PrepareTuning(Settings());
  const TunedResult result = internal::RunTuningWith(tuning, tuning.tries.most(), Silent);
  EXPECT_EQ(result.chosen, TryValues{"2"});
  EXPECT_GT(*result.run.test_accuracy, 0.75);  // 0.5 is chance
  const TrainedRun run = OpenRun(result.run.folder, c10::kCPU);
  EXPECT_EQ(run.config.training.learning_rate, 2);
  EXPECT_TRUE(run.is_private);
}

// What is released is then made without the data.
TEST_F(TunedTraining, OfNoTriesTheInitialWeightsAreReleased) {
  const TuneSettings settings = Settings();
  PreparedTuning tuning = PrepareTuning(settings);
  const TunedResult result = internal::RunTuningWith(tuning, 0, Silent);
  const TrainedRun run = OpenRun(result.run.folder, c10::kCPU);
  const PreparedRun fresh = PrepareRun(settings.config);
  const auto expected = fresh.model->Parameters();
  const auto found = run.model->Parameters();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].second.equal(expected[i].second)) << found[i].first;
  }
}

TEST_F(TunedTraining, ATryWhoseWeightsAreNotFiniteIsTheLastChoice) {
  TuneSettings settings = Settings();
  settings.tries = {"weight-decay=0,1000"};
  settings.config.training.learning_rate = 1e9;
  settings.config.run.insecure_seed = 3;
  PreparedTuning tuning = PrepareTuning(settings);
  EXPECT_EQ(internal::RunTuningWith(tuning, tuning.tries.most(), Silent).chosen, TryValues{"0"});
  settings.tries = {"weight-decay=1000,2000"};
  settings.config.run.out = (root_ / "none").string();
  tuning = PrepareTuning(settings);
  const TunedResult result = internal::RunTuningWith(tuning, tuning.tries.most(), Silent);
  for (const auto& [name, value] : OpenRun(result.run.folder, c10::kCPU).model->Parameters()) {
    EXPECT_TRUE(value.isfinite().all().item<bool>()) << name;
  }
}

TEST_F(TunedTraining, AStopLeavesTheChargeAndNoModel) {
  TuneSettings settings = Settings();
  const fs::path file = root_ / "points.db";
  Ledger::Create(file, {.epsilon = Epsilon(20), .delta = Delta(1e-4)});
  settings.config.run.ledger = file.string();
  PreparedTuning tuning = PrepareTuning(settings);
  EXPECT_THROW(RunTuning(tuning,
                         [](std::int64_t made, std::int64_t) {
                           if (made == 15) StopGuard::Request(SIGINT);
                         }),
               Stopped);
  const std::vector<Entry> entries = Ledger::Open(file).entries();
  EXPECT_EQ(std::count_if(entries.begin(), entries.end(),
                          [](const Entry& entry) { return entry.kind == EntryKind::kCharge; }),
            1);
  std::set<std::string> names;
  for (const auto& one : fs::directory_iterator(root_ / "run")) names.insert(one.path().filename());
  EXPECT_EQ(names,
            (std::set<std::string>{"event.txt", "statement.txt", "record.json", "metrics.jsonl"}));
  EXPECT_THAT(ReadRunFile(root_ / "run/statement.txt"), HasSubstr("PLANNED"));
  EXPECT_EQ(ReadRunFile(root_ / "run/metrics.jsonl"), "");
}

TEST_F(TunedTraining, MistakesAreFoundBeforeAnythingIsSpent) {
  const fs::path file = root_ / "points.db";
  Ledger::Create(file, {.epsilon = Epsilon(1), .delta = Delta(1e-4)});
  const auto mistake = [&](const std::function<void(TuneSettings&)>& change) {
    TuneSettings settings = Settings();
    change(settings);
    return TuningMistakeOf(settings);
  };
  EXPECT_THAT(mistake([](auto& s) { s.tries = {}; }), HasSubstr("nothing to try"));
  EXPECT_THAT(mistake([](auto& s) { s.tries = {"batch=20,40"}; }), HasSubstr("--try batch"));
  EXPECT_THAT(mistake([](auto& s) { s.tries = {"lr=-1,1"}; }), HasSubstr("learning rate"));
  EXPECT_THAT(mistake([](auto& s) { s.expected = 1; }), HasSubstr("--tries is 1"));
  EXPECT_THAT(mistake([](auto& s) { s.expected = 1e6; }), HasSubstr("--tries is 1e+06"));
  EXPECT_THAT(mistake([](auto& s) { s.distribution = "tnb:-1"; }), HasSubstr("--select is"));
  EXPECT_THAT(mistake([](auto& s) { s.distribution = "geometric"; }), HasSubstr("--select is"));
  EXPECT_THAT(mistake([](auto& s) {
                s.distribution = "tnb:-0.9";
                s.expected = 50;
              }),
              HasSubstr("has a mean of at most 7.15"));
  EXPECT_THAT(mistake([](auto& s) {
                s.distribution = "tnb:0";
                s.expected = 500;
              }),
              HasSubstr("tries would be made"));
  EXPECT_THAT(mistake([](auto& s) { s.config.run.non_private = true; }),
              HasSubstr("--non-private"));
  EXPECT_THAT(mistake([](auto& s) { s.config.privacy.noise = 1; }), HasSubstr("--noise"));
  EXPECT_THAT(mistake([](auto& s) { s.config.privacy.epsilon.reset(); }), HasSubstr("--epsilon"));
  EXPECT_THAT(mistake([](auto& s) { s.config.run.canaries = 100; }), HasSubstr("--canaries"));
  EXPECT_THAT(mistake([](auto& s) { s.config.data.test.clear(); }), HasSubstr("--test"));
  EXPECT_THAT(mistake([](auto& s) { s.config.privacy.noise_schedule = "adaptive"; }),
              HasSubstr("adaptive noise"));
  EXPECT_THAT(mistake([&](auto& s) { s.config.run.ledger = file.string(); }),
              HasSubstr("refuses the tuning"));
  EXPECT_FALSE(fs::exists(root_ / "run"));
  EXPECT_EQ(Ledger::Open(file).size(), 1);
}

}  // namespace
}  // namespace sordino
