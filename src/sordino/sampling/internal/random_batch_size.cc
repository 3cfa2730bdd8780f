#include "sordino/sampling/internal/random_batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

// The least m with P[Binomial(n, q) > m] <= RandomOverflow() for every n q = mean, by
// Chernoff's bound exp(-mean h(m / mean - 1)), h(u) = (1 + u) log(1 + u) - u.
std::int64_t BinomialQuantile(double mean) {
  const double wanted = -std::log(RandomOverflow());
  const auto exponent = [&](double m) { return m * std::log(m / mean) - m + mean; };
  double low = mean;
  double high = mean + 1;
  while (exponent(high) < wanted) high += high - low;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    (exponent(middle) < wanted ? low : high) = middle;
  }
  return static_cast<std::int64_t>(std::ceil(high));
}

}  // namespace

double RandomOverflow() { return 0x1p-80; }

std::int64_t MaxRandomBatch(const SamplingPlan& plan, double rate) {
  const auto records = static_cast<double>(plan.MaxRecords());
  return std::min(plan.MaxRecords(), BinomialQuantile(std::min(1.0, rate) * records));
}

void CompleteBatchOrRate(SamplingPlan& plan) {
  const auto records = static_cast<double>(plan.records);
  if (plan.rate.has_value() && plan.batch == 0) {
    plan.batch = plan.rate->value() * records;
  } else if (!plan.rate.has_value() && plan.batch > 0) {
    Require(plan.batch <= records,
            fmt::format("the batch of {} is larger than the {} records; give at most that many, "
                        "or use full batches.",
                        plan.batch, plan.records));
    plan.rate = SamplingRate(plan.batch / records);
  }
}

void Require(bool condition, const std::string& sentence) {
  if (!condition) throw Error(sentence);
}

}  // namespace sordino::internal
