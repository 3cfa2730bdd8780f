#include "sordino/accounting/best_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

[[noreturn]] void FailSelection(std::string_view text) {
  throw Error(fmt::format(
      "'{}' does not say how often a run is repeated; give tnb:ETA:GAMMA with ETA above "
      "-1 and GAMMA between 0 and 1, such as tnb:0:0.1, or poisson:MEAN.",
      text));
}

// The numbers behind the name, each after a colon.
std::vector<double> NumbersOf(std::string_view text, std::string_view rest) {
  std::vector<double> numbers;
  while (!rest.empty()) {
    double number = 0;
    const char* const end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data() + 1, end, number);
    if (rest[0] != ':' || error != std::errc() || !std::isfinite(number)) FailSelection(text);
    numbers.push_back(number);
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
  }
  return numbers;
}

}  // namespace

Event BestOf(std::string_view text, Event run) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::vector<double> numbers = NumbersOf(text, text.substr(colon));
  if (name == "tnb" && numbers.size() == 2) {
    return Event::BestTnb(numbers[0], numbers[1], std::move(run));
  }
  if (name == "poisson" && numbers.size() == 1) {
    return Event::BestPoisson(numbers[0], std::move(run));
  }
  FailSelection(text);
}

}  // namespace sordino
