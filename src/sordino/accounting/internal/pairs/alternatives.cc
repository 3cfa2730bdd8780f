#include "sordino/accounting/internal/pairs/alternatives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// More combinations than this are not enumerated.
constexpr std::size_t kMaxAlternatives = 8;

std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) {
    throw Error("a parallel event repeats more than 2^64 releases; use fewer.");
  }
  return a * b;
}

// C(n + k - 1, k - 1), or a number above the limit.
std::size_t Ways(std::uint64_t n, std::size_t k, std::size_t limit) {
  double ways = 1;
  for (std::size_t i = 1; i < k; ++i) {
    ways *= (static_cast<double>(n) + static_cast<double>(i)) / static_cast<double>(i);
    if (ways > static_cast<double>(limit)) return limit + 1;
  }
  return static_cast<std::size_t>(std::lround(ways));
}

void Append(Slots& slots, const Slots& more, std::uint64_t times) {
  if (times == 0) return;
  for (const Slot& slot : more) slots.push_back({slot.options, Times(slot.count, times)});
}

// Every way to give n copies to the choices from `first` on.
void Distribute(const std::vector<Slots>& choices, std::size_t first, std::uint64_t n, Slots taken,
                std::vector<Slots>& out) {
  if (first + 1 == choices.size()) {
    Append(taken, choices[first], n);
    out.push_back(std::move(taken));
    return;
  }
  for (std::uint64_t i = 0; i <= n; ++i) {
    Slots with = taken;
    Append(with, choices[first], i);
    Distribute(choices, first + 1, n - i, std::move(with), out);
  }
}

// The choices side by side: the first release of any, the second of any, and so on.
Slots Overlay(const std::vector<Slots>& choices, std::uint64_t times) {
  std::vector<std::size_t> at(choices.size(), 0);
  std::vector<std::uint64_t> used(choices.size(), 0);
  Slots overlay;
  while (true) {
    std::uint64_t run = 0;
    Slot slot;
    for (std::size_t c = 0; c < choices.size(); ++c) {
      if (at[c] == choices[c].size()) continue;
      const Slot& next = choices[c][at[c]];
      const std::uint64_t left = next.count - used[c];
      run = run == 0 ? left : std::min(run, left);
      for (const Event& option : next.options) {
        if (std::find(slot.options.begin(), slot.options.end(), option) == slot.options.end()) {
          slot.options.push_back(option);
        }
      }
    }
    if (run == 0) return overlay;
    slot.count = Times(run, times);
    overlay.push_back(std::move(slot));
    for (std::size_t c = 0; c < choices.size(); ++c) {
      if (at[c] == choices[c].size()) continue;
      used[c] += run;
      if (used[c] == choices[c][at[c]].count) {
        ++at[c];
        used[c] = 0;
      }
    }
  }
}

}  // namespace

namespace {

// The parts of a parallel event, each with all that it may be.
AlternativeSlots PartsOf(const Event& parallel) {
  AlternativeSlots parts;
  for (const auto& [part, once] : parallel.children()) {
    AlternativeSlots inner = AlternativesOf(part);
    std::move(inner.upper.begin(), inner.upper.end(), std::back_inserter(parts.upper));
    std::move(inner.lower.begin(), inner.lower.end(), std::back_inserter(parts.lower));
  }
  return parts;
}

// Of what can happen a sample is enough: every way, or all copies in one part.
std::vector<Slots> AttainedWays(const std::vector<Slots>& parts, std::uint64_t count,
                                std::size_t room) {
  std::vector<Slots> ways;
  if (Ways(count, parts.size(), room) <= room) {
    Distribute(parts, 0, count, {}, ways);
    return ways;
  }
  for (const Slots& part : parts) {
    if (ways.size() == std::max<std::size_t>(1, room)) break;
    ways.emplace_back();
    Append(ways.back(), part, count);
  }
  return ways;
}

}  // namespace

AlternativeSlots AlternativesOf(const Event& event) {
  // Nothing was released before the parts were cut, so the choice depends on nothing.
  if (event.IsParallel()) return PartsOf(event);
  AlternativeSlots result{{{}}, {{}}, {}, {}};
  Slots& covered = result.upper.front();
  for (const auto& [release, count] : event.Flatten()) {
    if (!release.IsParallel()) {
      covered.push_back({{release}, count});
      result.others.push_back({{release}, count});
      for (Slots& slots : result.lower) slots.push_back({{release}, count});
      continue;
    }
    AlternativeSlots parts = PartsOf(release);
    Append(covered, Overlay(parts.upper, count), 1);
    std::vector<Slots> grown;
    const std::vector<Slots> ways =
        AttainedWays(parts.lower, count, kMaxAlternatives / result.lower.size());
    for (const Slots& slots : result.lower) {
      for (const Slots& way : ways) {
        grown.push_back(slots);
        Append(grown.back(), way, 1);
      }
    }
    result.lower = std::move(grown);
    result.choices.push_back({std::move(parts.upper), std::move(parts.lower), count});
  }
  return result;
}

}  // namespace sordino
