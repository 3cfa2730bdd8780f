#include "sordino/accounting/internal/event_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/error.h"

namespace sordino {

void EventField::Check(double number) const {
  if (!whole) return CheckRange(what, number, low, low_open, high, high_open);
  if (number >= low && number <= high && std::floor(number) == number) return;
  throw Error(fmt::format("{} is {}; it must be a whole number of at least {} and at most {}.",
                          what, number, low, high));
}

double CoarseGrid::Rounded(double x, bool up) const {
  const double place = std::log(x) * per_e_;
  if (up) return std::max(x, std::exp(std::ceil(place) / per_e_) * (1 + 1e-15));
  return std::min(x, std::exp(std::floor(place) / per_e_) * (1 - 1e-15));
}

SamplingRate CoarseGrid::Rate(double rate) const {
  return SamplingRate(rate > 0 ? std::min(1.0, Rounded(rate, less_)) : 0);
}

EventKind::EventKind(std::string_view name, std::vector<EventField> fields, std::size_t terms,
                     std::size_t repeating)
    : name_(name), fields_(std::move(fields)), terms_(terms), repeating_(repeating) {
  id_ = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : name) id_ = (id_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
}

const EventField& EventKind::FieldAt(std::size_t place) const {
  if (place < fields_.size()) return fields_[place];
  const std::size_t first = fields_.size() - repeating_;
  return fields_[first + (place - first) % repeating_];
}

std::size_t EventKind::PlaceOf(std::string_view field) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == field) return i;
  }
  throw Error(
      fmt::format("the event '{}' has no number '{}'; see docs/accounting.md for those that "
                  "it has.",
                  name_, field));
}

Event EventKind::New(EventArguments arguments) const {
  for (std::size_t i = 0; i < arguments.numbers.size(); ++i) {
    FieldAt(i).Check(arguments.numbers[i]);
  }
  return Make(std::move(arguments));
}

Event EventKind::Of(EventArguments arguments) const {
  return Event(arguments.adjacency,
               {this, std::move(arguments.numbers), std::move(arguments.terms)});
}

KeptPart KeptPartOf(const Event& event) { return event.kind().Kept(event); }

NoiseUnits NoiseUnitsOf(const Event& event) {
  NoiseUnits units;
  event.kind().AddNoiseUnits(event, &NoiseUnits::unsampled, units);
  return units;
}

std::optional<Outcomes> OutcomesOf(const Event& event) {
  return event.kind().DiscreteOutcomes(event);
}

}  // namespace sordino
