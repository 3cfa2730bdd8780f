#include "sordino/cli/schedule_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "sordino/base/error.h"
#include "sordino/schedules/schedule_table.h"

namespace sordino {
namespace {

// `body` with the line in front of what it throws.
template <typename Body>
void AtLine(const ScheduleTable& table, std::size_t line, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    throw Error(fmt::format("line {} of {}: {}", line, table.name(), error.what()));
  }
}

void RefuseTwice(bool has_column, const std::optional<std::string>& flag, const char* flag_name,
                 const char* column_name) {
  if (has_column && flag) {
    throw Error(fmt::format("{} was given, and there is a column '{}' too; leave out one.",
                            flag_name, column_name));
  }
}

StepSequence SequenceOf(const ScheduleTable& table, const EventOptions& flags) {
  const std::vector<double>* const rates = table.Column("rate");
  const std::vector<double>* const noises = table.Column("noise");
  const std::vector<std::uint64_t>* const counts = table.Counts();
  AtLine(table, table.header_line(), [&] {
    RefuseTwice(rates != nullptr, flags.rate, "--rate", "rate");
    RefuseTwice(noises != nullptr, flags.noise, "--noise", "noise");
    RefuseTwice(counts != nullptr, flags.steps, "--steps", "steps");
    if (noises == nullptr && !flags.noise) {
      throw Error("there is no column 'noise'; add one, or give --noise for every step.");
    }
  });
  if (flags.correlation) {
    throw Error("--noise-correlation is accounted for equal steps; leave out --schedule.");
  }
  const StepShape shape = ShapeOf(flags, rates != nullptr || flags.rate);
  const double common_rate = flags.rate ? ParseReal("--rate", *flags.rate) : 1;
  const double common_noise = flags.noise ? ParseReal("--noise", *flags.noise) : 0;
  const std::uint64_t common_steps = flags.steps ? ParseWhole("--steps", *flags.steps) : 1;
  StepSequence sequence;
  sequence.adjacency = shape.adjacency;
  for (std::size_t i = 0; i < table.size(); ++i) {
    AtLine(table, table.line(i), [&] {
      const SamplingRate rate(rates != nullptr ? (*rates)[i] : common_rate);
      const NoiseMultiplier noise(noises != nullptr ? (*noises)[i] : common_noise);
      const std::uint64_t steps = counts != nullptr ? (*counts)[i] : common_steps;
      sequence.phases.emplace_back(shape.Step(noise, rate), shape.CountOf(steps, rate));
    });
  }
  return sequence;
}

}  // namespace

StepSequence ParseSchedule(std::string_view text, const std::string& name,
                           const EventOptions& flags) {
  return SequenceOf(ScheduleTable::Parse(text, name), flags);
}

StepSequence ReadSchedule(const std::string& path, const EventOptions& flags) {
  return SequenceOf(ScheduleTable::Read(path), flags);
}

}  // namespace sordino
