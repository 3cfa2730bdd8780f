#include "sordino/convex/internal/published.h"

#include <cmath>

namespace sordino {

double KiferNoise(double gradient_bound, Epsilon epsilon, Delta delta) {
  const double e = epsilon.value();
  return gradient_bound * std::sqrt(8 * std::log(2 / delta.value()) + 4 * e) / e;
}

double KiferRegularisation(double curvature, Epsilon epsilon) {
  return 2 * curvature / epsilon.value();
}

PublishedMinima IyengarMinima(double records, double gradient_bound, Epsilon epsilon, Delta delta) {
  const double out = 0.01 * epsilon.value();
  const double objective = epsilon.value() - out;
  const double p = 0.9 * objective;
  const auto spread = [](double d) { return 1 + std::sqrt(2 * std::log(1 / d)); };
  PublishedMinima result;
  result.regularisation = 2 * gradient_bound * gradient_bound / (objective - p);
  result.objective_noise = 2 * gradient_bound / records * spread(0.99 * delta.value()) / p;
  const double gradient_norm = 1 / (records * records);
  result.output_noise =
      records * gradient_norm / result.regularisation * spread(0.01 * delta.value()) / out;
  return result;
}

PublishedAdassp WangAdassp(double features, Epsilon epsilon, Delta delta, double failure) {
  const double third = epsilon.value() / 3;
  const double log_delta = std::log(6 / delta.value());
  return {
      .noise = std::sqrt(log_delta) / third,
      .regularisation =
          std::sqrt(features * log_delta * std::log(2 * features * features / failure)) / third};
}

}  // namespace sordino
