#include "sordino/cli/audit_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/output_file.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"
#include "sordino/lower_bounds/one_run.h"
#include "sordino/lower_bounds/two_worlds.h"
#include "sordino/report/roc_picture.h"
#include "sordino/tables/csv_reader.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kRates = {"0.1", "0.01", "0.001", "0.0001"};

struct BoundFlags {
  std::string canaries;
  std::string guesses;
  std::string correct;
  std::string delta = "0";
  std::optional<std::string> confidence;
  std::string method{kOneRunMethods.front()};
  std::optional<std::string> epsilon;
  bool json = false;
};

struct ScoreFlags {
  std::string members;
  std::string others;
  std::string delta = "0";
  std::optional<std::string> confidence;
  std::optional<std::string> event;
  std::optional<std::string> picture;
  bool force = false;
  bool json = false;
};

constexpr std::size_t kMaxCaption = 90;

double SignificanceFrom(const std::optional<std::string>& text) {
  const double confidence = text ? ParseReal("--confidence", *text) : kAuditConfidence;
  CheckRange("--confidence", confidence, 0, true, 1, true);
  return 1 - confidence;
}

std::int64_t CountFrom(const char* flag, const std::string& text) {
  return static_cast<std::int64_t>(ParseWhole(flag, text));
}

void RunBound(const BoundFlags& flags) {
  const OneRun run = {.canaries = CountFrom("--canaries", flags.canaries),
                      .guesses = CountFrom("--guesses", flags.guesses),
                      .correct = CountFrom("--correct", flags.correct)};
  CheckOneRun(run);
  const Delta delta(ParseReal("--delta", flags.delta));
  const double significance = SignificanceFrom(flags.confidence);
  const bool gaussian = IndexOfName("--method", flags.method, kOneRunMethods) == 1;
  if (gaussian && flags.epsilon) {
    throw Error("--epsilon asks for the p-value of a claim, which only --method one-run has.");
  }
  Json json = NewReport();
  GaussianLowerBound bound;
  if (gaussian) {
    bound = OneRunGaussian(run, delta, significance);
  } else {
    bound.epsilon = OneRunEpsilon(run, delta, significance);
  }
  json["epsilon_lower"] = NumberJson(bound.epsilon);
  json["method"] = flags.method;
  if (gaussian) json["mu_lower"] = bound.mu;
  json["delta"] = delta.value();
  json["confidence"] = 1 - significance;
  std::string text =
      gaussian
          ? fmt::format("mu is at least {}, if the run is Gaussian-DP: epsilon {} at delta {:g}",
                        LowerText(bound.mu), LowerText(bound.epsilon), delta.value())
          : fmt::format("epsilon is at least {} at delta {:g}", LowerText(bound.epsilon),
                        delta.value());
  text += fmt::format(", with confidence {:g}.\n", 1 - significance);
  if (!gaussian) {
    const double claim = flags.epsilon ? ParseReal("--epsilon", *flags.epsilon) : bound.epsilon;
    const double p = OneRunPValue(run, Epsilon(claim), delta);
    json["p_value"] = p;
    json["p_value_of"] = claim;
    if (flags.epsilon) {
      text += fmt::format(
          "If epsilon were {:g}, {} or more right guesses of {} would have a probability of at "
          "most "
          "{:.4g}.\n",
          claim, run.correct, run.guesses, p);
    }
  }
  if (flags.json) {
    PrintReport(json);
  } else {
    std::cout << text;
  }
}

// One score a line, in the first column; a first line that is no number is a header.
std::vector<double> ReadScores(const std::string& path) {
  CsvReader reader(OpenFile(path));
  std::vector<double> scores;
  for (bool first = true; reader.Next(); first = false) {
    std::string_view cell = reader.fields().empty() ? "" : reader.fields().front();
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    double score = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), score);
    const bool is_number = error == std::errc() && end == cell.data() + cell.size();
    if (!is_number && first) continue;
    if (!is_number || std::isnan(score) || !reader.broken().empty()) {
      throw Error(fmt::format(
          "the first column of '{}' holds something that is not a number; give one score a line.",
          path));
    }
    scores.push_back(score);
  }
  if (scores.empty()) {
    throw Error(fmt::format("'{}' holds no scores; give one number a line.", path));
  }
  return scores;
}

// An event in a line of a picture; of a long one the beginning.
std::string CaptionOf(const Event& event) {
  std::string text = "claimed: " + event.ToString();
  if (text.size() > kMaxCaption) text = text.substr(0, kMaxCaption - 3) + "...";
  return text;
}

std::string ScoresPicture(const TwoWorlds& worlds, const std::vector<PrivacyLine>& claim,
                          const std::optional<Event>& event) {
  RocPicture picture;
  picture.title = "How well members are told from others";
  picture.caption = event ? CaptionOf(*event) : "";
  picture.curves = {{"the attack", worlds.Curve()}};
  picture.claim = claim;
  return RocSvg(picture);
}

