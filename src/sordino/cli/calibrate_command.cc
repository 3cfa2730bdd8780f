#include "sordino/cli/calibrate_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/noise_formulas.h"
#include "sordino/accounting/step_calibration.h"
#include "sordino/base/error.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

struct CalibrateOptions {
  EventOptions event;
  std::optional<std::string> delta;
  std::optional<std::string> epsilon;
  bool table = false;
  bool json = false;
};

struct Formula {
  std::string name;
  double noise;
};

std::uint64_t ParseSteps(const std::string& text) {
  const std::uint64_t steps = ParseWhole("--steps", text);
  if (steps == 0) throw Error("--steps is 0, and nothing is released then; give at least 1.");
  return steps;
}

StepQuestion MakeQuestion(const CalibrateOptions& options) {
  const EventOptions& flags = options.event;
  if (!options.epsilon || !options.delta) {
    throw Error(fmt::format("{} is missing; the budget is --epsilon together with --delta.",
                            options.epsilon ? "--delta" : "--epsilon"));
  }
  if (flags.correlation && flags.noise) {
    throw Error(
        "with --noise-correlation the noise is solved for; leave out --noise, or ask `sordino "
        "account` what it spends.");
  }
  const bool unsampled = flags.sampling == "none";
  const bool seeks_rate = flags.noise && flags.steps && !flags.rate && !unsampled;
  const StepUnknown unknown = !flags.noise ? StepUnknown::kNoise
                              : seeks_rate ? StepUnknown::kRate
                                           : StepUnknown::kSteps;
  if (unknown == StepUnknown::kSteps && flags.steps) {
    throw Error(
        "--noise, --steps and the sampling are all given, so nothing is left to solve for; leave "
        "one out, or ask `sordino account` what they spend.");
  }
  if (unknown == StepUnknown::kNoise && !flags.steps && flags.rate) {
    throw Error("--steps is missing; say how many sampled steps the noise must last for.");
  }
  if (unknown == StepUnknown::kRate && flags.sampling == "allocation") {
    throw Error(
        "--rate is missing; random allocation is solved for the noise or for the steps, not for "
        "the number of batches.");
  }
  if (options.table && unknown != StepUnknown::kNoise) {
    throw Error("--table compares noise formulas; leave out --noise to solve for the noise.");
  }
  if (options.table && flags.correlation) {
    throw Error("--table compares formulas for independent noise; leave out --noise-correlation.");
  }
  StepQuestion question{unknown,
                        ShapeOf(flags, flags.rate || seeks_rate),
                        {Epsilon(ParseReal("--epsilon", *options.epsilon)),
                         Delta(ParseReal("--delta", *options.delta))},
                        {},
                        {},
                        {}};
  if (flags.noise) question.noise = NoiseMultiplier(ParseReal("--noise", *flags.noise));
  if (flags.rate) question.rate = SamplingRate(ParseReal("--rate", *flags.rate));
  if (flags.steps) question.steps = ParseSteps(*flags.steps);
  if (unknown == StepUnknown::kNoise && !flags.steps) question.steps = 1;
  question.select = flags.select;
  return question;
}

// The formulas of the lecture notes are about Gaussian noise and need a budget inside the open
// range.
bool FormulasApply(const StepQuestion& question) {
  return question.unknown == StepUnknown::kNoise && !AnyNoiseMeets(question) && !question.select &&
         question.shape.mechanism == Mechanism::kGaussian && !question.shape.matrix &&
         question.RateOrOne().value() > 0 && question.budget.epsilon.value() > 0 &&
         question.budget.delta.value() > 0 && question.budget.delta.value() < 1 &&
         // Where fewer visits than this are expected, the basic formula is the root of a negative
         // number.
         1.25 * question.RateOrOne().value() > question.budget.delta.value();
}

std::vector<Formula> Formulas(const StepQuestion& question) {
  if (!FormulasApply(question)) return {};
  const SamplingRate rate = question.RateOrOne();
  const auto [epsilon, delta] = question.budget;
  return {{"basic", BasicNoise(rate, *question.steps, epsilon, delta)},
          {"advanced", AdvancedNoise(rate, *question.steps, epsilon, delta)},
          {"moments", MomentsNoise(rate, *question.steps, epsilon, delta)}};
}

