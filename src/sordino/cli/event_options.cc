#include "sordino/cli/event_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <span>

#include "sordino/base/adjacency_names.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/known_name.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/value_flag.h"
#include "sordino/correlation/noise_plan.h"
#include "sordino/correlation/strategy.h"

namespace sordino {
namespace {

std::int64_t WholeFlag(std::string_view flag, const std::string& text) {
  return static_cast<std::int64_t>(ParseWhole(flag, text));
}

// The matrix of --noise-correlation. With a rate it is that of one round of cyclic Poisson
// sampling, from as many groups as it has bands; without one it is that of all steps.
MatrixRelease MatrixOf(const EventOptions& options, const StepShape& shape) {
  if (!options.steps) {
    throw Error("--steps is missing; what correlated noise spends depends on all steps together.");
  }
  if (shape.mechanism != Mechanism::kGaussian) {
    throw Error("--noise-correlation is for Gaussian noise; leave out --mechanism.");
  }
  const std::int64_t steps = WholeFlag("--steps", *options.steps);
  const std::string& text = *options.correlation;
  if (shape.sampling == Sampling::kNone) {
    NoisePlanQuestion question{.steps = steps};
    if (options.separation) question.separation = WholeFlag("--separation", *options.separation);
    if (options.participations) {
      question.participations = WholeFlag("--participations", *options.participations);
    }
    return {.sensitivity = MakeStrategy(text, question.Pattern())->Sensitivity(),
            .steps = static_cast<std::uint64_t>(steps)};
  }
  if (shape.sampling != Sampling::kPoisson) {
    throw Error(
        "--noise-correlation is for records that rest between two steps: Poisson sampling from "
        "groups in turn, or no sampling; leave out --sampling.");
  }
  if (shape.adjacency == Adjacency::kReplaceOne) {
    throw Error(
        "--noise-correlation with a rate is not proven for replace-one; use add-remove or "
        "zero-out, or leave out --rate.");
  }
  if (options.separation || options.participations) {
    throw Error(
        "--separation and --participations are for records in a fixed order; with --rate they "
        "follow from the bands, so leave them out.");
  }
  const std::int64_t bands = BandsOf(text, steps);
  const auto groups = static_cast<double>(bands);
  if (options.rate && ParseReal("--rate", *options.rate) * groups > 1 + 1e-12) {
    throw Error(fmt::format(
        "--rate {} from one of {} groups is more than the group; '{}' needs a rate of at most "
        "{:g}.",
        *options.rate, bands, text, 1 / groups));
  }
  // Made for all rounds, as `sordino train` makes it; a release is one round.
  const Participation pattern{
      .steps = steps, .separation = bands, .count = (steps - 1) / bands + 1};
  const Participation round{.steps = steps, .separation = bands, .count = 1};
  return {.sensitivity = MakeStrategy(text, pattern)->Sensitivity(round),
          .steps = static_cast<std::uint64_t>(bands)};
}

}  // namespace

void AddEventFlags(CLI::App& command, EventOptions& options) {
  AddValue(command, "--rate", options.rate, "0..1", "Probability that a record enters a batch");
  command
      .add_option("--noise", options.noise,
                  "Standard deviation or scale of the noise over the sensitivity")
      ->type_name("NUMBER");
  AddValue(command, "--steps", options.steps, "NUMBER", "How often the step is done");
  const auto named = [&](const char* flag, auto& field, const char* help,
                         std::span<const std::string_view> choices) {
    SetChoices(*command.add_option(flag, field, help)->type_name("NAME"), choices);
  };
  named("--sampling", options.sampling,
        "poisson, fixed, allocation or none (poisson where there is a rate)", kSamplingNames);
  named("--adjacency", options.adjacency, "add-remove, replace-one or zero-out (add-remove)",
        kAdjacencyNames);
  named("--mechanism", options.mechanism,
        "gaussian, laplace, discrete-gaussian or discrete-laplace (gaussian)", kMechanismNames);
  command
      .add_option("--sensitivity", options.sensitivity,
                  "Whole-number sensitivity of a discrete mechanism (1)")
      ->type_name("NUMBER");
  command
      .add_option(
          "--select", options.select,
          "Only the best of several runs is released, their number is secret: tnb:ETA:GAMMA "
          "or poisson:MEAN")
      ->type_name("RUNS");
  SetChoices(
      *command
           .add_option("--noise-correlation", options.correlation,
                       "Noise that is correlated between steps: " + Strategies().ChoiceHelp())
           ->type_name("NAME"),
      Strategies().names());
  command
      .add_option("--separation", options.separation,
                  "Steps from one participation of a record to its next, at least (correlated "
                  "noise without a rate; all)")
      ->type_name("NUMBER");
  command
      .add_option("--participations", options.participations,
                  "Of a record, at most (correlated noise without a rate; as many as fit)")
      ->type_name("NUMBER");
}

StepShape ShapeOf(const EventOptions& options, bool has_rate) {
  StepShape shape;
  if (options.mechanism) {
    shape.mechanism =
        static_cast<Mechanism>(IndexOfName("--mechanism", *options.mechanism, kMechanismNames));
  }
  if (options.adjacency) {
    IndexOfName("--adjacency", *options.adjacency, kAdjacencyNames);
    shape.adjacency = ParseAdjacency(*options.adjacency);
  }
  shape.sampling = has_rate ? Sampling::kPoisson : Sampling::kNone;
  if (options.sampling) {
    shape.sampling =
        static_cast<Sampling>(IndexOfName("--sampling", *options.sampling, kSamplingNames));
    if (shape.sampling == Sampling::kNone && has_rate) {
      throw Error("--sampling none was given with a rate; leave out one of the two.");
    }
    if (shape.sampling != Sampling::kNone && !has_rate) {
      throw Error(fmt::format(
          "--sampling {} needs --rate, the share of the records that a batch holds on average.",
          *options.sampling));
    }
  }
  if (options.sensitivity) {
    if (shape.mechanism == Mechanism::kGaussian || shape.mechanism == Mechanism::kLaplace) {
      throw Error(
          "--sensitivity is for the discrete mechanisms; the noise of the others is already "
          "divided by it.");
    }
    shape.sensitivity = ParseWhole("--sensitivity", *options.sensitivity);
    if (shape.sensitivity == 0) throw Error("--sensitivity is 0; it must be at least 1.");
  }
  if (options.correlation) {
    shape.matrix = MatrixOf(options, shape);
  } else if (options.separation || options.participations) {
    throw Error(fmt::format("{} is for correlated noise; give --noise-correlation too.",
                            options.separation ? "--separation" : "--participations"));
  }
  return shape;
}

double ParseReal(std::string_view where, std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // Subnormal numbers have lost digits, and the logarithms and quotients of accounting overflow.
  if (error == std::errc::result_out_of_range || std::fpclassify(number) == FP_SUBNORMAL) {
    throw Error(fmt::format(
        "'{}' in {} is beyond the range of a double; give a number between 1e-307 and 1e308.", text,
        where));
  }
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(number)) {
    throw Error(
        fmt::format("'{}' in {} is not a finite number; give one, such as 8 or 0.5.", text, where));
  }
  return number;
}

std::uint64_t ParseWhole(std::string_view where, std::string_view text) {
  return ExactCount(ParseReal(where, text), text, where);
}

}  // namespace sordino
