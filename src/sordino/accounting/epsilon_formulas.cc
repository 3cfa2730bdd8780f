#include "sordino/accounting/epsilon_formulas.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace sordino {
namespace {

// e of a release at d; nullopt where it has none.
std::optional<double> EpsilonOfStep(const Event& release, double d) {
  if (!(d > 0 && d < 1)) return std::nullopt;
  if (release.name() == "gaussian") {
    return std::sqrt(2 * std::log(1.25 / d)) / release.number("noise");
  }
  if (release.name() == "laplace") return 1 / release.number("noise");
  if (release.name() == "pure") return release.number("epsilon");
  // d is a quotient, and rounded.
  if (release.name() == "approximate" && release.number("delta") <= d * (1 + 1e-12)) {
    return release.number("epsilon");
  }
  return std::nullopt;
}

}  // namespace

std::vector<EpsilonFormula> EpsilonFormulas(const Event& event, Delta delta) {
  if (event.adjacency() == Adjacency::kReplaceOne) return {};
  const std::vector<std::pair<Event, std::uint64_t>> parts = event.Flatten();
  if (parts.size() != 1) return {};
  const Event& step = parts.front().first;
  const auto t = static_cast<double>(parts.front().second);
  const bool is_sampled = step.name() == "poisson" || step.name() == "fixed";
  const double q = is_sampled ? step.number("rate") : 1;
  const Event& release = is_sampled ? step.children().front().first : step;
  if (!(q > 0 && t >= 1)) return {};

  std::vector<EpsilonFormula> formulas;
  if (const auto e = EpsilonOfStep(release, delta.value() / (q * t))) {
    formulas.push_back({"basic", "q T e", q * t * *e});
    formulas.push_back(
        {"strong", "q e sqrt(T ln(1/delta))", q * *e * std::sqrt(-t * std::log(delta.value()))});
  }
  if (const auto e = EpsilonOfStep(release, delta.value())) {
    formulas.push_back({"moments", "q e sqrt(T)", q * *e * std::sqrt(t)});
  }
  return formulas;
}

}  // namespace sordino
