// Risks of a model, for public data: what is computed of the training records has no noise, and no
// guarantee covers it.
//
// The empirical risk is the mean loss on the training records, the test risk that on public records
// of the same kind, and their distance the generalisation gap. Losses are the cross entropy of
// classes, or half the squared error of a scaled target (training/classification.h); for classes
// the share of wrong ones is the risk of the loss 1{f(x) != y}.
#ifndef SORDINO_RUNS_TRAINING_RISK_H_
#define SORDINO_RUNS_TRAINING_RISK_H_

#include <optional>

#include "sordino/training/classification.h"

namespace sordino {

struct TrainingRisk {
  TestMetrics empirical;
  std::optional<TestMetrics> test;
  // Of a private fit: its empirical risk less that of the fit of the same data without privacy.
  std::optional<double> excess;
  // Of a private fit with a delta: sqrt(2) rho sigma sqrt(p) / n, the bound that descent on a risk
  // without curvature attains (theory/empirical_risk.h), for the norm rho of the fit without
  // privacy. It is proportional to sqrt(p) / (epsilon n).
  std::optional<double> bound;
};

}  // namespace sordino

#endif  // SORDINO_RUNS_TRAINING_RISK_H_
