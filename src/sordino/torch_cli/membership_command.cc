#include "sordino/torch_cli/membership_command.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/tradeoff.h"
#include "sordino/audit/membership.h"
#include "sordino/audit/shadow_models.h"
#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/lower_bounds/two_worlds.h"
#include "sordino/report/roc_picture.h"
#include "sordino/runs/run_folder.h"
#include "sordino/tables/text_file.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/run_data.h"
#include "sordino/torch_cli/train_options.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<double, 4> kFalseRates = {0.1, 0.01, 0.001, 0.0001};
constexpr double kSignificance = 0.05;
constexpr int kLimitLines = 24;
constexpr std::size_t kCurvePoints = 500;  // of a curve in JSON

struct MembershipOptions {
  std::string run;
  std::string members;
  std::string others;
  std::string labels;
  std::string other_labels;
  std::string shadows_text = "0";
  std::string show_records_text = "0";
  std::int64_t shadows = 0;
  std::int64_t show_records = 0;
  std::string device = "cpu";
  std::optional<std::string> picture;
  bool force = false;
  bool json = false;
  bool show_private = false;
  TrainFlags data;
};

const Setting& SettingOf(std::string_view key) {
  const auto all = TrainSettings();
  return *std::find_if(all.begin(), all.end(), [&](const Setting& setting) {
    return setting.section == "data" && setting.key == key;
  });
}

// The data of a side, with the flags that both have.
DataRequest SideOf(const MembershipOptions& options, const TrainedRun& run,
                   const std::string& source, const std::string& labels) {
  std::vector<GivenFlag> flags = options.data.Given();
  flags.push_back({&SettingOf("source"), {source}});
  if (!labels.empty()) flags.push_back({&SettingOf("labels"), {labels}});
  return RequestLike(run, flags, "there are no records; give --members and --others.");
}

Dataset Records(const TrainedRun& run, const DataRequest& request, const char* flag) {
  Dataset data = OpenForPrediction(request);
  CheckRecordsFit(run, data);
  if (!data.labels.defined() || data.size() == 0) {
    throw Error(fmt::format("the records of {} have no {}; give a file with both.", flag,
                            data.labels.defined() ? "rows" : "labels"));
  }
  return data;
}

Dataset Joined(const Dataset& members, const Dataset& others) {
  Dataset all = members;
  all.inputs = at::cat({members.inputs, others.inputs});
  all.labels = at::cat({members.labels, others.labels});
  all.ids.clear();
  return all;
}

// What the run claims; nothing where it is not private.
std::optional<Event> ClaimOf(const std::filesystem::path& folder, const TrainedRun& run) {
  if (!run.is_private) return std::nullopt;
  const std::string text =
      ReadTextFile((folder / "event.txt").string(), "give the folder as 'sordino train' left it");
  return Event::Parse(text.substr(0, text.find('\n')));
}

struct Attack {
  std::string name;
  TwoWorlds worlds;
  std::vector<double> scores;  // members first
};

struct Findings {
  std::int64_t members = 0;
  std::int64_t others = 0;
  std::vector<Attack> attacks;
  std::size_t best = 0;                                     // by area
  std::vector<std::pair<std::string, double>> class_areas;  // of the best
  bool is_private = false;
  std::vector<PrivacyLine> claim;  // empty too where the event has no known limit

  double Limit(double false_rate) const { return 1 - ProfileTradeoff(claim, false_rate); }
};

TwoWorlds WorldsOf(const std::vector<double>& scores, std::int64_t members) {
  const auto split = scores.begin() + members;
  return {std::vector<double>(scores.begin(), split), std::vector<double>(split, scores.end())};
}

