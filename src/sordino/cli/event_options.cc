#include "sordino/cli/event_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "sordino/base/adjacency_names.h"
#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/known_name.h"
#include "sordino/cli/command_tree.h"

namespace sordino {

void AddEventFlags(CLI::App& command, EventOptions& options) {
  command.add_option("--rate", options.rate, "Probability that a record enters a batch")
      ->type_name("0..1");
  command
      .add_option("--noise", options.noise,
                  "Standard deviation or scale of the noise over the sensitivity")
      ->type_name("NUMBER");
  command.add_option("--steps", options.steps, "How often the step is done")->type_name("NUMBER");
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
