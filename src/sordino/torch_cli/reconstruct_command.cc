#include "sordino/torch_cli/reconstruct_command.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/audit/reconstruction.h"
#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/data/catalog.h"
#include "sordino/lower_bounds/binomial.h"
#include "sordino/runs/train_config.h"
#include "sordino/torch_cli/contact_sheet.h"
#include "sordino/torch_cli/public_data.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/train_options.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kFoundSignificance = 0.05;
constexpr std::uint64_t kReconstructionSteps = 1000;

struct ReconstructFlags {
  TrainFlags data;
  std::vector<std::string> epsilons;
  std::optional<std::string> delta;
  std::optional<std::string> clip;
  std::optional<std::string> steps;
  std::optional<std::string> records;
  std::optional<std::string> candidates;
  std::optional<std::string> trials;
  std::optional<std::string> seed;
  std::optional<std::string> picture;
  bool public_data = false;
  bool force = false;
  bool json = false;
  bool show_private = false;
};

void SetWhole(const char* flag, const std::optional<std::string>& text, std::int64_t* value) {
  if (text) *value = static_cast<std::int64_t>(ParseWhole(flag, *text));
}

ReconstructionOptions OptionsOf(const ReconstructFlags& flags) {
  ReconstructionOptions options;
  SetWhole("--records", flags.records, &options.records);
  SetWhole("--candidates", flags.candidates, &options.candidates);
  SetWhole("--trials", flags.trials, &options.trials);
  SetWhole("--steps", flags.steps, &options.steps);
  if (flags.clip) options.clip = ParseReal("--clip", *flags.clip);
  if (flags.delta) options.delta = Delta(ParseReal("--delta", *flags.delta));
  if (flags.seed) options.seed = ParseWhole("--seed", *flags.seed);
  return options;
}

Interval ShareOf(std::int64_t right, std::int64_t trials) {
  return {ClopperPearsonLower(trials, right, kFoundSignificance / 2),
          ClopperPearsonUpper(trials, right, kFoundSignificance / 2)};
}

void PrintReconstructionJson(const Reconstruction& found, const ReconstructionOptions& options) {
  Json json = NewReport();
  json["public_data_only"] = true;
  json["records"] = options.records;
  json["steps"] = options.steps;
  json["clip"] = options.clip;
  json["delta"] = options.delta.value();
  json["candidates"] = options.candidates;
  json["trials"] = options.trials;
  json["confidence"] = 1 - kFoundSignificance;
  json["blind"] = {{"found", 1.0 / static_cast<double>(options.candidates)},
                   {"pixel_error", found.blind_error}};
  for (const ReconstructionLevel& level : found.levels) {
    const Interval range = ShareOf(level.right, options.trials);
    Json entry;
    entry["epsilon"] = level.epsilon ? Json(*level.epsilon) : Json(nullptr);
    entry["noise"] = level.noise;
    entry["found"] = static_cast<double>(level.right) / static_cast<double>(options.trials);
    entry["interval"] = {range.lower, range.upper};
    entry["bound"] = level.bound;
    entry["renyi_bound"] = level.renyi_bound ? Json(*level.renyi_bound) : Json(nullptr);
    entry["pixel_error"] = level.rebuilt_error;
    json["levels"].push_back(std::move(entry));
  }
  PrintReport(json);
}

void PrintReconstruction(const Reconstruction& found, const ReconstructionOptions& options) {
  std::cout << fmt::format(
      "The adversary knows {} of {} records, every model of {} full-batch step{}, and that the "
      "target is one of {}.\n\n",
      options.records - 1, options.records, options.steps, options.steps == 1 ? "" : "s",
      options.candidates);
  const auto share = [](double value) { return fmt::format("{:.1f} %", 100 * value); };
  std::vector<std::vector<std::string>> rows = {
      {"privacy", "noise", "found", "from", "to", "bound", "by Renyi", "error of the picture"}};
  for (const ReconstructionLevel& level : found.levels) {
    const Interval range = ShareOf(level.right, options.trials);
    rows.push_back({level.epsilon ? fmt::format("epsilon {:g}", *level.epsilon) : "none, clipped",
                    fmt::format("{:.4g}", level.noise),
                    share(static_cast<double>(level.right) / static_cast<double>(options.trials)),
                    share(range.lower), share(range.upper), level.epsilon ? share(level.bound) : "",
                    level.renyi_bound ? share(*level.renyi_bound) : "",
                    fmt::format("{:.4f}", level.rebuilt_error)});
  }
  rows.push_back({"no model", "", share(1.0 / static_cast<double>(options.candidates)), "", "", "",
                  "", fmt::format("{:.4f}", found.blind_error)});
  std::cout << AlignedTable(rows, 8)
            << fmt::format(
                   "\nfound: how often the target is chosen among the candidates, in {} trials, "
                   "with the interval of {:g} %\nbound: no adversary finds it more often, by the "
                   "blow-up function of the event at delta {:g} and by its Renyi divergences\n",
                   options.trials, 100 * (1 - kFoundSignificance), options.delta.value());
}