// Of classes that have members and others.
std::vector<std::pair<std::string, double>> ClassAreas(const Attack& attack, const Dataset& all,
                                                       std::int64_t members) {
  std::vector<std::pair<std::string, double>> areas;
  const at::Tensor labels = all.labels.contiguous();
  for (std::int64_t k = 0; k < all.declaration.classes; ++k) {
    std::vector<double> in;
    std::vector<double> out;
    for (std::int64_t i = 0; i < all.size(); ++i) {
      if (labels.const_data_ptr<std::int64_t>()[i] != k) continue;
      (i < members ? in : out).push_back(attack.scores[static_cast<std::size_t>(i)]);
    }
    if (in.empty() || out.empty()) continue;
    const auto index = static_cast<std::size_t>(k);
    areas.emplace_back(index < all.declaration.class_names.size()
                           ? all.declaration.class_names[index]
                           : fmt::format("{}", k),
                       TwoWorlds(std::move(in), std::move(out)).Area(kSignificance).value);
  }
  return areas;
}

Findings Attacked(const MembershipOptions& options, const TrainedRun& run, const Dataset& members,
                  const Dataset& others, const std::optional<Event>& claim) {
  const c10::Device device = ParseDevice(options.device);
  const Dataset all = Joined(members, others);
  ShadowConfidences shadows;
  if (options.shadows > 0) {
    Progress progress("shadows", 1000);
    shadows = TrainShadows(run, all,
                           {.shadows = options.shadows,
                            .device = device,
                            .seed = std::nullopt,
                            .progress = [&](double share) {
                              progress.Update(static_cast<std::uint64_t>(1000 * share));
                            }});
    progress.Finish();
  }
  const at::Tensor is_other = at::arange(all.size()) >= members.size();
  Findings findings;
  findings.members = members.size();
  findings.others = others.size();
  for (AttackScores& attack :
       MembershipScores(ConfidencesOf(*run.model, all, device), shadows, is_other)) {
    findings.attacks.push_back({.name = attack.attack,
                                .worlds = WorldsOf(attack.scores, members.size()),
                                .scores = std::move(attack.scores)});
  }
  const auto area = [&](std::size_t i) {
    return findings.attacks[i].worlds.Area(kSignificance).value;
  };
  for (std::size_t i = 1; i < findings.attacks.size(); ++i) {
    if (area(i) > area(findings.best)) findings.best = i;
  }
  findings.class_areas = ClassAreas(findings.attacks[findings.best], all, members.size());
  findings.is_private = claim.has_value();
  if (claim) findings.claim = PrivacyProfile(*claim, kLimitLines);
  return findings;
}

// The members that the best attack is surest of: their places in the file, from 1.
std::vector<std::int64_t> MostExposed(const Findings& findings, std::int64_t count) {
  const std::vector<double>& scores = findings.attacks[findings.best].scores;
  std::vector<std::int64_t> order(static_cast<std::size_t>(findings.members));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(std::min(count, findings.members)));
  for (std::int64_t& place : order) ++place;
  return order;
}

// At most so many of the points of a curve, its ends among them.
Json CurveJson(const std::vector<std::pair<double, double>>& curve) {
  Json json = Json::array();
  const std::size_t stride = curve.size() / kCurvePoints + 1;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (i % stride == 0 || i + 1 == curve.size()) json.push_back({curve[i].first, curve[i].second});
  }
  return json;
}

// False positive rates close to 0 in logarithmic steps, which is where attacks count.
std::vector<double> CurveRates() {
  std::vector<double> rates;
  for (int i = -40; i <= 0; ++i) rates.push_back(std::pow(10, i / 10.0));
  return rates;
}

Json LimitCurveJson(const Findings& findings) {
  Json json = Json::array({{0.0, findings.Limit(0)}});
  for (const double rate : CurveRates()) json.push_back({rate, findings.Limit(rate)});
  return json;
}

// True positive rates at CurveRates(): what curves of several runs are averaged at.
Json TrueRatesJson(const TwoWorlds& worlds) {
  Json json = Json::array();
  for (const double rate : CurveRates()) {
    json.push_back(worlds.TruePositiveRate(rate, kSignificance).value);
  }
  return json;
}

