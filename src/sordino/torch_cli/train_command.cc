#include "sordino/torch_cli/train_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/progress.h"
#include "sordino/base/shown_text.h"
#include "sordino/base/stop.h"
#include "sordino/cli/ledger_forecast.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/distributed/communicator.h"
#include "sordino/runs/distributed_run.h"
#include "sordino/runs/missing_settings.h"
#include "sordino/runs/training_run.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/risk_report.h"
#include "sordino/torch_cli/train_options.h"
#include "sordino/torch_cli/train_ranks.h"
#include "sordino/torch_cli/train_report.h"

namespace sordino {
namespace {

struct TrainOptions {
  std::string source;  // data, or a configuration
  std::string config;
  std::string resume;
  bool dry_run = false;
  bool json = false;
  bool show_private = false;
  RankOptions ranks;
  RiskFlags risk;
  TrainFlags flags;
};

// A bar on a terminal, lines elsewhere. All of it is public.
class Bar : public RunObserver {
 public:
  Bar(const PreparedRun& run, std::vector<std::string> choices)
      : run_(run), choices_(std::move(choices)) {}

  // Only now: a mistake in the data is one sentence, without a plan before it.
  void OnStart() override {
    if (run_.privacy != RunPrivacy::kPrivate) {
      std::cerr << "sordino: " << NotPrivateWarning(run_.privacy) << '\n';
    }
    for (const std::string& choice : choices_) {
      std::cerr << "sordino: " << ShownText(choice) << '\n';
    }
    std::cerr << "sordino: " << ShownText(run_.facts.model) << "; " << run_.facts.plan << '\n';
    if (!run_.device.is_cpu() && run_.communicator != nullptr && run_.communicator->Size() > 1) {
      const bool connected = run_.communicator->DeviceFor(run_.device) == run_.device;
      std::cerr << fmt::format(
          "sordino: {} ranks; sums and weights go {}.\n", run_.communicator->Size(),
          connected ? "from GPU to GPU over NCCL" : "through processors over Gloo, encrypted");
    }
    if (run_.resume) {
      std::cerr << fmt::format("sordino: resuming after {} of {} steps.\n",
                               run_.resume->checkpoint.facts.step, run_.plan.steps());
    }
  }

  void OnNotice(const std::string& sentence) override {
    Finish();
    std::cerr << "sordino: " << ShownText(sentence) << '\n';
  }

  void OnFeatures(int percent) override {
    if (!features_) features_ = std::make_unique<Progress>("features", 100);
    features_->Update(static_cast<std::uint64_t>(percent));
    if (percent >= 100) features_->Finish();
  }

  void OnStep(const StepReport& report) override {
    if (!steps_) {
      steps_ = std::make_unique<Progress>("train", static_cast<std::uint64_t>(report.steps));
    }
    std::string note = fmt::format("step {}", report.step);
    if (report.epsilon) note += fmt::format(", epsilon {:.3f}", *report.epsilon);
    if (report.test_accuracy) {
      note += fmt::format(", test accuracy {:.2f}%", 100 * *report.test_accuracy);
    }
    if (report.test_error) {
      note += fmt::format(", mean absolute error {:.4g}", report.test_error->mean_absolute);
    }
    if (report.examples_per_second > 0) {
      note += fmt::format(", {:.0f} examples/s", report.examples_per_second);
    }
    steps_->Update(static_cast<std::uint64_t>(report.step), note);
  }

  void Finish() {
    if (steps_) steps_->Finish();
  }

