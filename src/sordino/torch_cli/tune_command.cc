#include "sordino/torch_cli/tune_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/progress.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/ledger_forecast.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/distributed/launch_environment.h"
#include "sordino/runs/missing_settings.h"
#include "sordino/runs/tuned_training.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/train_options.h"
#include "sordino/torch_cli/train_report.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// Of one run, or without a meaning for several.
constexpr std::array<std::string_view, 6> kFlagsOfOneRun = {
    "--noise",       "--non-private",    "--canaries",
    "--canary-kind", "--evaluate-every", "--checkpoint-every"};

struct TuneOptions {
  std::string source;  // data, or a configuration
  std::string config;
  bool dry_run = false;
  bool json = false;
  bool show_private = false;
  TuneSettings settings;
  TrainFlags flags;
};

ReportRows TryRows(const PreparedTuning& tuning, const TunedResult& result) {
  ReportRows rows;
  rows.push_back({"tries", fmt::format("{}, of which {:g} are expected to count",
                                       tuning.tries.most(), tuning.expected)});
  for (std::size_t i = 0; i < result.chosen.size(); ++i) {
    rows.push_back(
        {i == 0 ? "chosen" : "", fmt::format("{} {}", tuning.tried[i].name(), result.chosen[i])});
  }
  return rows;
}

Json TunedJson(const PreparedTuning& tuning, const TunedResult& result, bool dry_run) {
  Json json = ResultJson(result.run, dry_run);
  json["tries"] = tuning.tries.most();
  json["expected_tries"] = tuning.expected;
  for (std::size_t i = 0; i < result.chosen.size(); ++i) {
    json["chosen"][tuning.tried[i].name()] = result.chosen[i];
  }
  return json;
}

void DryRun(const PreparedTuning& tuning, bool as_json) {
  const std::optional<BudgetFilter> after = CheckLedger(tuning);
  const TunedResult planned = PlannedResult(tuning);
  if (as_json) {
    Json json = TunedJson(tuning, planned, true);
    if (after) json["ledger"].update(ForecastJson(*after));
    PrintReport(json, /*one_line=*/true);
    return;
  }
  PrintPlan(planned.run, TryRows(tuning, planned));
  if (after) {
    std::cout << fmt::format("\nledger {}: {}\n", tuning.run.config.run.ledger,
                             ForecastText(*after));
  }
}

void Run(TuneOptions& options) {
  const std::optional<LaunchEnvironment> launch = ReadLaunchEnvironment();
  if (launch && launch->size > 1) {
    throw Error("'tune' trains in one process; start it without torchrun, mpirun or srun.");
  }
  TuneSettings& settings = options.settings;
  settings.config = ConfigOf(options.source, options.config, options.flags);
  const std::vector<MissingSetting> missing = MissingSettings(settings);
  if (!missing.empty()) throw Error(MissingSentence(missing, GivenLine()));
  PreparedTuning tuning = PrepareTuning(settings);
  if (options.dry_run) return DryRun(tuning, options.json);
  const StatementFacts& facts = tuning.run.facts;
  if (tuning.run.privacy != RunPrivacy::kPrivate) {
    std::cerr << "sordino: " << NotPrivateWarning(tuning.run.privacy) << '\n';
  }
  std::cerr << "sordino: " << ShownText(facts.model) << "; " << facts.plan << '\n';
  std::cerr << fmt::format(
      "sordino: {} tries of {} steps are made, whatever happens in them; {:g} of them are expected "
      "to count, and nobody learns how many do.\n",
      tuning.tries.most(), tuning.run.plan.steps(), tuning.expected);
  std::unique_ptr<Progress> progress;
  const TunedResult result = RunTuning(tuning, [&](std::int64_t made, std::int64_t all) {
    if (!progress) progress = std::make_unique<Progress>("tune", static_cast<std::uint64_t>(all));
    const std::int64_t steps = tuning.run.plan.steps();
    progress->Update(static_cast<std::uint64_t>(made),
                     fmt::format("try {} of {}", (made - 1) / steps + 1, all / steps));
  });
  if (progress) progress->Finish();
  if (options.json) {
    PrintReport(TunedJson(tuning, result, false), /*one_line=*/true);
  } else {
    PrintResult(result.run, TryRows(tuning, result));
  }
}

}  // namespace

void AddTuneCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tune", TorchCommandSummary("tune"));
  const auto options = std::make_shared<TuneOptions>();
  TuneOptions& o = *options;
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
  command
      ->add_option("--try", o.settings.tries,
                   fmt::format("What tries differ in: lists and ranges, such as "
                               "lr=0.1..4:log,clip=0.1,1; of {}",
                               fmt::join(TriedSettingNames(), ", ")))
      ->type_name("SETTINGS")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Tries");
  command->add_option("--tries", o.settings.expected, "How many tries are expected to count")
      ->type_name("MEAN")
      ->capture_default_str()
      ->group("Tries");
  command
      ->add_option("--select", o.settings.distribution,
                   "What their number is drawn from: poisson, or tnb:ETA, the truncated negative "
                   "binomial distribution")
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Tries");
  o.flags.AddTo(*command, [](const Setting& setting) {
    return std::find(kFlagsOfOneRun.begin(), kFlagsOfOneRun.end(), setting.flag) ==
           kFlagsOfOneRun.end();
  });
  command
      ->add_flag("--dry-run", o.dry_run,
                 "Print plan, event, noise and statement; read no data, train nothing")
      ->group("Run");
  command->add_flag("--json", o.json, "One JSON object on standard output")->group("Run");
  AddShowPrivate(*command, o.show_private);
  command->footer(
      "Examples:\n"
      "  sordino tune digits --epsilon 3 --epochs 5 --try lr=0.1..4:log,clip=0.1,1\n"
      "  sordino tune visits.csv --schema visits.toml --test public.csv --records 20000 "
      "--epsilon 3 --delta 1e-6 --ledger visits.db --try lr=0.05..2:log --tries 5\n"
      "  sordino tune --config config.toml --try momentum=0,0.9 --dry-run");
  command->callback([options] { ReportErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