void PrintFindingsJson(const MembershipOptions& options, const Findings& findings) {
  Json json = NewReport();
  json["run"] = options.run;
  json["members"] = findings.members;
  json["others"] = findings.others;
  json["shadows"] = options.shadows;
  json["confidence"] = 1 - kSignificance;
  json["false_rates"] = CurveRates();
  for (const Attack& attack : findings.attacks) {
    Json& entry = json["attacks"][attack.name];
    entry["auc"] = EstimateJson(attack.worlds.Area(kSignificance));
    for (const double rate : kFalseRates) {
      entry["tpr"][fmt::format("{:g}", rate)] =
          EstimateJson(attack.worlds.TruePositiveRate(rate, kSignificance));
    }
    entry["roc"] = CurveJson(attack.worlds.Curve());
    entry["true_rates"] = TrueRatesJson(attack.worlds);
  }
  json["best"] = findings.attacks[findings.best].name;
  json["classes"] = Json::object();
  for (const auto& [name, area] : findings.class_areas) json["classes"][name] = area;
  json["limit"] = nullptr;
  json["limit_rates"] = nullptr;
  if (!findings.claim.empty()) {
    json["limit"] = Json::object();
    for (const double rate : kFalseRates) {
      json["limit"][fmt::format("{:g}", rate)] = findings.Limit(rate);
    }
    json["limit_roc"] = LimitCurveJson(findings);
    json["limit_rates"] = Json::array();
    for (const double rate : CurveRates()) json["limit_rates"].push_back(findings.Limit(rate));
  }
  if (options.show_records > 0) {
    json["most_exposed"] = MostExposed(findings, options.show_records);
  }
  PrintReport(json);
}

// Whether some rate of an attack is above what the claim allows by more than chance: all rates
// together with the probability 1 - kSignificance.
bool IsAboveTheClaim(const Findings& findings) {
  const auto rates = static_cast<double>(findings.attacks.size() * kFalseRates.size());
  return std::any_of(findings.attacks.begin(), findings.attacks.end(), [&](const Attack& attack) {
    return std::any_of(kFalseRates.begin(), kFalseRates.end(), [&](double rate) {
      return attack.worlds.TruePositiveRate(rate, kSignificance / rates).lower >
             findings.Limit(rate);
    });
  });
}

// What to do with the findings.
std::string AfterAttacks(const Findings& findings) {
  if (findings.is_private) {
    if (findings.claim.empty()) {
      return "Next: what the claim of the run allows is not known at these rates, so judge by the "
             "areas; keep this table to yourself.";
    }
    return IsAboveTheClaim(findings)
               ? "Next: an attack is above what the claim of the run allows, by more than chance: "
                 "do not release the model before you know why, and begin with 'sordino audit "
                 "self'."
               : "Next: no attack is above what the claim of the run allows by more than chance, "
                 "so "
                 "nothing here speaks against releasing the model; keep this table to yourself.";
  }
  const bool tells = findings.attacks[findings.best].worlds.Area(kSignificance).lower > 0.5;
  return fmt::format(
      "Next: the run is not private{}; train with --epsilon before the model leaves your hands.",
      tells ? ", and members are told from others" : "");
}

void PrintFindings(const MembershipOptions& options, const Findings& findings) {
  std::vector<std::vector<std::string>> rows = {
      {"attack", "area", "from", "to", "true at 10 %", "1 %", "0.1 %", "0.01 % false"}};
  const auto share = [](double value) { return fmt::format("{:.2f} %", 100 * value); };
  for (const Attack& attack : findings.attacks) {
    const Estimate area = attack.worlds.Area(kSignificance);
    std::vector<std::string> row = {attack.name, fmt::format("{:.4f}", area.value),
                                    fmt::format("{:.4f}", area.lower),
                                    fmt::format("{:.4f}", area.upper)};
    for (const double rate : kFalseRates) {
      row.push_back(share(attack.worlds.TruePositiveRate(rate, kSignificance).value));
    }
    rows.push_back(std::move(row));
  }
  if (!findings.claim.empty()) {
    std::vector<std::string> row = {"limit of the claim", "", "", ""};
    for (const double rate : kFalseRates) row.push_back(share(findings.Limit(rate)));
    rows.push_back(std::move(row));
  }
  std::cout << AlignedTable(rows, 8);
  if (options.show_records > 0) {
    std::string places;
    for (const std::int64_t place : MostExposed(findings, options.show_records)) {
      places += fmt::format("{}{}", places.empty() ? "" : ", ", place);
    }
    std::cout << fmt::format("\nmost exposed members, by their place in the file: {}\n", places);
  }
  std::cout << '\n' << AfterAttacks(findings) << '\n';
}

