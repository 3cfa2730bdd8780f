#include "sordino/cli/plan_clipping_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"
#include "sordino/theory/clipped_flow.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxFlowProblems = 100'000;
constexpr const char* kAllFlowClippings = "all";
// Times at which flows are looked at: 0, and so many in equal ratios up to the last.
constexpr int kFlowTimes = 30;
constexpr double kFirstFlowTime = 0.1;

struct FlowFlags {
  std::string problem = std::string(FlowProblemNames().front());
  std::string clipping = kAllFlowClippings;
  std::string problems = "200";
  std::string seed = "1";
  std::string clip = fmt::format("{}", FlowClipping().clip);
  std::string threshold = fmt::format("{}", FlowClipping().threshold);
  std::string scale = "3";
  std::string time = "500";
  bool json = false;
};

// Shares of the problems.
struct FlowShares {
  std::string_view clipping;
  double symmetric = 0;
  double positive = 0;
  double monotone = 0;
  double zero = 0;
  double stopped = 0;
  double largest_rise = 0;   // of all problems, over the loss of the start
  std::vector<double> loss;  // mean over the problems, over that of the start
};

std::vector<std::string_view> FlowClippingsOf(const std::string& name) {
  const auto known = FlowClippings();
  if (name == kAllFlowClippings) return {known.begin(), known.end()};
  std::vector<std::string_view> choices = {kAllFlowClippings};
  choices.insert(choices.end(), known.begin(), known.end());
  return {choices[IndexOfName("--clipping", name, choices)]};
}

std::vector<double> FlowTimes(double last) {
  CheckRange("--time", last, kFirstFlowTime, true, 1e6, false);
  std::vector<double> times = {0};
  for (int i = 0; i <= kFlowTimes; ++i) {
    times.push_back(kFirstFlowTime * std::pow(last / kFirstFlowTime, i / double{kFlowTimes}));
  }
  times.back() = last;
  return times;
}

// The same problems for every clipping: they are drawn from the seed alone.
FlowShares SharesOf(const FlowFlags& flags, const FlowClipping& clipping, std::uint64_t problems,
                    const std::vector<double>& times) {
  std::mt19937_64 random(ParseWhole("--seed", flags.seed));
  const double scale = ParseReal("--scale", flags.scale);
  FlowShares shares{.clipping = clipping.name, .loss = std::vector<double>(times.size(), 0.0)};
  for (std::uint64_t i = 0; i < problems; ++i) {
    const FlowOutcome outcome =
        FollowFlow(*DrawFlowProblem(flags.problem, scale, random), clipping, times);
    shares.symmetric += outcome.IsSymmetric() ? 1 : 0;
    shares.positive += outcome.HasPositiveForm() ? 1 : 0;
    shares.monotone += outcome.rises ? 0 : 1;
    shares.zero += outcome.ReachesZero() ? 1 : 0;
    shares.stopped += outcome.Stops() ? 1 : 0;
    shares.largest_rise = std::max(shares.largest_rise, outcome.largest_rise);
    for (std::size_t t = 0; t < times.size(); ++t) shares.loss[t] += outcome.losses[t];
  }
  const auto count = static_cast<double>(problems);
  for (double* const sum :
       {&shares.symmetric, &shares.positive, &shares.monotone, &shares.zero, &shares.stopped}) {
    *sum /= count;
  }
  for (double& loss : shares.loss) loss /= count;
  return shares;
}

void PrintFlowJson(const FlowFlags& flags, const std::vector<double>& times,
                   const std::vector<FlowShares>& all) {
  Json json = NewReport();
  json["problem"] = flags.problem;
  json["times"] = times;
  for (const FlowShares& shares : all) {
    json["clippings"].push_back({{"clipping", shares.clipping},
                                 {"symmetric", shares.symmetric},
                                 {"positive_form", shares.positive},
                                 {"monotone", shares.monotone},
                                 {"reaches_zero", shares.zero},
                                 {"stops_above_zero", shares.stopped},
                                 {"largest_rise", shares.largest_rise},
                                 {"loss", shares.loss}});
  }
  PrintReport(json);
}

void PrintFlowText(const FlowFlags& flags, std::uint64_t problems,
                   const std::vector<FlowShares>& all) {
  const auto share = [](double value) { return fmt::format("{:.1f} %", 100 * value); };
  std::vector<std::vector<std::string>> rows = {{"clipping", "symmetric", "positive",
                                                 "falls always", "to 0", "stops above 0",
                                                 "largest rise", "loss at the end"}};
  for (const FlowShares& shares : all) {
    rows.push_back({std::string(shares.clipping), share(shares.symmetric), share(shares.positive),
                    share(shares.monotone), share(shares.zero), share(shares.stopped),
                    share(shares.largest_rise), fmt::format("{:.3g}", shares.loss.back())});
  }
  std::cout << fmt::format(
                   "{} gradient flows of '{}', until time {}; losses over that of the start\n",
                   problems, flags.problem, flags.time)
            << AlignedTable(rows, 8)
            << "\nNext: 'sordino kernel DATA --clipping all' asks the same of your own model, on "
               "public data.\n";
}

void PlanClipping(const FlowFlags& flags) {
  const std::uint64_t problems = ParseWhole("--problems", flags.problems);
  if (problems < 1 || problems > kMaxFlowProblems) {
    throw Error(
        fmt::format("--problems is {}; give a number from 1 to {}.", problems, kMaxFlowProblems));
  }
  IndexOfName("--problem", flags.problem, FlowProblemNames());
  const std::vector<double> times = FlowTimes(ParseReal("--time", flags.time));
  std::vector<FlowShares> all;
  for (const std::string_view name : FlowClippingsOf(flags.clipping)) {
    const FlowClipping clipping{.name = name,
                                .clip = ParseReal("--clip", flags.clip),
                                .threshold = ParseReal("--threshold", flags.threshold)};
    all.push_back(SharesOf(flags, clipping, problems, times));
  }
  if (flags.json) {
    PrintFlowJson(flags, times, all);
  } else {
    PrintFlowText(flags, problems, all);
  }
}

}  // namespace

void AddPlanClippingCommand(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand(
      "clipping",
      "Whether the loss falls to 0 under each way to clip, by flows of drawn problems.");
  const auto flags = std::make_shared<FlowFlags>();
  FlowFlags& f = *flags;
  SetChoices(*AddValue(*command, "--problem", f.problem, "NAME",
                       "fixed-kernel, or network for a small one that learns")
                  ->capture_default_str(),
             FlowProblemNames());
  AddValue(*command, "--clipping", f.clipping, "NAME", "One of those of the table, or all")
      ->capture_default_str();
  AddValue(*command, "--problems", f.problems, "N", "Problems that are drawn")
      ->capture_default_str();
  AddValue(*command, "--seed", f.seed, "N", "Of the problems")->capture_default_str();
  AddValue(*command, "--clip", f.clip, "X", "The clipping norm C")->capture_default_str();
  AddValue(*command, "--threshold", f.threshold, "X", "The threshold of global-declared")
      ->capture_default_str();
  AddValue(*command, "--scale", f.scale, "X", "Of the targets")->capture_default_str();
  AddValue(*command, "--time", f.time, "X", "Where flows end")->capture_default_str();
  command->add_flag("--json", f.json, "One JSON object on standard output");
  command->footer("Example:\n  sordino plan clipping --problem fixed-kernel --problems 100");
  command->callback([flags] { PlanClipping(*flags); });
}

}  // namespace sordino