 private:
  const PreparedRun& run_;
  std::vector<std::string> choices_;  // what was not said in so many words
  std::unique_ptr<Progress> features_;
  std::unique_ptr<Progress> steps_;
};

// What the program decided about the line, in sentences.
std::vector<std::string> ChoicesOf(const TrainOptions& options, const PreparedRun& run) {
  std::vector<std::string> choices;
  if (!options.resume.empty()) return choices;
  if (SourceIsConfig(options.source, options.config, options.flags)) {
    choices.push_back(
        fmt::format("'{}' holds settings, not data, and is read as --config.", options.source));
  }
  if (ConfigOf(options.source, options.config, options.flags).ModelName().empty()) {
    choices.push_back(fmt::format("no --model was given; '{}' is the default for such data.",
                                  run.config.model.name));
  }
  return choices;
}

PreparedRun PrepareSettings(const TrainOptions& options) {
  if (!options.resume.empty()) {
    if (!options.source.empty() || !options.config.empty() || !options.flags.Given().empty() ||
        options.dry_run) {
      throw Error(
          "--resume continues a run as it was configured; leave out all other settings (--json, "
          "--processes, --join-timeout and --trust-network may stay).");
    }
    return PrepareResume(options.resume, LocalRank());
  }
  const TrainConfig config = ConfigOf(options.source, options.config, options.flags);
  // The same command line again, after a rank was lost.
  const std::filesystem::path out = config.run.out;
  if (IsRestarted() && !out.empty() && std::filesystem::exists(out / kCheckpointFolder)) {
    return PrepareResume(out, LocalRank());
  }
  const std::vector<MissingSetting> missing = MissingSettings(config);
  if (!missing.empty()) throw Error(MissingSentence(missing, GivenLine()));
  return PrepareRun(config, LocalRank());
}

PreparedRun Prepare(const TrainOptions& options) {
  PreparedRun run = PrepareSettings(options);
  const RunSettings& settings = run.config.run;
  CheckRiskFlags(options.risk, run.config.data, settings.non_private, settings.ledger);
  run.measures_risk = options.risk.measure;
  return run;
}

void Plan(const TrainOptions& options) {
  PreparedRun run = Prepare(options);
  const std::optional<LedgerOutlook> outlook = LookAtLedger(run);
  if (outlook) {
    const std::string sentence = OutlookSentence(*outlook, run.plan.steps(), run.config.run.ledger);
    if (!sentence.empty()) std::cerr << "sordino: " << sentence << '\n';
  }
  const RunResult planned = PlannedResult(run);
  for (const std::string& choice : ChoicesOf(options, run)) {
    std::cerr << "sordino: " << ShownText(choice) << '\n';
  }
  if (options.json) {
    nlohmann::ordered_json json = ResultJson(planned, true);
    if (outlook) json["ledger"].update(ForecastJson(*outlook->after));
    PrintReport(json, /*one_line=*/true);
    return;
  }
  PrintPlan(planned);
  if (outlook) {
    std::cout << fmt::format("\nledger {}: {}\n", run.config.run.ledger,
                             ForecastText(*outlook->after));
  }
}

void Train(PreparedRun& run, const TrainOptions& options) {
  Bar bar(run, ChoicesOf(options, run));
  const RunResult result = RunTraining(run, bar);
  bar.Finish();
  if (result.interrupted) {
    std::cerr << fmt::format(
        "sordino: stopped after {} of {} steps{}; everything is written{}.\n", result.steps,
        run.plan.steps(), result.stopped_by_ledger ? " by the ledger" : "",
        result.stopped_by_ledger
            ? ""
            : fmt::format(", and 'sordino train --resume {}' resumes it", result.folder.string()));
  }
  if (options.json) {
    PrintReport(ResultJson(result, false), /*one_line=*/true);
  } else {
    PrintResult(result);
  }
  if (result.audit && result.audit->contradicts) {
    throw std::runtime_error(
        "the audit contradicts the claim of the run; do not release the model, and see "
        "statement.txt and audit.json in its folder.");
  }
  if (result.stopped_by_ledger) throw EndWith{kEndedEarly};
  if (result.interrupted) throw EndWith{kSignal + StopGuard::Signal()};
}

void Run(TrainOptions& options) {
  if (options.dry_run) return Plan(options);
  options.ranks.json = options.json;
  if (const std::optional<int> code = RunAsParent(options.ranks)) throw EndWith{*code};
  const std::unique_ptr<ProcessGroup> group = JoinRanks(options.ranks);
  if (group == nullptr) {
    PreparedRun run = Prepare(options);
    // --processes 1 is the first of many: the same bits as with any number.
    const std::unique_ptr<Communicator> alone = SingleProcess();
    if (options.ranks.processes) ShareRun(run, *alone);
    return Train(run, options);
  }
  RunAsRank(
      *group, options.ranks,
      options.resume.empty()
          ? WriteTrainConfig(ConfigOf(options.source, options.config, options.flags))
          : "resume " + options.resume,
      [&] { return Prepare(options); }, [&](PreparedRun& run) { Train(run, options); });
}

}  // namespace

void AddTrainCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", TorchCommandSummary("train"));
  const auto options = std::make_shared<TrainOptions>();
  TrainOptions& o = *options;
  command
      ->add_option("source", o.source,
                   fmt::format("What to train on, as with --data: {}, a file or a folder; or a "
                               "configuration, which is recognised by its content",
                               fmt::join(DatasetNames(), ", ")))
      ->type_name("NAME|FILE");
  command
      ->add_option("--config", o.config,
                   "A TOML file with settings, such as the config.toml of a run; flags win over it")
      ->type_name("CONFIG")
      ->group("Data");
  o.flags.AddTo(*command, [](const Setting&) { return true; });
  command
      ->add_option("--resume", o.resume,
                   "Resume the run in this folder, from its newest checkpoint")
      ->type_name("FOLDER")
      ->group("Run");
  command
      ->add_flag("--dry-run", o.dry_run,
                 "Print plan, event, noise and statement; read no data, train nothing")
      ->group("Run");
  command->add_flag("--json", o.json, "One JSON object on standard output")->group("Run");
  AddRiskFlags(*command, o.risk);
  AddRankFlags(*command, o.ranks);
  AddShowPrivate(*command, o.show_private);
  command->footer(
      "Examples:\n"
      "  sordino train digits --epsilon 3 --epochs 5\n"
      "  sordino train visits.csv --schema visits.toml --records 20000 --epsilon 3 --delta 1e-6 "
      "--ledger visits.db\n"
      "  sordino train photos --shape 3,64,64 --class-names cat,dog --records 20000 --epsilon 3 "
      "--delta 1e-6\n"
      "  sordino train --config config.toml --epsilon 1 --dry-run\n"
      "  sordino train config.toml --processes 4\n"
      "  sordino train --resume runs/20261115-114500-digits-cnn-mnist");
  command->callback([options] { ReportErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