std::string FindingsSvg(const Findings& findings, const std::optional<Event>& claim) {
  RocPicture picture;
  picture.title = "How well members are told from others";
  picture.caption =
      claim ? "shaded: what the event of the run allows" : "the run was trained without privacy";
  picture.claim = findings.claim;
  for (const Attack& attack : findings.attacks) {
    picture.curves.push_back({attack.name, attack.worlds.Curve()});
  }
  return RocSvg(picture);
}

void Run(MembershipOptions options) {
  options.shadows = static_cast<std::int64_t>(ParseWhole("--shadows", options.shadows_text));
  options.show_records =
      static_cast<std::int64_t>(ParseWhole("--show-records", options.show_records_text));
  const TrainedRun run = OpenRun(options.run, ParseDevice(options.device));
  if (run.data.target) {
    throw Error("the model of the run predicts a number, and membership is told from classes.");
  }
  const DataRequest members = SideOf(options, run, options.members, options.labels);
  const DataRequest others = SideOf(options, run, options.others, options.other_labels);
  std::optional<OutputFile> picture;
  if (options.picture) {
    std::vector<std::filesystem::path> inputs;
    for (const DataRequest* request : {&members, &others}) {
      for (const DataFile& file : FilesOf(*request)) inputs.emplace_back(file.path);
    }
    picture.emplace(OutputRequest{"--picture", *options.picture, kSvgPicture, options.force},
                    inputs);
  }
  const std::optional<Event> claim = ClaimOf(options.run, run);
  const Findings findings = Attacked(options, run, Records(run, members, "--members"),
                                     Records(run, others, "--others"), claim);
  std::cerr << "sordino: what follows was computed from the records without noise; it is as "
               "private as they are.\n";
  if (picture) picture->Write(FindingsSvg(findings, claim));
  if (options.json) {
    PrintFindingsJson(options, findings);
  } else {
    PrintFindings(options, findings);
  }
}

}  // namespace

void AddMembershipCommand(CLI::App& app) {
  CLI::App* command = app.get_subcommand("audit")->add_subcommand(
      "membership", TorchCommandSummary("audit membership"));
  const auto options = std::make_shared<MembershipOptions>();
  MembershipOptions& o = *options;
  command->add_option("run", o.run, "The folder of a run of 'sordino train'")
      ->type_name("FOLDER")
      ->required();
  command->add_option("--members", o.members, "Records that the model was trained on")
      ->type_name("FILE")
      ->required();
  command->add_option("--others", o.others, "Records of the same kind that it was not trained on")
      ->type_name("FILE")
      ->required();
  command->add_option("--labels", o.labels, "Labels of the members, where they are in a file")
      ->type_name("FILE");
  command->add_option("--other-labels", o.other_labels, "Labels of the others, likewise")
      ->type_name("FILE");
  command
      ->add_option("--shadows", o.shadows_text,
                   "Models to train for comparison, an even number from 4; 0 for none")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--show-records", o.show_records_text,
                   "Name so many members that are most exposed")
      ->type_name("N");
  command->add_option("--device", o.device, "cpu, cuda or cuda:N")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--picture", o.picture, "Draw true against false positive rates to this file")
      ->type_name("FILE");
  AddForceFlag(*command, o.force);
  command->add_flag("--json", o.json, "One JSON object on standard output");
  AddShowPrivate(*command, o.show_private);
  o.data.AddTo(*command, [](const Setting& setting) {
    return setting.section == "data" && setting.key.rfind("test", 0) != 0 &&
           setting.key != "source" && setting.key != "labels" && setting.key != "records";
  });
  command->footer(
      "Example:\n  sordino audit membership runs/patients --members train.csv --others "
      "held-out.csv "
      "--shadows 16");
  command->callback([options] { ReportErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
