// The flags that describe one step of a mechanism, shared by `sordino account` and `sordino
// calibrate`, and the words that people type for numbers and names.
//
// Units are those of accounting/event.h: the noise is a standard deviation (Gaussian) or a scale
// (Laplace) divided by the sensitivity.
#ifndef SORDINO_CLI_EVENT_OPTIONS_H_
#define SORDINO_CLI_EVENT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/accounting/step_shape.h"
#include "sordino/base/quantity.h"

namespace CLI {
class App;
}

namespace sordino {

// The flags as they were typed; parsing them here keeps every mistake a sentence of our own.
struct EventOptions {
  std::optional<std::string> rate;
  std::optional<std::string> noise;
  std::optional<std::string> steps;
  std::optional<std::string> sampling;  // absent: poisson with a rate, none without
  std::optional<std::string> adjacency;
  std::optional<std::string> mechanism;
  std::optional<std::string> sensitivity;
  std::optional<std::string> select;       // the best of several runs of all of it
  std::optional<std::string> correlation;  // --noise-correlation
  std::optional<std::string> separation;
  std::optional<std::string> participations;
};

void AddEventFlags(CLI::App& command, EventOptions& options);

// Throws Error for names that are unknown and for flags that contradict each other. has_rate says
// whether a rate comes from anywhere (a flag, a schedule, a search).
StepShape ShapeOf(const EventOptions& options, bool has_rate);

// A finite number. `where` names the flag or the column in the sentence of the Error.
double ParseReal(std::string_view where, std::string_view text);
// A whole number from 0 to 2^53, also written as 1e6.
std::uint64_t ParseWhole(std::string_view where, std::string_view text);

}  // namespace sordino

#endif  // SORDINO_CLI_EVENT_OPTIONS_H_