// One row for each power of ten below the number of steps, and one for the number itself.
std::vector<NoiseFormulaRow> Table(const StepQuestion& question, const StepAnswer& answer) {
  if (!FormulasApply(question)) {
    throw Error(
        "--table compares formulas for Gaussian noise without --select; they need a rate well "
        "above delta, an epsilon above 0 and a delta between 0 and 1.");
  }
  std::vector<std::uint64_t> steps;
  for (std::uint64_t t = 1; t < *question.steps; t *= 10) steps.push_back(t);
  steps.push_back(*question.steps);
  return NoiseFormulaTable(question.RateOrOne(), question.budget.epsilon, question.budget.delta,
                           steps, [&](std::uint64_t t) {
                             if (t == *question.steps) return answer.value;
                             const auto found = LeastNoise(question, t);
                             return found ? found->noise.value() : kInfinity;
                           });
}

const char* UnknownKey(StepUnknown unknown) {
  switch (unknown) {
    case StepUnknown::kNoise:
      return "noise_multiplier";
    case StepUnknown::kSteps:
      return "steps";
    case StepUnknown::kRate:
      break;
  }
  return "sampling_rate";
}

void PrintJson(const StepQuestion& question, const StepAnswer& answer,
               const std::vector<NoiseFormulaRow>& table) {
  const char* key = UnknownKey(question.unknown);
  Json json = NewReport();
  json[key] = question.unknown == StepUnknown::kSteps
                  ? Json(static_cast<std::uint64_t>(answer.value))
                  : Json(answer.value);
  json["epsilon"] = IntervalJson(answer.epsilon);
  json["solved_for"] = key;
  json["budget"] = {{"epsilon", question.budget.epsilon.value()},
                    {"delta", question.budget.delta.value()}};
  if (answer.at_the_end) json["search_ended"] = true;
  if (answer.event) {
    json["event"] = answer.event->ToString();
    if (const std::string note = UnitNote(*answer.event); !note.empty()) json["unit"] = note;
  } else {
    json["any_noise"] = true;
    json["takes_part"] = TakesPart(question);
  }
  for (const Formula& formula : Formulas(question)) json["formulas"][formula.name] = formula.noise;
  for (const NoiseFormulaRow& row : table) {
    json["table"].push_back({{"steps", row.steps},
                             {"basic", row.basic},
                             {"advanced", row.advanced},
                             {"moments", row.moments},
                             {"exact", NumberJson(row.exact)},
                             {"advanced_over_basic", row.advanced_over_basic},
                             {"ratio_times_sqrt_steps", row.ratio_times_sqrt_steps},
                             {"moments_over_basic", row.moments_over_basic}});
  }
  PrintReport(json);
}

std::string Headline(const StepQuestion& question, const StepAnswer& answer) {
  const std::string budget = fmt::format(
      "epsilon {:g} at delta {:g}", question.budget.epsilon.value(), question.budget.delta.value());
  switch (question.unknown) {
    case StepUnknown::kNoise:
      if (!answer.event) {
        return fmt::format(
            "Solved for the noise: every noise meets {}, even none: a record takes part in a step "
            "with a probability of at most {:.4g}, which delta covers. Whoever is drawn is not "
            "protected.",
            budget, TakesPart(question));
      }
      if (answer.at_the_end) {
        return fmt::format(
            "Solved for the noise: {} meets {}; less noise may meet it too, but the search ends "
            "here.",
            UpperText(answer.value), budget);
      }
      return fmt::format("Solved for the noise: a multiplier of {} is the least that meets {}.",
                         UpperText(answer.value), budget);
    case StepUnknown::kSteps:
      return fmt::format("Solved for the steps: {} {} {}{}.",
                         static_cast<std::uint64_t>(answer.value),
                         answer.at_the_end ? "meet" : "is the most that meets", budget,
                         answer.at_the_end ? ", and so may more; the search ends here" : "");
    case StepUnknown::kRate:
      break;
  }
  return answer.at_the_end
             ? fmt::format(
                   "Solved for the sampling rate: even 1, every record in every batch, "
                   "meets {}.",
                   budget)
             : fmt::format("Solved for the sampling rate: {} is the largest that meets {}.",
                           LowerText(answer.value), budget);
}

