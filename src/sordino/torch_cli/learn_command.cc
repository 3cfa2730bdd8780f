#include "sordino/torch_cli/learn_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/base/stop.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/runs/learned_schedule.h"
#include "sordino/runs/train_settings.h"
#include "sordino/schedules/schedule_table.h"
#include "sordino/torch_cli/public_data.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/train_options.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLearnProgress = 1000;

struct LearnFlags {
  TrainFlags settings;
  std::optional<std::string> file;
  std::optional<std::string> from_run;
  std::string seeds = "8";
  std::string blocks = "8";
  std::string factor = "3";
  std::optional<std::string> schedule_out;
  bool public_data = false;
  bool force = false;
  bool json = false;
  bool show_private = false;
};

TrainConfig AuxiliaryConfig(const LearnFlags& flags) {
  if (flags.file && flags.from_run) {
    throw Error("settings come from a file or from --from-run; leave one of them out.");
  }
  TrainConfig config;
  if (flags.file) config = ReadTrainConfig(*flags.file);
  if (flags.from_run) {
    config = ReadTrainConfig(std::filesystem::path(*flags.from_run) / "config.toml");
  }
  SetFromFlags(config, flags.settings.Given());
  if (config.data.source.empty()) {
    throw Error(
        "there are no data to learn from; give a file with the settings of a training run on "
        "public data, --from-run, or --data.");
  }
  // What is about the run of the file and not about what is learned.
  config.run = {};
  return config;
}

LearnOptions LearnOptionsOf(const LearnFlags& flags) {
  LearnOptions options;
  options.seeds = static_cast<std::int64_t>(ParseWhole("--seeds", flags.seeds));
  options.blocks = static_cast<std::int64_t>(ParseWhole("--blocks", flags.blocks));
  options.factor = ParseReal("--factor", flags.factor);
  return options;
}

// Why the schedule is equal noise; empty where it is not.
std::string EqualNoiseSentence(const LearnedSchedule& learned) {
  if (learned.schedule.equal == EqualNoise::kNot) return "";
  if (learned.schedule.equal == EqualNoise::kNoDecay) {
    return "The influence does not grow towards the last step beyond chance, so no decay can be "
           "fitted and the schedule is equal noise.";
  }
  return fmt::format(
      "No decay can be told from chance at level {:g}, so the schedule is equal noise; more "
      "--seeds, fewer --blocks or a larger --factor show a smaller one.",
      kDecayLevel);
}

Json LearnJson(const LearnedSchedule& learned) {
  Json json = NewReport();
  json["public_data_only"] = true;
  json["runs"] = learned.runs;
  json["steps"] = learned.schedule.noise.size();
  json["decay"] = learned.schedule.influence.decay;
  json["kappa"] = std::isfinite(learned.schedule.influence.kappa)
                      ? Json(learned.schedule.influence.kappa)
                      : Json();
  json["gain"] = learned.schedule.gain;
  json["decay_test"] = {{"slope", learned.test.slope},
                        {"standard_error", learned.test.error},
                        {"p_value", learned.test.p_value},
                        {"level", kDecayLevel},
                        {"significant", learned.test.is_significant}};
  const std::string equal = EqualNoiseSentence(learned);
  json["equal_noise_because"] = equal.empty() ? Json() : Json(equal);
  for (const BlockInfluence& block : learned.blocks) {
    json["blocks"].push_back({{"first_step", block.first + 1},
                              {"steps", block.steps},
                              {"influence", block.weight},
                              {"standard_error", block.error}});
  }
  json["schedule"] = {{"noise", learned.schedule.noise},
                      {"influence", learned.schedule.influence.weights}};
  return json;
}

