#include <map>
#include <utility>
#include <vector>

#include "sordino/noise/noise_component.h"
#include "sordino/noise/noise_process.h"

namespace sordino {

std::unique_ptr<NoiseProcess> NoiseComponent::Start(const NoiseTerms& terms,
                                                    RandomSource& source) const {
  return std::make_unique<NoiseProcess>(Memory(terms), source);
}

std::int64_t NoiseComponent::Bands(const OptionValues&, std::int64_t) const { return 1; }
bool NoiseComponent::IsOpen(const OptionValues&) const { return false; }
OptionValues NoiseComponent::Chosen(const OptionValues& options, const NoiseQuestion&) const {
  return options;
}
std::string NoiseComponent::Description(const OptionValues&) const { return std::string(name()); }

std::int64_t IndependentNoise::StepsPerEvent(const NoiseTerms& terms) const {
  return terms.sampler.StepsPerEvent(terms.sampling);
}

Event IndependentNoise::StepEvent(const NoiseTerms& terms, std::int64_t step) const {
  const NoiseMultiplier noise = terms.multiplier(step);
  if (terms.sampling.rows_per_user > 1) {
    return terms.sampler.UserEvent(terms.sampling, step, noise);
  }
  return terms.sampler.StepEvent(terms.sampling, step, Release(noise, terms.sampling.adjacency));
}

Event IndependentNoise::EventOf(const NoiseTerms& terms, std::int64_t first,
                                std::int64_t last) const {
  if (last - first == 1) return StepEvent(terms, first);
  const std::int64_t unit = StepsPerEvent(terms);
  if (unit > 1 || (terms.sampling.noise_is_constant && terms.sampling.rate_schedule.IsConstant())) {
    const std::int64_t events = (last - 1) / unit - first / unit + 1;
    return Event::Repeat(StepEvent(terms, 0), static_cast<std::uint64_t>(events));
  }
  // Steps of equal noise and rate are one group, so that long schedules stay small.
  std::map<std::pair<double, double>, std::pair<std::int64_t, std::uint64_t>> groups;
  for (std::int64_t step = first; step < last; ++step) {
    const std::pair key(terms.multiplier(step).value(),
                        terms.sampler.Rate(terms.sampling, step).value());
    ++groups.try_emplace(key, step, 0).first->second.second;
  }
  std::vector<std::pair<Event, std::uint64_t>> events;
  events.reserve(groups.size());
  for (const auto& [key, group] : groups) {
    events.emplace_back(StepEvent(terms, group.first), group.second);
  }
  return Event::Compose(std::move(events), terms.sampling.adjacency);
}

}  // namespace sordino
