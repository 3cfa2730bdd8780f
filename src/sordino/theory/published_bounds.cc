#include "sordino/theory/published_bounds.h"

#include <algorithm>
#include <cmath>

#include "sordino/base/quantity.h"

namespace sordino {
namespace {

struct Row {
  std::string_view algorithm;
  std::string_view order;
  std::optional<double> (*bound)(const PublishedQuestion&);
  std::string_view schedule;
  // sigma_t^2 of step t.
  std::optional<double> (*variance)(const PublishedQuestion&, double t);
};

// D / (N^2 R), which every good row is a multiple of.
double Base(const PublishedQuestion& q) { return q.dimension / (q.records * q.records * q.budget); }

std::optional<double> AdvancedComposition(const PublishedQuestion& q) {
  return Base(q) * q.records * std::pow(std::log(q.records), 3);
}
std::optional<double> MomentsAccountant(const PublishedQuestion& q) {
  return Base(q) * std::pow(std::log(q.records), 2);
}
std::optional<double> AdjustedUtility(const PublishedQuestion& q) {
  return std::min(std::sqrt(q.dimension) / (q.records * q.budget),
                  Base(q) * std::log(q.records) / q.budget);
}
std::optional<double> BlackBox(const PublishedQuestion& q) {
  const double log_failure = std::log(1 / kPublishedFailure);
  return Base(q) * q.records * q.dimension * log_failure * log_failure;
}
std::optional<double> Adam(const PublishedQuestion& q) {
  if (!q.epsilon) return std::nullopt;
  const double inside = q.records * q.dimension * *q.epsilon / (1 - kPublishedFailure);
  return std::sqrt(q.dimension) * std::max(0.0, std::log(inside)) / (q.records * q.budget);
}
std::optional<double> Plain(const PublishedQuestion& q) { return Base(q); }
std::optional<double> StaticSchedule(const PublishedQuestion& q) {
  return Base(q) * std::log(q.records);
}
std::optional<double> MomentumStatic(const PublishedQuestion& q) {
  return Base(q) * (1 + std::log(q.records));
}
std::optional<double> MomentumDynamic(const PublishedQuestion& q) {
  return Base(q) * (1 + Base(q));
}

std::optional<double> AdvancedVariance(const PublishedQuestion& q, double) {
  if (!q.delta) return std::nullopt;
  return std::log(q.records / *q.delta) / q.budget;
}
std::optional<double> BlackBoxVariance(const PublishedQuestion& q, double) {
  if (!q.delta) return std::nullopt;
  return q.records * q.records * std::log(q.records / *q.delta) / q.budget;
}
std::optional<double> NoVariance(const PublishedQuestion&, double) { return 0; }
std::optional<double> EqualVariance(const PublishedQuestion& q, double) {
  if (!q.steps) return std::nullopt;
  return *q.steps / q.budget;
}
std::optional<double> DynamicVariance(const PublishedQuestion& q, double t) {
  if (!q.steps || !q.gamma) return std::nullopt;
  return std::pow(*q.gamma, (t - *q.steps) / 2) / q.budget;
}
std::optional<double> MomentumVariance(const PublishedQuestion& q, double t) {
  if (!q.steps || !q.gamma) return std::nullopt;
  const double gamma = q.momentum_gamma.value_or(*q.gamma);
  return (std::pow(gamma, *q.steps + t) + std::pow(gamma, (*q.steps - t) / 2)) / q.budget;
}

constexpr Row kRows[] = {
    {"GD+Adv", "D ln^3 N / (N R)", AdvancedComposition, "ln(N / delta) / R", AdvancedVariance},
    {"GD+MA", "D ln^2 N / (N^2 R)", MomentsAccountant, "T / R", EqualVariance},
    {"GD+MA, adjusted utility", "min(sqrt(D) / (N R), D ln N / (N^2 R^2))", AdjustedUtility,
     "T / R", EqualVariance},
    {"GD+Adv+BBImp", "D^2 ln^2(1/p) / (N R)", BlackBox, "N^2 ln(N / delta) / R", BlackBoxVariance},
    {"Adam+MA", "sqrt(D) ln(N D epsilon / (1 - p)) / (N R)", Adam, "T / R", EqualVariance},
    {"GD, non-private", "D / (N^2 R)", Plain, "0", NoVariance},
    {"GD+zCDP, static schedule", "D ln N / (N^2 R)", StaticSchedule, "T / R", EqualVariance},
    {"GD+zCDP, dynamic schedule", "D / (N^2 R)", Plain, "gamma^((t - T) / 2) / R", DynamicVariance},
    {"Momentum+zCDP, static schedule", "D (1 + ln N) / (N^2 R)", MomentumStatic, "T / R",
     EqualVariance},
    {"Momentum+zCDP, dynamic schedule", "D (1 + D / (N^2 R)) / (N^2 R)", MomentumDynamic,
     "(gamma^(T + t) + gamma^((T - t) / 2)) / R", MomentumVariance},
};

}  // namespace

std::vector<PublishedBound> PublishedBounds(const std::optional<PublishedQuestion>& question) {
  if (question) {
    CheckRange("the number of records", question->records, 1, false, kInfinity, true);
    CheckRange("the dimension", question->dimension, 0, true, kInfinity, true);
    CheckRange("the budget", question->budget, 0, true, kInfinity, true);
  }
  std::vector<PublishedBound> bounds;
  for (const Row& row : kRows) {
    PublishedBound bound{row.algorithm, row.order, {}, row.schedule, {}, {}};
    if (question) {
      bound.bound = row.bound(*question);
      bound.first_variance = row.variance(*question, 1);
      if (question->steps) bound.last_variance = row.variance(*question, *question->steps);
    }
    bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace sordino