std::string LearnText(const LearnedSchedule& learned, const std::optional<std::string>& file) {
  std::vector<std::vector<std::string>> rows = {{"steps", "influence", "error", "noise"}};
  for (const BlockInfluence& block : learned.blocks) {
    const auto middle = static_cast<std::size_t>(block.first + block.steps / 2);
    rows.push_back({fmt::format("{} to {}", block.first + 1, block.first + block.steps),
                    fmt::format("{:.3g}", block.weight), fmt::format("{:.2g}", block.error),
                    fmt::format("{:.3f}", learned.schedule.noise[middle])});
  }
  std::string text = fmt::format(
      "Learned from {} runs on public data, which are not private.\n\n{}\nInfluence is what noise "
      "of multiplier 1 in a step adds to the final loss; noise is the factor of the schedule.\n\n"
      "slope of the influence  {:.3g} +- {:.2g} a step; chance alone gives a slope like this with "
      "probability {:.2g} (t-test)\n",
      learned.runs, AlignedTable(rows, 4), learned.test.slope, learned.test.error,
      learned.test.p_value);
  const std::string equal = EqualNoiseSentence(learned);
  if (!equal.empty()) {
    return text + equal + (file ? fmt::format("\nThe file {} has equal noise.\n", *file) : "\n") +
           "\nNext: train with the same noise in all steps, which needs no schedule.\n";
  }
  text += fmt::format(
      "decay of the influence  {:.4f} a step, for --decay\ncondition number        {:.3g}\n",
      learned.schedule.influence.decay, learned.schedule.influence.kappa);
  text += fmt::format("noise term              {:.3f} of that of equal noise\n",
                      1 / learned.schedule.gain);
  return text +
         (file ? fmt::format("\nNext: 'sordino train --noise-schedule file:{}' uses it.\n", *file)
               : "\nNext: with --schedule-out FILE this writes the schedule, which 'sordino train "
                 "--noise-schedule file:FILE' uses.\n");
}

void RunLearn(const LearnFlags& flags) {
  const TrainConfig config = AuxiliaryConfig(flags);
  CheckPublicData(config.data, flags.public_data, "a learned schedule is");
  std::optional<OutputFile> out;
  if (flags.schedule_out) {
    std::vector<std::filesystem::path> inputs;
    for (const DataFile& file : FilesOf(config.data)) inputs.emplace_back(file.path);
    if (flags.file) inputs.emplace_back(*flags.file);
    out.emplace(OutputRequest{"--schedule-out", *flags.schedule_out, kScheduleFile, flags.force},
                inputs);
  }
  const StopGuard guard;
  LearnOptions options = LearnOptionsOf(flags);
  std::optional<Progress> progress;  // from the first run on: what is refused has none
  options.progress = [&](double done) {
    if (StopGuard::Requested()) throw Stopped("stopped; nothing was written.");
    if (!progress) progress.emplace("Learning", kLearnProgress);
    progress->Update(static_cast<std::uint64_t>(std::lround(kLearnProgress * done)));
  };
  const LearnedSchedule learned = LearnSchedule(config, options);
  if (progress) progress->Finish();
  if (out) {
    out->Write(ScheduleTableText(fmt::format("learned from {} runs of {} steps", learned.runs,
                                             learned.schedule.noise.size()),
                                 "noise", learned.schedule.noise));
  }
  if (flags.json) {
    PrintReport(LearnJson(learned));
  } else {
    std::cout << LearnText(learned, flags.schedule_out);
  }
}

}  // namespace

void AddLearnCommand(CLI::App& app) {
  CLI::App* command =
      app.get_subcommand("plan")->add_subcommand("learn", TorchCommandSummary("plan learn"));
  const auto flags = std::make_shared<LearnFlags>();
  LearnFlags& f = *flags;
  command
      ->add_option("settings", f.file,
                   "A TOML file with the settings of training runs on public data; flags win over "
                   "it")
      ->type_name("FILE");
  command->add_option("--from-run", f.from_run, "Take the settings of this run of public data")
      ->type_name("FOLDER");
  f.settings.AddTo(*command, [](const Setting& setting) { return setting.section != "run"; });
  command->get_option("--seed")->description(
      "Of the runs: with another one they have other first weights, batches and noise");
  command->add_option("--seeds", f.seeds, "Runs with and without more noise, each (8)")
      ->type_name("N");
  command->add_option("--blocks", f.blocks, "Blocks of steps whose influence is measured (8)")
      ->type_name("N");
  command->add_option("--factor", f.factor, "Of the noise in a block (3)")->type_name("X");
  command
      ->add_option("--schedule-out", f.schedule_out,
                   "Write the noise of each step to this CSV file, for 'sordino train "
                   "--noise-schedule file:FILE'")
      ->type_name("FILE");
  command->add_flag("--public-data", f.public_data,
                    "The data are public: needed for files, because what is learned has no noise");
  AddForceFlag(*command, f.force);
  command->add_flag("--json", f.json, "One JSON object on standard output");
  AddShowPrivate(*command, f.show_private);
  command->footer(
      "Example:\n  sordino plan learn --data digits --model logistic --epsilon 3 --steps 100 "
      "--schedule-out learned.csv");
  command->callback([flags] { ReportErrors(flags->show_private, [&] { RunLearn(*flags); }); });
}

}  // namespace sordino