void RunScores(const ScoreFlags& flags) {
  const Delta delta(ParseReal("--delta", flags.delta));
  const double significance = SignificanceFrom(flags.confidence);
  const std::optional<Event> event =
      flags.event ? std::optional<Event>(Event::Parse(*flags.event)) : std::nullopt;
  std::optional<OutputFile> picture;
  if (flags.picture) {
    const std::vector<std::filesystem::path> inputs = {flags.members, flags.others};
    picture.emplace(OutputRequest{"--picture", *flags.picture, kSvgPicture, flags.force}, inputs);
  }
  const TwoWorlds worlds(ReadScores(flags.members), ReadScores(flags.others));
  const auto claim =
      event ? PrivacyProfile(*event, kPlannedClaimLines) : std::vector<PrivacyLine>();
  if (picture) picture->Write(ScoresPicture(worlds, claim, event));
  const TwoWorlds::Bounds bounds =
      event ? worlds.PlannedBounds(
                  delta, significance,
                  PlanRanks(claim, worlds.members(), worlds.others(), delta, significance))
            : worlds.LowerBounds(delta, significance);
  const Estimate area = worlds.Area(significance);
  Json json = NewReport();
  json["epsilon_lower"] = {{"clopper-pearson", NumberJson(bounds.epsilon)},
                           {"gdp", NumberJson(bounds.mu_epsilon)},
                           {"katz", bounds.katz},
                           {"bailey", bounds.bailey}};
  json["mu_lower"] = NumberJson(bounds.mu);
  json["certified"] = {"clopper-pearson", "gdp"};
  json["delta"] = delta.value();
  json["confidence"] = 1 - significance;
  json["auc"] = EstimateJson(area);
  json["auc"]["hull"] = worlds.HullArea();
  std::vector<std::vector<std::string>> rows = {{"false positive rate", "true", "from", "to"}};
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  for (const char* rate : kRates) {
    const Estimate estimate = worlds.TruePositiveRate(ParseReal("rate", rate), significance);
    json["tpr"][rate] = EstimateJson(estimate);
    rows.push_back({rate, number(estimate.value), number(estimate.lower), number(estimate.upper)});
  }
  if (flags.json) {
    PrintReport(json);
    return;
  }
  std::cout << fmt::format(
      "epsilon is at least {} at delta {:g}, with confidence {:g}.\n"
      "If the release is Gaussian-DP, mu is at least {} and epsilon {}.\n"
      "Approximate intervals of the ratio of the rates (Katz, Bailey), which prove nothing: "
      "{:.4g}, "
      "{:.4g}\n"
      "\narea under the curve {:.4f}, from {:.4f} to {:.4f}\n\n{}",
      LowerText(bounds.epsilon), delta.value(), 1 - significance, LowerText(bounds.mu),
      LowerText(bounds.mu_epsilon), bounds.katz, bounds.bailey, area.value, area.lower, area.upper,
      AlignedTable(rows, 4));
}

void AddBound(CLI::App& audit) {
  CLI::App* command = audit.add_subcommand(
      "bound", "Epsilon that right guesses about the canaries of one run prove.");
  const auto flags = std::make_shared<BoundFlags>();
  AddValue(*command, "--canaries", flags->canaries, "N",
           "Canaries, each in the data by a fair coin")
      ->required();
  AddValue(*command, "--guesses", flags->guesses, "N", "How many of the coins were guessed")
      ->required();
  AddValue(*command, "--correct", flags->correct, "N", "How many of the guesses are right")
      ->required();
  AddValue(*command, "--delta", flags->delta, "0..1",
           "The delta at which epsilon is asked for; 0 if left out");
  AddValue(*command, "--confidence", flags->confidence, "0..1", "Of the bound; 0.95 if left out");
  AddValue(*command, "--method", flags->method, "NAME",
           OneOf(kOneRunMethods) + "; one-run if left out");
  AddValue(*command, "--epsilon", flags->epsilon, "NUMBER", "A claim whose p-value is asked for");
  command->add_flag("--json", flags->json, "One JSON object on standard output");
  command->footer(
      "Example:\n  sordino audit bound --canaries 1000 --guesses 100 --correct 95 --delta 1e-5");
  command->callback([flags] { RunBound(*flags); });
}

void AddScores(CLI::App& audit) {
  CLI::App* command = audit.add_subcommand(
      "scores", "Epsilon, area and true positive rates that the scores of an attack prove.");
  const auto flags = std::make_shared<ScoreFlags>();
  AddValue(*command, "members", flags->members, "FILE",
           "CSV file: scores of records that were trained on")
      ->required();
  AddValue(*command, "others", flags->others, "FILE", "CSV file: scores of records that were not")
      ->required();
  AddValue(*command, "--delta", flags->delta, "0..1",
           "The delta at which epsilon is asked for; 0 if left out");
  AddValue(*command, "--confidence", flags->confidence, "0..1", "Of every bound; 0.95 if left out");
  AddValue(*command, "--picture", flags->picture, "FILE",
           "Draw true against false positive rates to this SVG file");
  AddValue(*command, "--event", flags->event, "EVENT",
           "What is claimed of the release, such as 'add-remove: 100*gaussian(8)'; bounds "
           "look first where it allows most, and the picture shades what it allows");
  AddForceFlag(*command, flags->force);
  command->add_flag("--json", flags->json, "One JSON object on standard output");
  command->footer("Example:\n  sordino audit scores members.csv others.csv --delta 1e-5");
  command->callback([flags] { RunScores(*flags); });
}

}  // namespace

void AddAuditCommand(CLI::App& app) {
  CLI::App* audit =
      app.add_subcommand("audit", "What the outcome of an attack proves about epsilon.");
  audit->require_subcommand(1);
  audit->footer(
      "Example:\n  sordino audit bound --canaries 1000 --guesses 100 --correct 95 --delta 1e-5");
  AddBound(*audit);
  AddScores(*audit);
}

}  // namespace sordino
