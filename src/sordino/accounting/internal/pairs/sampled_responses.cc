#include "sordino/accounting/internal/pairs/sampled_responses.h"

#include <cmath>

#include "sordino/accounting/internal/pairs/outcomes.h"

namespace sordino {
namespace {

// `copies` outcomes that have P = base + q with and Q = base + q without, each.
Outcome ResponseOf(double copies, double base, double with, double without, double q) {
  const double log_q = std::log(copies * (base + q * without));
  const double loss = std::log1p(q * (with - without) / (base + q * without));
  return {log_q + loss, log_q, loss};
}

}  // namespace

std::optional<DominatingPairs> ReplacedResponses(const Event& child, double q) {
  if (child.number("buckets") < 3) return std::nullopt;
  const std::optional<Outcomes> outcomes = OutcomesOf(child);
  if (!outcomes) return std::nullopt;
  const Outcomes sampled = SampleOutcomes(*outcomes, q);
  return Same({Glue(FromOutcomes(sampled), FromOutcomes(Swapped(sampled)))});
}

DominatingPairs NullResponses(const Event& child, double q) {
  const double p = child.number("p");
  const double k = child.number("buckets");
  const double a = p / k;
  const double h = 1 - p + a;
  const double low = (1 - q) * a;
  const double high = (1 - q) * h;
  // y is not x, and y = x.
  Outcomes unlike = {ResponseOf(1, low, h, 1 / k, q), ResponseOf(1, high, a, 1 / k, q)};
  if (k > 2) unlike.push_back(ResponseOf(k - 2, low, a, 1 / k, q));
  const Outcomes alike = {ResponseOf(1, high, h, 1 / k, q), ResponseOf(k - 1, low, a, 1 / k, q)};
  DominatingPairs pairs;
  pairs.lower = {FromOutcomes(unlike), FromOutcomes(Swapped(unlike)), FromOutcomes(alike),
                 FromOutcomes(Swapped(alike))};
  pairs.upper = {Glue(pairs.lower[0], pairs.lower[2]), Glue(pairs.lower[3], pairs.lower[1])};
  return pairs;
}

}  // namespace sordino
