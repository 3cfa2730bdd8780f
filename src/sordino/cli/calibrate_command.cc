#include "sordino/cli/calibrate_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/noise_formulas.h"
#include "sordino/base/error.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// CalibrateSteps doubles up to 10^12; an answer as large as this one was not bounded by the budget.
constexpr std::uint64_t kUnboundedSteps = std::uint64_t{1} << 39;
// CalibrateNoise stops looking for less noise near 1e-4.
constexpr double kMinNoise = 3e-4;

struct CalibrateOptions {
  EventOptions event;
  std::optional<std::string> delta;
  std::optional<std::string> epsilon;
  bool table = false;
  bool json = false;
};

enum class Unknown : std::uint8_t { kNoise, kSteps, kRate };

struct AskedBudget {
  Epsilon epsilon;
  Delta delta;
};

struct Question {
  Unknown unknown;
  StepShape shape;
  AskedBudget budget;
  std::optional<NoiseMultiplier> noise;
  std::optional<SamplingRate> rate;
  std::optional<std::uint64_t> steps;

  Event EventAt(NoiseMultiplier at_noise, SamplingRate at_rate, std::uint64_t at_steps) const {
    return Event::Repeat(shape.Step(at_noise, at_rate), shape.CountOf(at_steps, at_rate));
  }
  // Where nothing is sampled, every record enters every step.
  SamplingRate RateOrOne() const { return rate.value_or(SamplingRate(1)); }
};

struct CalibrationAnswer {
  double value;     // the noise multiplier, the number of steps or the rate
  bool at_the_end;  // the search ended before the budget did
  Interval epsilon;
  std::optional<Event> event;  // nothing where no noise is needed
};

// An upper bound on the probability that one record takes part in any of the steps.
double TakesPart(const Question& question) {
  const bool is_drawn =
      question.shape.sampling == Sampling::kPoisson || question.shape.sampling == Sampling::kFixed;
  const double rate = question.RateOrOne().value();
  if (!is_drawn || rate == 1) return 1;
  constexpr double kRounding = 1e-12;
  const double steps = static_cast<double>(*question.steps);
  return std::min(1.0, -std::expm1(steps * std::log1p(-rate)) * (1 + kRounding));
}

// Where the record is in no batch, neighbouring datasets release the same, so what is released
// differs with a probability of at most TakesPart, whatever the noise: any noise, and none, is
// (0, delta)-DP for a delta from there on.
bool AnyNoiseMeets(const Question& question) {
  return question.unknown == Unknown::kNoise &&
         TakesPart(question) <= question.budget.delta.value();
}

struct Formula {
  std::string name;
  double noise;
};

std::uint64_t ParseSteps(const std::string& text) {
  const std::uint64_t steps = ParseWhole("--steps", text);
  if (steps == 0) throw Error("--steps is 0, and nothing is released then; give at least 1.");
  return steps;
}

Question MakeQuestion(const CalibrateOptions& options) {
  const EventOptions& flags = options.event;
  if (!options.epsilon || !options.delta) {
    throw Error(fmt::format("{} is missing; the budget is --epsilon together with --delta.",
                            options.epsilon ? "--delta" : "--epsilon"));
  }
  const bool unsampled = flags.sampling == "none";
  const bool seeks_rate = flags.noise && flags.steps && !flags.rate && !unsampled;
  const Unknown unknown = !flags.noise ? Unknown::kNoise
                          : seeks_rate ? Unknown::kRate
                                       : Unknown::kSteps;
  if (unknown == Unknown::kSteps && flags.steps) {
    throw Error(
        "--noise, --steps and the sampling are all given, so nothing is left to solve for; leave "
        "one out, or ask `sordino account` what they spend.");
  }
  if (unknown == Unknown::kNoise && !flags.steps && flags.rate) {
    throw Error("--steps is missing; say how many sampled steps the noise must last for.");
  }
  if (unknown == Unknown::kRate && flags.sampling == "allocation") {
    throw Error(
        "--rate is missing; random allocation is solved for the noise or for the steps, not for "
        "the number of batches.");
  }
  if (options.table && unknown != Unknown::kNoise) {
    throw Error("--table compares noise formulas; leave out --noise to solve for the noise.");
  }
  Question question{unknown,
                    ShapeOf(flags, flags.rate || seeks_rate),
                    {Epsilon(ParseReal("--epsilon", *options.epsilon)),
                     Delta(ParseReal("--delta", *options.delta))},
                    {},
                    {},
                    {}};
  if (flags.noise) question.noise = NoiseMultiplier(ParseReal("--noise", *flags.noise));
  if (flags.rate) question.rate = SamplingRate(ParseReal("--rate", *flags.rate));
  if (flags.steps) question.steps = ParseSteps(*flags.steps);
  if (unknown == Unknown::kNoise && !flags.steps) question.steps = 1;
  return question;
}

std::optional<NoiseCalibration> LeastNoise(const Question& question, std::uint64_t steps) {
  return CalibrateNoise(
      [&](NoiseMultiplier noise) { return question.EventAt(noise, question.RateOrOne(), steps); },
      question.budget.epsilon, question.budget.delta);
}

