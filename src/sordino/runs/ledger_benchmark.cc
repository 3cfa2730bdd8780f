// What a ledger costs a training of a thousand small steps: the same steps without charges, with
// charges in blocks as a run makes them, and with a charge at every step, in one run.
//
// The ledger is a file in $TMPDIR with a witness beside it; on a disk that is memory its syncs cost
// nothing, so say where it was when you quote a figure. Opening it counts, as does handing back.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/step_charger.h"
#include "sordino/models/model.h"
#include "sordino/training/classification.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

constexpr std::int64_t kSteps = 1000;
constexpr std::int64_t kRecords = 4096;

enum class Charging : std::uint8_t { kNone, kBlocks, kEveryStep };

struct Seconds {
  double wall = 0;
  double processor = 0;
};

Seconds Now() {
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  timespec processor{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
  return {.wall = std::chrono::duration<double>(wall).count(),
          .processor = static_cast<double>(processor.tv_sec) +
                       1e-9 * static_cast<double>(processor.tv_nsec)};
}

// A folder that is gone at the end.
class Folder {
 public:
  std::filesystem::path ledger() const { return path_ / "ledger.db"; }
  LedgerOptions options() const { return {.witness_folder = path_ / "state"}; }

 private:
  const TestFolder path_;
};

Budget Unlimited() { return {.epsilon = Epsilon(kInfinity), .delta = Delta(1e-5)}; }

// Logistic regression on made-up records.
class Training {
 public:
  Training(std::int64_t features, std::int64_t batch)
      : plan_(OptionsOf(batch), NoiseMultiplier(1), Delta(1e-5)) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    DatasetDeclaration& declaration = data_.declaration;
    declaration.name = "made up";
    declaration.kind = InputKind::kFeatures;
    declaration.shape = {features};
    declaration.classes = 10;
    declaration.records = kRecords;
    data_.inputs = at::empty({kRecords, features}, at::kFloat);
    data_.labels = at::empty({kRecords}, at::kLong);
    float* const inputs = data_.inputs.mutable_data_ptr<float>();
    std::generate_n(inputs, kRecords * features, [&] { return normal(random); });
    std::int64_t* const labels = data_.labels.mutable_data_ptr<std::int64_t>();
    std::generate_n(labels, kRecords, [&] { return static_cast<std::int64_t>(random() % 10); });
  }

  // What all steps take.
  Seconds Run(Charging charging) const {
    const std::unique_ptr<Model> model =
        MakeModel("logistic", {.input = data_.declaration.shape, .classes = 10}, {}, at::kCPU);
    const Folder folder;
    Ledger::Create(folder.ledger(), Unlimited(), folder.options());
    StepCharger* charger = nullptr;
    TrainerOptions options;
    if (charging != Charging::kNone) {
      options.charge = [&charger](std::int64_t step, const Event&) { charger->Use(step); };
    }
    Trainer trainer(plan_, ParametersOf(*model), CrossEntropy(*model, 1, {}), data_, {}, options);

    const Seconds start = Now();
    std::optional<Ledger> ledger;
    std::optional<StepCharger> made;
    if (charging != Charging::kNone) {
      ledger.emplace(Ledger::Open(folder.ledger(), folder.options()));
      charger = &made.emplace(*ledger, RunDeclaration{.what = "benchmark"}, Costs(), kSteps,
                              OptionsOf(charging));
    }
    while (trainer.steps_done() < kSteps) {
      SORDINO_CHECK(charger == nullptr || charger->Reserve(trainer.steps_done()),
                    "an unlimited budget is used up");
      trainer.Step();
    }
    if (charger != nullptr) charger->HandBack();
    const Seconds end = Now();
    return {.wall = end.wall - start.wall, .processor = end.processor - start.processor};
  }

 private:
  static PlanOptions OptionsOf(std::int64_t batch) {
    PlanOptions options;
    options.batch = static_cast<double>(batch);
    options.records = kRecords;
    options.steps = kSteps;
    return options;
  }
  StepCosts Costs() const {
    return {.event = [this](std::int64_t from, std::int64_t to) { return plan_.EventOf(from, to); },
            .failure = [this](std::int64_t steps) { return plan_.Failure(steps); }};
  }
  static StepChargerOptions OptionsOf(Charging charging) {
    if (charging == Charging::kBlocks) return {};
    return {.first_block = 1,
            .block = std::chrono::duration<double>(0),
            .longest_in_charges = 0,
            .now = {}};
  }

  PrivacyPlan plan_;
  Dataset data_;
};

double Median(const std::vector<Seconds>& times, double Seconds::*which) {
  std::vector<double> values;
  values.reserve(times.size());
  for (const Seconds& time : times) values.push_back(time.*which);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The two take turns, and in who comes first too: a machine that gets slower or faster meanwhile
// does so for both. A charge at every step takes long, and is measured once.
void ThousandSteps(benchmark::State& state) {
  at::set_num_threads(1);
  const Training training(state.range(0), state.range(1));
  training.Run(Charging::kNone);  // warms up
  std::vector<Seconds> without;
  std::vector<Seconds> blocks;
  for (auto unused : state) {
    const bool is_odd = without.size() % 2 == 1;
    if (is_odd) blocks.push_back(training.Run(Charging::kBlocks));
    without.push_back(training.Run(Charging::kNone));
    if (!is_odd) blocks.push_back(training.Run(Charging::kBlocks));
    state.SetIterationTime(blocks.back().wall);
  }
  const double every_step = training.Run(Charging::kEveryStep).wall;
  const double without_wall = Median(without, &Seconds::wall);
  const double blocks_wall = Median(blocks, &Seconds::wall);
  state.counters["without_ms"] = 1e3 * without_wall;
  state.counters["blocks_ms"] = 1e3 * blocks_wall;
  state.counters["every_step_ms"] = 1e3 * every_step;
  state.counters["ratio"] = blocks_wall / without_wall;
  state.counters["ratio_every_step"] = every_step / without_wall;
  state.counters["ratio_cpu"] =
      Median(blocks, &Seconds::processor) / Median(without, &Seconds::processor);
}

// Durable: journal, file and folder are synced, and the witness is written.
void OneCharge(benchmark::State& state) {
  const Folder folder;
  Ledger ledger = Ledger::Create(folder.ledger(), Unlimited(), folder.options());
  const Event step = Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1)));
  const std::string run =
      ledger
          .BeginRun({.what = "benchmark", .plan = Event::Repeat(step, 1'000'000)}, {.event = step})
          .id;
  for (auto unused : state) {
    SORDINO_CHECK(ledger.Charge(run, {.event = step}).admitted, "an unlimited budget is used up");
  }
}

BENCHMARK(ThousandSteps)
    ->ArgNames({"features", "batch"})
    ->Args({4, 16})
    ->Args({784, 64})
    ->Iterations(15)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(OneCharge)->Iterations(200)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sordino
