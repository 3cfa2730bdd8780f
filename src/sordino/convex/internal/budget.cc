#include "sordino/convex/internal/budget.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sordino/accounting/failures.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"

namespace sordino::internal {

double GaussianBudget(Epsilon epsilon, Delta delta, double failure) {
  for (const double share : kFailureShares) {
    if (!FailuresArePaid(failure, epsilon, delta.value() * share)) continue;
    const double left = DeltaForEvents(delta, share).value();
    // Accountants round epsilon up by less than this gives away.
    return GaussianMu(epsilon.value() * (1 - 0x1p-30), std::log(left)) * (1 - 0x1p-30);
  }
  throw Error(fmt::format(
      "delta {} is too small for the draws of Gaussian noise that this fit needs; use a larger "
      "delta, or 0 for pure epsilon.",
      delta.value()));
}

double NeighbourFactor(Adjacency adjacency) { return adjacency == Adjacency::kReplaceOne ? 2 : 1; }

double NeighbourFactor(const FitQuestion& question) {
  return NeighbourFactor(question.adjacency) * static_cast<double>(question.rows_per_user);
}

std::int64_t Parameters(const FitQuestion& question) {
  return question.table.features * CheckedLoss(question.table).Scores(question.table.classes);
}

LossBounds BoundsOf(const FitQuestion& question) {
  return CheckedLoss(question.table).Bounds(question.table.classes, question.table.target_bound);
}

double GradientBound(const FitQuestion& question) {
  return BoundsOf(question).slope * question.table.row_bound;
}

double WeightNorm(const FitQuestion& question) {
  const ConvexLoss& loss = CheckedLoss(question.table);
  const auto scores = static_cast<double>(loss.Scores(question.table.classes));
  return question.weight_norm * std::sqrt(scores) / question.table.row_bound *
         (loss.Classifies() ? 1 : question.table.target_bound);
}

RiskShape ShapeOf(const FitQuestion& question) {
  const double r = question.table.row_bound;
  return {.records = static_cast<double>(question.records),
          .parameters = static_cast<double>(Parameters(question)),
          .trace = BoundsOf(question).trace * r * r,
          .weight_norm = WeightNorm(question)};
}

PlannedFit Refused(const FitMethod& method, std::string refusal) {
  return {
      .method = std::string(method.name()), .plan = std::nullopt, .refusal = std::move(refusal)};
}

PlannedFit Planned(FitPlan plan) {
  std::string name = plan.method.name;
  return {.method = std::move(name), .plan = std::move(plan), .refusal = ""};
}

}  // namespace sordino::internal