std::optional<CalibrationAnswer> Solve(const Question& question) {
  const AskedBudget& budget = question.budget;
  if (AnyNoiseMeets(question)) return CalibrationAnswer{0, false, {0, 0}, std::nullopt};
  switch (question.unknown) {
    case Unknown::kNoise:
      if (const auto found = LeastNoise(question, *question.steps)) {
        return CalibrationAnswer{
            found->noise.value(), found->noise.value() < kMinNoise, found->epsilon,
            question.EventAt(found->noise, question.RateOrOne(), *question.steps)};
      }
      break;
    case Unknown::kSteps:
      if (const auto found =
              CalibrateSteps(question.EventAt(*question.noise, question.RateOrOne(), 1),
                             budget.epsilon, budget.delta)) {
        // Whole allocations, where records are allocated.
        const std::uint64_t steps = found->steps * question.shape.StepsOfOne(question.RateOrOne());
        return CalibrationAnswer{static_cast<double>(steps), found->steps >= kUnboundedSteps,
                                 found->epsilon,
                                 question.EventAt(*question.noise, question.RateOrOne(), steps)};
      }
      break;
    case Unknown::kRate:
      if (const auto found = CalibrateRate(
              [&](SamplingRate rate) {
                return question.EventAt(*question.noise, rate, *question.steps);
              },
              budget.epsilon, budget.delta)) {
        return CalibrationAnswer{found->rate.value(), found->rate.value() == 1, found->epsilon,
                                 question.EventAt(*question.noise, found->rate, *question.steps)};
      }
      break;
  }
  return std::nullopt;
}

std::string Impossible(const Question& question) {
  const double epsilon = question.budget.epsilon.value();
  const double delta = question.budget.delta.value();
  const std::string budget = fmt::format("epsilon {:g} at delta {:g}", epsilon, delta);
  const bool gaussian = question.shape.mechanism == Mechanism::kGaussian ||
                        question.shape.mechanism == Mechanism::kDiscreteGaussian;
  if (delta == 0 && gaussian) {
    return fmt::format(
        "nothing meets {}: Gaussian noise has no pure guarantee; give a --delta above 0, or use "
        "--mechanism laplace.",
        budget);
  }
  switch (question.unknown) {
    case Unknown::kNoise:
      return fmt::format("no noise up to 1e12 meets {} for {} steps; allow more or do less.",
                         budget, *question.steps);
    case Unknown::kSteps:
      return fmt::format(
          "not even one step with noise {:g} meets {}; give more noise, a lower rate or a larger "
          "budget.",
          question.noise->value(), budget);
    case Unknown::kRate:
      break;
  }
  return fmt::format(
      "no sampling rate meets {} with noise {:g} for {} steps; give more noise, fewer steps or a "
      "larger budget.",
      budget, question.noise->value(), *question.steps);
}

// The formulas of the lecture notes are about Gaussian noise and need a budget inside the open
// range.
bool FormulasApply(const Question& question) {
  return question.unknown == Unknown::kNoise && !AnyNoiseMeets(question) &&
         question.shape.mechanism == Mechanism::kGaussian && question.RateOrOne().value() > 0 &&
         question.budget.epsilon.value() > 0 && question.budget.delta.value() > 0 &&
         question.budget.delta.value() < 1 &&
         // Where fewer visits than this are expected, the basic formula is the root of a negative
         // number.
         1.25 * question.RateOrOne().value() > question.budget.delta.value();
}

std::vector<Formula> Formulas(const Question& question) {
  if (!FormulasApply(question)) return {};
  const SamplingRate rate = question.RateOrOne();
  const auto [epsilon, delta] = question.budget;
  return {{"basic", BasicNoise(rate, *question.steps, epsilon, delta)},
          {"advanced", AdvancedNoise(rate, *question.steps, epsilon, delta)},
          {"moments", MomentsNoise(rate, *question.steps, epsilon, delta)}};
}

// One row for each power of ten below the number of steps, and one for the number itself.
std::vector<NoiseFormulaRow> Table(const Question& question, const CalibrationAnswer& answer) {
  if (!FormulasApply(question)) {
    throw Error(
        "--table compares formulas for Gaussian noise; they need a rate well above delta, an "
        "epsilon above 0 and a delta between 0 and 1.");
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

const char* UnknownKey(Unknown unknown) {
  switch (unknown) {
    case Unknown::kNoise:
      return "noise_multiplier";
    case Unknown::kSteps:
      return "steps";
    case Unknown::kRate:
      break;
  }
  return "sampling_rate";
}

void PrintJson(const Question& question, const CalibrationAnswer& answer,
               const std::vector<NoiseFormulaRow>& table) {
  const char* key = UnknownKey(question.unknown);
  Json json = NewReport();
  json[key] = question.unknown == Unknown::kSteps ? Json(static_cast<std::uint64_t>(answer.value))
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

std::string Headline(const Question& question, const CalibrationAnswer& answer) {
  const std::string budget = fmt::format(
      "epsilon {:g} at delta {:g}", question.budget.epsilon.value(), question.budget.delta.value());
  switch (question.unknown) {
    case Unknown::kNoise:
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
    case Unknown::kSteps:
      return fmt::format("Solved for the steps: {} {} {}{}.",
                         static_cast<std::uint64_t>(answer.value),
                         answer.at_the_end ? "meet" : "is the most that meets", budget,
                         answer.at_the_end ? ", and so may more; the search ends here" : "");
    case Unknown::kRate:
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

void PrintText(const Question& question, const CalibrationAnswer& answer,
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
  std::cout << text;
}

void Run(const CalibrateOptions& options) {
  const Question question = MakeQuestion(options);
  const std::optional<CalibrationAnswer> answer = Solve(question);
  if (!answer) throw Error(Impossible(question));
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
  command->add_option("--epsilon", o.epsilon, "The epsilon that may be spent")->type_name("NUMBER");
  command->add_option("--delta", o.delta, "The delta that may be spent")->type_name("0..1");
  command->add_flag("--table", o.table, "The closed-form noise formulas for growing steps");
  command->add_flag("--json", o.json, "One JSON object on standard output");
  command->footer(
      "Solves for what is left out: --noise, else --steps, else --rate.\n"
      "Example:\n  sordino calibrate --rate 0.01 --steps 10000 --epsilon 1 --delta 1e-5");
  command->callback([options] { Run(*options); });
}

}  // namespace sordino
