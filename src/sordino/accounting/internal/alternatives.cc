#include "sordino/accounting/internal/alternatives.h"

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

AlternativeSlots AlternativesOf(const Event& event) {
  AlternativeSlots result{{{}}, {{}}};
  for (const auto& [release, count] : event.Flatten()) {
    if (release.kind() != Event::Kind::kParallel) {
      for (Slots& slots : result.upper) slots.push_back({{release}, count});
      for (Slots& slots : result.lower) slots.push_back({{release}, count});
      continue;
    }
    std::vector<Slots> choices;
    std::vector<Slots> attained;
    for (const auto& [part, once] : release.children()) {
      AlternativeSlots inner = AlternativesOf(part);
      std::move(inner.upper.begin(), inner.upper.end(), std::back_inserter(choices));
      std::move(inner.lower.begin(), inner.lower.end(), std::back_inserter(attained));
    }
    const std::size_t room = kMaxAlternatives / result.upper.size();
    std::vector<Slots> grown;
    std::vector<Slots> ways;
    if (Ways(count, choices.size(), room) <= room) {
      Distribute(choices, 0, count, {}, ways);
    } else {
      ways.push_back(Overlay(choices, count));
    }
    for (const Slots& slots : result.upper) {
      for (const Slots& way : ways) {
        grown.push_back(slots);
        Append(grown.back(), way, 1);
      }
    }
    result.upper = std::move(grown);
    // Of what can happen a sample is enough: all copies in one part, or as above.
    ways.clear();
    const std::size_t lower_room = kMaxAlternatives / result.lower.size();
    if (Ways(count, attained.size(), lower_room) <= lower_room) {
      Distribute(attained, 0, count, {}, ways);
    } else {
      for (const Slots& choice : attained) {
        if (ways.size() < std::max<std::size_t>(1, lower_room)) {
          ways.emplace_back();
          Append(ways.back(), choice, count);
        }
      }
    }
    grown.clear();
    for (const Slots& slots : result.lower) {
      for (const Slots& way : ways) {
        grown.push_back(slots);
        Append(grown.back(), way, 1);
      }
    }
    result.lower = std::move(grown);
  }
  return result;
}

}  // namespace sordino
