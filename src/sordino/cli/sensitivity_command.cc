#include "sordino/cli/sensitivity_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/list_text.h"
#include "sordino/base/quantity.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"
#include "sordino/mechanisms/sensitivity_survey.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStatistics = {Statistic::kCount,    Statistic::kSum,      Statistic::kMean,
                                    Statistic::kVariance, Statistic::kMedian,   Statistic::kMinimum,
                                    Statistic::kMaximum,  Statistic::kHistogram};

struct SensitivityFlags {
  std::string statistic;
  std::string bounds;
  std::string records;
  std::string adjacency{AdjacencyName(SensitivityQuestion().adjacency)};
  std::string bins;
  std::string domain;
  std::string example;
  std::string smooth;
  bool json = false;
};

std::vector<std::string_view> StatisticNames() {
  std::vector<std::string_view> names;
  for (const Statistic statistic : kStatistics) names.push_back(StatisticName(statistic));
  return names;
}

Statistic ParseStatistic(const std::string& text) {
  for (const Statistic statistic : kStatistics) {
    if (StatisticName(statistic) == text) return statistic;
  }
  throw Error(fmt::format("'{}' is not a statistic; give {}.", text, OneOf(StatisticNames())));
}

std::vector<double> ParseNumbers(const char* flag, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& part : SplitList(text)) numbers.push_back(ParseReal(flag, part));
  return numbers;
}

SensitivityQuestion QuestionFrom(const SensitivityFlags& flags) {
  SensitivityQuestion question;
  question.statistic = ParseStatistic(flags.statistic);
  question.adjacency = ParseAdjacency(flags.adjacency);
  if (!flags.bounds.empty()) {
    const std::vector<double> ends = ParseNumbers("--bounds", flags.bounds);
    if (ends.size() != 2) {
      throw Error(fmt::format("--bounds {} is not a range; write it as low,high.", flags.bounds));
    }
    question.bounds = Bounds(ends[0], ends[1]);
  }
  if (!flags.records.empty()) question.records = ParseWhole("--records", flags.records);
  if (!flags.bins.empty()) {
    if (question.statistic != Statistic::kHistogram) {
      throw Error("--bins is for a histogram; leave it out.");
    }
    question.bins = ParseWhole("--bins", flags.bins);
    if (question.bins > kMaxSurveyBins) {
      throw Error(fmt::format("--bins is {}; give at most {}.", flags.bins, kMaxSurveyBins));
    }
  }
  if (!flags.domain.empty()) question.domain = ParseNumbers("--domain", flags.domain);
  if (!flags.example.empty()) question.example = ParseNumbers("--example", flags.example);
  if (!flags.smooth.empty()) question.smoothness = ParseReal("--smooth", flags.smooth);
  return question;
}

struct Line {
  const char* key;  // in JSON
  const char* words;
  std::optional<SensitivityAnswer> answer;
};

std::vector<Line> LinesOf(const SensitivitySurvey& survey) {
  return {{"global", "global", survey.global},
          {"global_enumerated", "global, enumerated", survey.enumerated_global},
          {"local", "local at the example", survey.local},
          {"local_enumerated", "local, enumerated", survey.enumerated_local},
          {"smooth", "smooth at the example", survey.smooth}};
}

void PrintJson(const SensitivityFlags& flags, const SensitivitySurvey& survey) {
  Json json = NewReport();
  json["statistic"] = flags.statistic;
  json["adjacency"] = flags.adjacency;
  for (const Line& line : LinesOf(survey)) {
    if (!line.answer) continue;
    Json& entry = json[line.key];
    if (line.answer->finite()) {
      entry["l1"] = line.answer->value().l1.value();
      entry["l2"] = line.answer->value().l2.value();
    } else {
      entry["l1"] = nullptr;
      entry["l2"] = nullptr;
      entry["reason"] = line.answer->reason();
    }
  }
  PrintReport(json);
}

void PrintText(const SensitivitySurvey& survey) {
  std::vector<std::vector<std::string>> rows = {{"sensitivity", "L1", "L2"}};
  std::string reasons;
  for (const Line& line : LinesOf(survey)) {
    if (!line.answer) continue;
    if (line.answer->finite()) {
      rows.push_back({line.words, fmt::format("{:.6g}", line.answer->value().l1.value()),
                      fmt::format("{:.6g}", line.answer->value().l2.value())});
    } else {
      rows.push_back({line.words, "infinite", "infinite"});
      reasons += fmt::format("{}: {}\n", line.words, line.answer->reason());
    }
  }
  std::cout << AlignedTable(rows, 3) << reasons;
  if (survey.local) {
    std::cout << "Noise is scaled to the global sensitivity; the local one is a fact about the "
                 "records.\n";
  }
}

void Run(const SensitivityFlags& flags) {
  const SensitivitySurvey survey = SurveySensitivity(QuestionFrom(flags));
  if (flags.json) {
    PrintJson(flags, survey);
  } else {
    PrintText(survey);
  }
}

}  // namespace

void AddSensitivityCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "sensitivity", "How far a statistic can move when one record changes: global and local.");
  const auto flags = std::make_shared<SensitivityFlags>();
  SensitivityFlags& f = *flags;
  SetChoices(
      *AddValue(*command, "statistic", f.statistic, "NAME", "One of " + OneOf(StatisticNames()))
           ->required(),
      StatisticNames());
  AddValue(*command, "--bounds", f.bounds, "LOW,HIGH", "The range of the records");
  AddValue(*command, "--records", f.records, "N",
           "How many records there are; under add-remove, in the smaller neighbour");
  AddValue(*command, "--adjacency", f.adjacency, "NAME", "add-remove or replace-one")
      ->capture_default_str();
  AddValue(*command, "--bins", f.bins, "N", "Equal bins of a histogram (2)");
  AddValue(*command, "--domain", f.domain, "X,Y,...",
           "The values that a record can have: every dataset of them is tried");
  AddValue(*command, "--example", f.example, "X,Y,...",
           "A made-up dataset whose local sensitivity is wanted; no private data");
  AddValue(*command, "--smooth", f.smooth, "BETA",
           "The smooth sensitivity at the example, which decays by beta for each record");
  command->add_flag("--json", f.json, "One JSON object on standard output");
  command->footer(
      "Examples:\n"
      "  sordino sensitivity mean --bounds 0,120 --records 1000\n"
      "  sordino sensitivity median --bounds 0,1 --domain 0,0.5,1 --example 0,0.5,0.5,0.5,1 \\\n"
      "    --adjacency replace-one --smooth 0.5");
  command->callback([flags] { Run(*flags); });
}

}  // namespace sordino