// What to do with the answer.
std::string NextText(const StepQuestion& question, const StepAnswer& answer) {
  if (!answer.event) {
    return "Next: ask again with a delta well below one over the number of records.";
  }
  const StepShape& shape = question.shape;
  if (shape.mechanism != Mechanism::kGaussian || shape.sampling == Sampling::kNone ||
      shape.matrix || question.select) {
    return "Next: before the release, 'sordino ledger charge FILE --event EVENT --note TEXT' with "
           "the event above charges the ledger of the data.";
  }
  const auto of = [&](StepUnknown unknown, double given) {
    return question.unknown == unknown ? answer.value : given;
  };
  std::string flags =
      fmt::format("--noise {} --rate {} --steps {} --delta {:g}",
                  of(StepUnknown::kNoise, question.noise ? question.noise->value() : 0),
                  of(StepUnknown::kRate, question.RateOrOne().value()),
                  static_cast<std::uint64_t>(
                      of(StepUnknown::kSteps, static_cast<double>(question.steps.value_or(0)))),
                  question.budget.delta.value());
  if (shape.sampling != Sampling::kPoisson) {
    flags +=
        fmt::format(" --sampling {}", kSamplingNames[static_cast<std::size_t>(shape.sampling)]);
  }
  if (shape.adjacency != Adjacency::kAddRemove) {
    flags += fmt::format(" --adjacency {}", AdjacencyName(shape.adjacency));
  }
  return fmt::format("Next: 'sordino train --data FILE {}' trains with it.", flags);
}

void PrintText(const StepQuestion& question, const StepAnswer& answer,
               const std::vector<NoiseFormulaRow>& table) {
  std::string text = Headline(question, answer) + '\n';
  if (answer.event) {
    text += fmt::format("There epsilon is certified to lie between {} and {}.\n",
                        LowerText(answer.epsilon.lower), UpperText(answer.epsilon.upper));
    text += answer.event->ToString() + '\n';
    if (const std::string note = UnitNote(*answer.event); !note.empty()) text += note + '\n';
  }

  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  if (const std::vector<Formula> formulas = Formulas(question); !formulas.empty()) {
    text += "\nclosed-form noise beside it (rules of thumb, not guarantees)\n";
    std::vector<std::vector<std::string>> rows = {{"formula", "noise", "over exact"}};
    for (const Formula& formula : formulas) {
      rows.push_back({formula.name, number(formula.noise), number(formula.noise / answer.value)});
    }
    text += AlignedTable(rows, 3);
  }
  if (!table.empty()) {
    text += "\nhow the noise grows with the number of steps T\n";
    std::vector<std::vector<std::string>> rows = {{"T", "basic", "advanced", "moments", "exact",
                                                   "advanced/basic", "times sqrt(T)",
                                                   "moments/basic"}};
    for (const NoiseFormulaRow& row : table) {
      rows.push_back({fmt::format("{}", row.steps), number(row.basic), number(row.advanced),
                      number(row.moments), number(row.exact), number(row.advanced_over_basic),
                      number(row.ratio_times_sqrt_steps), number(row.moments_over_basic)});
    }
    text += AlignedTable(rows, 8);
  }
  std::cout << text << '\n' << NextText(question, answer) << '\n';
}

void Run(const CalibrateOptions& options) {
  const StepQuestion question = MakeQuestion(options);
  const std::optional<StepAnswer> answer = SolveStep(question);
  if (!answer) throw Error(WhyNothingMeets(question));
  const std::vector<NoiseFormulaRow> table =
      options.table ? Table(question, *answer) : std::vector<NoiseFormulaRow>();
  if (options.json) {
    PrintJson(question, *answer, table);
  } else {
    PrintText(question, *answer, table);
  }
}

}  // namespace

void AddCalibrateCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "The noise, the number of steps or the sampling rate that a budget allows.");
  const auto options = std::make_shared<CalibrateOptions>();
  CalibrateOptions& o = *options;
  AddEventFlags(*command, o.event);
  AddValue(*command, "--epsilon", o.epsilon, "NUMBER", "The epsilon that may be spent");
  AddValue(*command, "--delta", o.delta, "0..1", "The delta that may be spent");
  command->add_flag("--table", o.table, "The closed-form noise formulas for growing steps");
  command->add_flag("--json", o.json, "One JSON object on standard output");
  command->footer(
      "Solves for what is left out: --noise, else --steps, else --rate.\n"
      "Example:\n  sordino calibrate --rate 0.01 --steps 10000 --epsilon 1 --delta 1e-5");
  command->callback([options] { Run(*options); });
}

}  // namespace sordino
