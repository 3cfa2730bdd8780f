// What tests of optimizers share: numbers as tensors and back, and every kind of optimizer.
#ifndef SORDINO_OPTIMIZERS_TESTING_OPTIMIZER_CASES_H_
#define SORDINO_OPTIMIZERS_TESTING_OPTIMIZER_CASES_H_

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "sordino/gradients/testing/forged_values.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/optimizers/optimizer_component.h"

namespace sordino {

using Numbers = std::vector<double>;

inline at::Tensor Parameter(const Numbers& values, at::ScalarType type = at::kDouble) {
  return at::tensor(at::ArrayRef<double>(values)).to(type).set_requires_grad(true);
}

inline Numbers Values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().view(-1);
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

inline Numbers Normal(std::mt19937_64& random, std::size_t size) {
  std::normal_distribution<double> normal;
  Numbers numbers(size);
  for (double& number : numbers) number = normal(random);
  return numbers;
}

inline NoisedGradients Noised(const std::vector<at::Tensor>& gradients) {
  return ForgedGradients(gradients, 0.1);
}

inline void ExpectNear(const Numbers& seen, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_NEAR(seen[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i])));
  }
}

// The value of an option of the optimizer, or its fallback.
inline OptionSpec OptionOf(std::string_view key) {
  for (const OptionSpec* spec : Optimizers().options()) {
    if (spec->key == key) return *spec;
  }
  return {};
}
inline double OptionNumber(const OptimizerOptions& options, std::string_view key) {
  return options.algorithm.options.Number(OptionOf(key));
}

// An optimizer with options that it has, by name.
struct OptimizerCase {
  const char* name;
  OptimizerOptions options;
};

inline std::vector<OptimizerCase> OptimizerCasesOfAllKinds() {
  const Schedule warm = Schedule::Parse("warmup:10,cosine:0");
  const Schedule steps = Schedule::Parse("step:15:0.5");
  const OptionValues moments = {
      {"weight-decay", 0.2}, {"beta1", 0.7}, {"beta2", 0.9}, {"stabiliser", 1e-2}};
  const OptionValues nesterov = {{"momentum", 0.8}, {"nesterov", true}};
  OptionValues nesterov_decay = nesterov;
  nesterov_decay.Set("weight-decay", 0.1);
  return {
      {"Sgd", {.learning_rate = 0.3}},
      {"SgdDecay",
       {.algorithm = {"sgd", {{"weight-decay", 0.1}}}, .learning_rate = 0.3, .schedule = warm}},
      {"Momentum", {.algorithm = {"sgd", {{"momentum", 0.9}}}, .learning_rate = 0.1}},
      {"MomentumDecay",
       {.algorithm = {"sgd", {{"momentum", 0.9}, {"weight-decay", 0.05}}},
        .learning_rate = 0.1,
        .schedule = steps}},
      {"Nesterov", {.algorithm = {"sgd", nesterov}, .learning_rate = 0.1, .schedule = warm}},
      {"NesterovDecay", {.algorithm = {"sgd", nesterov_decay}, .learning_rate = 0.1}},
      {"DebiasedMomentum",
       {.algorithm = {"debiased-momentum", {{"momentum", 0.9}}}, .learning_rate = 0.3}},
      {"DebiasedMomentumDecay",
       {.algorithm = {"debiased-momentum", {{"momentum", 0.5}, {"weight-decay", 0.05}}},
        .learning_rate = 0.3,
        .schedule = warm}},
      {"AdaGrad", {.algorithm = {"adagrad", {{"stabiliser", 1e-3}}}, .learning_rate = 0.2}},
      {"AdaGradDecay",
       {.algorithm = {"adagrad", {{"weight-decay", 0.1}}}, .learning_rate = 0.2, .schedule = warm}},
      {"Adam", {.algorithm = "adam", .learning_rate = 0.05}},
      {"AdamDecay", {.algorithm = {"adam", moments}, .learning_rate = 0.05, .schedule = warm}},
      {"AdamW", {.algorithm = "adamw", .learning_rate = 0.05}},
      {"AdamWDecay", {.algorithm = {"adamw", moments}, .learning_rate = 0.05, .schedule = warm}},
  };
}

}  // namespace sordino

#endif  // SORDINO_OPTIMIZERS_TESTING_OPTIMIZER_CASES_H_