// In rows of a contact sheet: the targets, and for each level what was rebuilt and what was
// guessed.
Dataset SheetOf(const Reconstruction& found, const DatasetDeclaration& declaration) {
  std::vector<at::Tensor> rows;
  const auto add = [&](const at::Tensor& images) {
    std::vector<std::int64_t> sizes = images.sizes().vec();
    sizes[0] = kShownTargets;
    at::Tensor row = at::zeros(sizes, at::kByte);
    row.narrow(0, 0, images.size(0)).copy_((images * 255).round().to(at::kByte));
    rows.push_back(row);
  };
  add(found.targets);
  for (const ReconstructionLevel& level : found.levels) {
    add(level.rebuilt);
    if (level.epsilon) add(level.guessed);
  }
  Dataset sheet;
  sheet.declaration = declaration;
  sheet.inputs = at::cat(rows);
  return sheet;
}

std::string SheetCaption(const Reconstruction& found) {
  std::string caption = "Rows: the targets; rebuilt without noise";
  for (const ReconstructionLevel& level : found.levels) {
    if (level.epsilon) {
      caption += fmt::format("; rebuilt and guessed at epsilon {:g}", *level.epsilon);
    }
  }
  return caption;
}

void RunReconstruction(const ReconstructFlags& flags) {
  TrainConfig config;
  SetFromFlags(config, flags.data.Given());
  if (config.data.source.empty()) throw Error("there are no data; give --data, such as digits.");
  ReconstructionOptions options = OptionsOf(flags);
  std::vector<double> epsilons;
  for (const std::string& text : flags.epsilons) {
    const double epsilon = ParseReal("--epsilon", text);
    CheckRange("--epsilon", epsilon, 0, true, kInfinity, true);
    epsilons.push_back(epsilon);
  }
  CheckPublicData(config.data, flags.public_data, "pictures of records are");
  const DatasetDeclaration declaration = Declare(config.data);
  std::optional<OutputFile> picture;
  if (flags.picture) {
    const std::int64_t channels = declaration.shape.empty() ? 0 : declaration.shape[0];
    if (declaration.kind != InputKind::kImage || (channels != 1 && channels != 3)) {
      throw Error("--picture draws images with 1 or 3 channels; leave it out for these data.");
    }
    if (epsilons.size() > 4) throw Error("--picture draws at most 4 budgets; give fewer.");
    std::vector<std::filesystem::path> inputs;
    for (const DataFile& file : FilesOf(config.data)) inputs.emplace_back(file.path);
    picture.emplace(OutputRequest{"--picture", *flags.picture, kSvgPicture, flags.force}, inputs);
  }
  const DataSplits data = OpenData(config.data);
  std::optional<Progress> progress;
  options.progress = [&](double share) {
    if (!progress) progress.emplace("attacks", kReconstructionSteps);
    progress->Update(static_cast<std::uint64_t>(kReconstructionSteps * share));
  };
  const Reconstruction found = Reconstruct(data.train, epsilons, options);
  if (progress) progress->Finish();
  if (picture) {
    picture->Write(ContactSheetSvg(SheetOf(found, declaration), SheetCaption(found)));
  }
  if (flags.json) {
    PrintReconstructionJson(found, options);
  } else {
    PrintReconstruction(found, options);
  }
}

}  // namespace

void AddReconstructCommand(CLI::App& app) {
  CLI::App* command = app.get_subcommand("audit")->add_subcommand(
      "reconstruct", TorchCommandSummary("audit reconstruct"));
  const auto flags = std::make_shared<ReconstructFlags>();
  ReconstructFlags& f = *flags;
  f.data.AddTo(*command, [](const Setting& setting) {
    return setting.section == "data" && setting.key != "records" &&
           setting.key.rfind("test", 0) != 0;
  });
  const auto number = [command](const char* name, std::optional<std::string>& field,
                                const std::string& help, const char* type) {
    command->add_option(name, field, help)->type_name(type);
  };
  const ReconstructionOptions defaults;
  command
      ->add_option("--epsilon", f.epsilons, "A budget to train with, beside none; may be repeated")
      ->type_name("E")
      ->allow_extra_args(false);
  number("--delta", f.delta, fmt::format("Of every budget ({:g})", defaults.delta.value()), "D");
  number("--clip", f.clip, fmt::format("Clipping norm ({:g})", defaults.clip), "C");
  number("--steps", f.steps, fmt::format("Full-batch steps ({})", defaults.steps), "N");
  number("--records", f.records,
         fmt::format("Records of a training, the target included ({})", defaults.records), "N");
  number("--candidates", f.candidates,
         fmt::format("How many records the target may be ({})", defaults.candidates), "N");
  number("--trials", f.trials, fmt::format("Targets, one after the other ({})", defaults.trials),
         "N");
  number("--seed", f.seed, "Which records are known and attacked; the noise has none", "N");
  command
      ->add_option("--picture", f.picture,
                   fmt::format("Draw the first {} targets beside what was rebuilt to this SVG file",
                               kShownTargets))
      ->type_name("FILE");
  command->add_flag("--public-data", f.public_data,
                    "The data are public: needed for files, because records are shown");
  AddForceFlag(*command, f.force);
  command->add_flag("--json", f.json, "One JSON object on standard output");
  AddShowPrivate(*command, f.show_private);
  command->footer(
      "Example:\n  sordino audit reconstruct --data digits --epsilon 8 --epsilon 1 --picture "
      "rebuilt.svg");
  command->callback(
      [flags] { ReportErrors(flags->show_private, [&] { RunReconstruction(*flags); }); });
}

}  // namespace sordino
